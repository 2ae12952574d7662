# SPDX-License-Identifier: GPL-2.0-only
# fake_driver.h is in the place of sys.c and discover.c, a directory in that of sysfs.
SRCS_nrt_host = $(patsubst $(ROOT)/%,%,$(filter-out %/sys.c %/discover.c, \
	$(wildcard $(ROOT)/libneuron/src/*.c)))
CFLAGS_nrt_host = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' \
	-DNRT_PCI_DEVICES='"build/pci/devices"'
LIBS_nrt_host = -larchive -ljansson -lz -lnettle -pthread
