#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Guest side of "make demo".

modprobe neuron_emu || { echo "not ok - modprobe neuron_emu"; exit 1; }
echo "ok - neuron $(modinfo -F version neuron) loaded: $(ls /dev/neuron*)"
neuron-demo || { echo "not ok - demo"; exit 1; }
echo "ok - demo"
modprobe -r neuron_emu || { echo "not ok - unload"; exit 1; }
echo "ok - modules unloaded"
