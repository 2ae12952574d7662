#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Guest side of "make demo": on a model of a card if there is one.

driver=neuron_emu
options=
if grep -qs 0x1d0f /sys/bus/pci/devices/*/vendor; then
	driver=neuron_pci
	options="hbm_limit=256 model_isa=1"
fi
# shellcheck disable=SC2086
modprobe $driver $options || { echo "not ok - modprobe $driver"; exit 1; }
echo "ok - neuron $(modinfo -F version neuron) loaded: $(ls /dev/neuron*)"
neuron-demo || { echo "not ok - demo"; exit 1; }
echo "ok - demo"
modprobe -r $driver || { echo "not ok - unload"; exit 1; }
echo "ok - modules unloaded"
