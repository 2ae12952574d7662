#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# For the tests of tests/vm/guest that do not know whether neuron0 is a card.

modprobe neuron_pci model_isa=1 && echo "ok - neuron_pci is loaded"
