#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The demo program, killed while it runs: the modules cannot go under it, and within
# a second of its death every byte is back and the device works for the next one.

models=/usr/share/neuron/models
root=/sys/devices/virtual/neuron_device/neuron0
core=$root/neuron_core0/stats/memory_usage
bad=0
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; bad=1; fi
}

nonzero() {
	find $root -path '*memory_usage*' -name total -exec grep -Hvx 0 {} +
}

# Waits until the command holds, for so many tenths of a second.
within() {
	tenths=$1
	shift
	while ! "$@"; do
		[ "$tenths" -gt 0 ] || return 1
		tenths=$((tenths - 1))
		usleep 100000
	done
}
running() { [ "$(cat $core/device_mem/tensors/total)" != 0 ]; }
all_back() { ! nonzero >/tmp/left; }

check "counters are 0 before" all_back
for round in 1 2 3; do
	neuron-demo -p 1000 $models >/tmp/demo.log 2>&1 &
	pid=$!
	check "round $round: the demo has tensors on the device" 'within 600 running'
	check "round $round: modules are in use" '! rmmod neuron_emu 2>/dev/null'
	kill -9 $pid
	wait $pid 2>/dev/null
	check "round $round: all counters are 0 within a second of kill -9" 'within 10 all_back'
	[ ! -s /tmp/left ] || sed 's/^/# /' /tmp/left
done
neuron-demo -m mnist-int8 -n 100 $models >/tmp/demo.log 2>&1
check "the demo runs afterwards" "[ $? = 0 ]"
[ $bad = 0 ] || tail -n 20 /tmp/demo.log | sed 's/^/# /'
check "counters are 0 after" all_back
exit $bad
