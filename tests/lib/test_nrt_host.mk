# SPDX-License-Identifier: GPL-2.0-only
# A directory is in the place of sysfs.
SRCS_nrt_host = $(NRT_SRCS)
CFLAGS_nrt_host = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
OWN_nrt_host = -DNRT_PCI_DEVICES='"build/pci/devices"'
OWN_FILES_nrt_host = libneuron/nrt/api/host.c
LIBS_nrt_host = -larchive -ljansson -lz -lnettle -pthread
