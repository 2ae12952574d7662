#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Cards whose BARs are too short, or missing: each is used, or left alone with a line that says
# why, and nothing of it stays behind. The order is that of the cards of the machine.

bad=0
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; bad=1; fi
}
root=/sys/devices/virtual/neuron_device

said() {
	dmesg | grep -q "neuron_pci 0000:00:0$1.0: $2"
}

bound() {
	[ -e "/sys/bus/pci/devices/0000:00:0$1.0/driver" ]
}

devices() {
	ls -d "$root"/neuron[0-9]* 2>/dev/null | wc -l
}

claimed() {
	grep -c neuron_pci /proc/iomem
}

modprobe neuron_pci hbm_limit=64
# Probing goes on beside modprobe.
n=0
until [ "$(devices)" = 2 ] || [ $n = 300 ]; do
	n=$((n + 1))
	sleep 0.1
done
check "trn2, short BAR 4: used" 'bound 1 && said 1 "BAR 4 is too short for device memory"'
check "trn2, no BAR 4: used" 'bound 2 && said 2 "BAR 4 is too short for device memory: 0"'
check "trn1, short BAR 4: left alone" '! bound 3 && said 3 "BAR 4 is too short for device memory"'
check "trn2, short BAR 0: left alone" '! bound 4 && said 4 "BAR 0 is too short"'
check "two devices" '[ "$(devices)" = 2 ]'
modprobe -r neuron_pci
check "unload: no device and no range is left" '[ "$(devices) $(claimed)" = "0 0" ]'
exit $bad
