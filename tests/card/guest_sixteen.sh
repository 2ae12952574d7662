#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The 16 cards of a trn2.48xlarge: all are found, have the number that their routing id says,
# and are linked as in the software instance of that kind; loading and unloading at once.

bad=0
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; bad=1; fi
}
root=/sys/devices/virtual/neuron_device

links() {
	for i in $(seq 0 15); do
		echo "$i: $(cat "$root/neuron$i/connected_devices")"
	done
}

devices() {
	ls -d "$root"/neuron[0-9]* 2>/dev/null | wc -l
}

serials() {
	cat "$root"/neuron*/info/serial_number | wc -l
}

wait_for() {
	n=0
	until [ "$(devices)" = "$1" ] || [ $n = 600 ]; do
		n=$((n + 1))
		sleep 0.1
	done
	[ "$(devices)" = "$1" ]
}

for cycle in 1 2; do
	modprobe neuron_pci hbm_limit=64
	check "load, time $cycle: 16 devices" 'wait_for 16'
	check "each has a serial number" '[ "$(serials)" = 16 ]'
	links >/tmp/card.links
	modprobe -r neuron_pci
	check "unload: none" 'wait_for 0'
done
modprobe neuron_emu instance=trn2.48xlarge
links >/tmp/soft.links
modprobe -r neuron_emu
check "linked as the software instance is" \
	'grep -q "^15: .*," /tmp/card.links && cmp /tmp/card.links /tmp/soft.links'
exit $bad
