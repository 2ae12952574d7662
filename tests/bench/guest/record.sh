#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Guest side of record-traces.sh: what is on the output between two lines
# "# trace NAME" and "# end" becomes a file.

t=/sys/kernel/tracing
mount -t tracefs none $t 2>/dev/null
modprobe neuron_emu host_memory="${HOST_MEMORY:-1024}" || exit 1
mkdir -p /sys/kernel/debug
mount -t debugfs none /sys/kernel/debug 2>/dev/null
reserved=$(awk '$3 == "reserved" { s += $2 } END { print s / 1024 }' \
	/sys/kernel/debug/neuron/neuron0/hbm0)
total=$(awk '{ s += $2 } END { print s / 1024 }' /sys/kernel/debug/neuron/neuron0/hbm0)
bad=0

record() {
	name=$1
	shift
	echo 0 >$t/tracing_on
	echo 32768 >$t/buffer_size_kb
	echo >$t/trace
	for event in neuron_alloc neuron_free neuron_alloc_fail; do
		echo 1 >$t/events/neuron/$event/enable
	done
	echo 1 >$t/tracing_on
	if "$@" >/tmp/said 2>&1; then
		echo "ok - $name: $*"
	else
		echo "not ok - $name: $*"
		tail -n 20 /tmp/said
		bad=1
	fi
	echo 0 >$t/tracing_on
	echo "# trace $name"
	echo "neuron-trace 1"
	echo "# $*"
	grep '^# .* for want of room' /tmp/said
	echo "zone $total $reserved"
	awk -v nd=0 -v hbm=0 -f /trace.awk $t/trace
	echo "# end"
}

record demo neuron-demo /usr/share/neuron/models
record serve loads serve "$LOADS" "$SEED"
record pair loads pair $((LOADS * 2 / 3)) "$SEED"
record requests loads requests "$LOADS" "$SEED"
modprobe -r neuron_emu || bad=1
exit $bad
