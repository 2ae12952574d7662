#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The installed rules, with the distribution's udev: group, mode and links.

bad=0
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; bad=1; fi
}
node=/dev/neuron0
serial=$(cat /sys/class/neuron_device/neuron0/info/serial_number)

touch /etc/gshadow /etc/shadow
chmod 640 /etc/gshadow /etc/shadow
check "systemd-sysusers makes the group" 'systemd-sysusers 2>&1'
check "which is called neuron" 'grep -q "^neuron:" /etc/group'

udevd=/usr/lib/systemd/systemd-udevd
$udevd --resolve-names=late >/tmp/udevd 2>&1 &
pid=$!
i=0
while [ ! -e /run/udev/control ] && [ $i -lt 300 ]; do sleep 0.1; i=$((i + 1)); done
check "udev runs" '[ -e /run/udev/control ]'
trigger() {
	udevadm trigger --action="$1" --subsystem-match=neuron_device
	udevadm settle --timeout=60
}
check "trigger" 'trigger add'
ls -lnL $node /dev/neuron/by-serial/* >/tmp/nodes
cat /tmp/nodes
check "nobody else can open it" '[ "$(stat -c %a $node)" = 660 ]'
check "the group can" '[ "$(stat -c %G $node)" = neuron ] && [ "$(stat -c %U $node)" = root ]'
check "a link by serial number" \
	"[ \"\$(readlink -f /dev/neuron/by-serial/$serial)\" = $node ]"
check "no link by path: it is on no bus" '[ ! -e /dev/neuron/by-path ]'
check "rules without complaint" '! grep -i neuron /tmp/udevd'

# Devices that come later, and go.
check "load 4 devices" 'rmmod neuron_emu && modprobe neuron_emu nr_devices=4 && udevadm settle --timeout=60'
check "4 links" '[ "$(ls /dev/neuron/by-serial | wc -l)" = 4 ]'
check "all nodes are the group's" \
	'[ "$(stat -c "%a %G" /dev/neuron[0-3] | sort -u)" = "660 neuron" ]'
check "unload" 'rmmod neuron_emu && udevadm settle --timeout=60'
check "no links" '[ ! -e /dev/neuron/by-serial ]'
kill $pid
wait $pid
rm -rf /run/udev
check "load for the tests that follow" 'modprobe neuron_emu'
exit $bad
