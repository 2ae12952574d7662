#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A machine with a card in use does not sleep; the card works before and after the attempt, and
# without the driver there is no objection.

bad=0
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; bad=1; fi
}
root=/sys/devices/virtual/neuron_device

# Devices only: nothing is powered off, and they come back after 5 s.
attempt() {
	echo devices >/sys/power/pm_test
	echo "$1" >/sys/power/state 2>/dev/null
}

device() {
	ls -d "$root"/neuron[0-9]* 2>/dev/null
}

modprobe neuron_pci hbm_limit=64
n=0
until [ -n "$(device)" ] || [ $n = 300 ]; do
	n=$((n + 1))
	sleep 0.1
done
check "this kernel can be told to sleep" 'grep -q freeze /sys/power/state'
before=$(cat "$(device)/info/serial_number")
for state in freeze mem; do
	grep -q $state /sys/power/state || continue
	check "$state: refused" '! attempt $state'
done
check "it says why" 'dmesg | grep -q "neuron_pci.*no sleep: the card would lose its memory"'
check "the card answers" "[ \"\$(cat \$(device)/info/serial_number)\" = \"$before\" ]"
check "and can be opened" 'exec 3<>/dev/neuron0 && exec 3>&-'
modprobe -r neuron_pci
check "without the driver: not refused" 'attempt freeze'
exit $bad
