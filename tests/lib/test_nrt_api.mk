# SPDX-License-Identifier: GPL-2.0-only
# fake_driver.h is in the place of sys.c and discover.c.
SRCS_nrt_api = libneuron/src/core.c libneuron/src/device.c libneuron/src/exec.c \
	libneuron/src/load.c libneuron/src/mem.c libneuron/src/nq.c libneuron/src/queue.c \
	libneuron/src/ring.c libneuron/src/neff.c libneuron/src/neff_archive.c \
	libneuron/src/neff_json.c libneuron/src/neff_npy.c libneuron/src/neff_write.c \
	libneuron/src/nrt_async.c libneuron/src/nrt_info.c libneuron/src/nrt_init.c libneuron/src/nrt_log.c \
	libneuron/src/nrt_model.c libneuron/src/nrt_tensor.c
CFLAGS_nrt_api = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_nrt_api = -larchive -ljansson -lz -lnettle -pthread
