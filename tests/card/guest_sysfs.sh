#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A card shows the same files in sysfs as the software device of its kind, and what says which
# kind it is has the same values. Both descriptions were written down independently.

bad=0
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; bad=1; fi
}
root=/sys/devices/virtual/neuron_device

# What only one of the two has, or what differs with the number of the device.
names() {
	(cd "$1" && find . -type f ! -name uevent ! -name emulated ! -name pretend \
		! -path './power/*' | sort)
}
values() {
	(cd "$1" && for f in core_count info/architecture/* nc_count; do
		[ ! -f "$f" ] || echo "$f: $(cat "$f")"
	done)
}

modprobe neuron_pci
for card in "$root"/neuron*; do
	kind=$(tr TI ti <"$card/info/architecture/instance_type")
	modprobe neuron_emu "arch=$kind"
	soft=$(dirname "$root"/neuron*/emulated)
	names "$card" >/tmp/card.names
	names "$soft" >/tmp/soft.names
	check "$kind: the same files in sysfs: $(wc -l </tmp/card.names)" \
		'[ -s /tmp/card.names ] && cmp /tmp/card.names /tmp/soft.names'
	values "$card" >/tmp/card.values
	values "$soft" >/tmp/soft.values
	check "$kind: the same kind of device" \
		'[ "$(wc -l </tmp/card.values)" -ge 3 ] && cmp /tmp/card.values /tmp/soft.values'
	cat /tmp/card.values
	modprobe -r neuron_emu
	modprobe neuron_pci
done
modprobe -r neuron_pci
exit $bad
