#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Guest side of "make screenshots", at the prompt of "make shell": programs at work on four
# software devices, watched by neuron-top until a key ends it; then what neuron-mem makes of them.

shared=$(cd "$(dirname "$0")" && pwd)
modprobe -r neuron_emu
modprobe neuron_emu arch=trn1 nr_devices=4
ln -s /tests/*-serve /tmp/serve
PATH=$PATH:/tmp
cd /usr/share/neuron/models || exit

# A device has two cores, each with an HBM; the last device has nothing to do.
{
	serve mnist-bf16.neff 0 0 4096 11264 &
	serve mnist-int8.neff 0 1 3072 11264 &
	serve mnist-int8.neff 2 0 6144 12288 &
	NEURON_RT_VISIBLE_CORES=3 neuron-demo -m mnist-bf16 -p 100000 &
	while :; do NEURON_RT_VISIBLE_CORES=2 neuron-demo -m decoder; done &
} >/tmp/log 2>&1
neuron-top
cd "$shared" || exit
neuron-mem map --svg memory-map.svg 0 && neuron-mem snapshot snapshot.json 0 &&
	jobs -p | xargs kill &&
	neuron-mem timeline --from snapshot.json memory-timeline.svg &&
	neuron-mem snapshot --html --from snapshot.json page.html && echo pictures-done
tail -n 2 /tmp/log
