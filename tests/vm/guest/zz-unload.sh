#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# After all tests: every byte is back, and the modules go.

bad=0
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; bad=1; fi
}
root=/sys/devices/virtual/neuron_device/neuron0

find $root -path '*memory_usage*' -name total >/tmp/totals
check "there are memory counters to read" '[ "$(wc -l </tmp/totals)" -gt 20 ]'
check "all of them are 0" '! xargs grep -Hvx 0 </tmp/totals'
check "rmmod" 'rmmod $(cut -d" " -f1 /proc/modules | grep -x -e neuron_emu -e neuron_pci) neuron'
exit $bad
