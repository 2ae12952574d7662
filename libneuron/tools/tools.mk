# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Sources of the tools, relative to libneuron/, for whoever builds them.  They
# contain the NEFF reader: neuron-pack and neuron-neff need its insides, and
# neuron-demo then needs nothing of the runtime but the public interface.

NEFF_SRCS := $(wildcard src/neff/*.c)
NEFF_LIBS := -larchive -ljansson -lz -lnettle

NEFF_TOOLS := neuron-pack neuron-neff neuron-demo

SRCS_neuron-pack := tools/neuron-pack.c $(NEFF_SRCS)
LIBS_neuron-pack := $(NEFF_LIBS)

SRCS_neuron-neff := tools/neuron-neff.c $(NEFF_SRCS)
LIBS_neuron-neff := $(NEFF_LIBS)

# To be linked with libnrt as well.
SRCS_neuron-demo := tools/neuron-demo.c ../tests/models/host_ref.c ../tests/models/heldout.c \
	$(NEFF_SRCS)
LIBS_neuron-demo := $(NEFF_LIBS) -lm

CFLAGS_neuron-ls := $(shell $(PKG_CONFIG) --cflags smartcols)
LIBS_neuron-ls := $(shell $(PKG_CONFIG) --libs smartcols)
