#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# After all tests: every byte is back, and the modules go.

bad=0
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; bad=1; fi
}
root=/sys/devices/virtual/neuron_device/neuron0

for f in $(find $root -path '*memory_usage*' -name total); do
	[ "$(cat "$f")" = 0 ] || { echo "not ok - $f: $(cat "$f")"; bad=1; }
done
check "all memory counters were read" '[ "$(find $root -path "*memory_usage*" -name total | wc -l)" -gt 20 ]'
check "rmmod" 'rmmod neuron_emu && rmmod neuron'
exit $bad
