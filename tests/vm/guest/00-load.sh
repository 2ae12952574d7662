#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Load and unload, and again; leaves the device of the following tests behind.

bad=0
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; bad=1; fi
}
root=/sys/devices/virtual/neuron_device

# What people have: kmod's programs, and the options that are installed.
for name in modprobe insmod rmmod modinfo; do
	check "R4: $name is kmod's" "$name --version 2>&1 | grep -q '^kmod version'"
done
conf=/usr/lib/modprobe.d/neuron.conf
grep '^#options ' $conf | while read -r _ module option; do
	modinfo -F parm $module | grep -q "^${option%%=*}:" || echo "$option"
done >/tmp/options
check "R4: the installed modprobe.d names options that exist" \
	'[ "$(grep -c "^#options " $conf)" -ge 7 ] && [ ! -s /tmp/options ]'
mkdir -p /etc/modprobe.d
sed -n 's/^#\(options neuron_emu arch=\).*/\1inf2/p' $conf >/etc/modprobe.d/neuron.conf
echo 'options neuron_emu nr_devices=3' >/etc/modprobe.d/more.conf
check "R4: load with a file of one's own in /etc/modprobe.d" 'modprobe neuron_emu'
check "R4: that replaces the installed one" \
	'[ "$(cat $root/neuron2/info/architecture/device_name)" = Inferentia2 ]'
check "R4: unload with modprobe -r, and what it needs" \
	'modprobe -r neuron_emu && ! grep -q ^neuron /proc/modules'
rm -r /etc/modprobe.d

check "load through modprobe" 'modprobe neuron_emu'
check "device node" '[ -c /dev/neuron0 ]'
check "major is named neuron" 'grep -qE "^ *[0-9]+ neuron$" /proc/devices'
check "class entry" '[ -e /sys/class/neuron_device/neuron0/core_count ]'
check "a marker says that it is no card" '[ -e $root/neuron0/emulated ]'
check "trn2 by default" '[ "$(cat $root/neuron0/info/architecture/device_name)" = Trainium2 ]'
check "version" '[ -n "$(cat /sys/module/neuron/version)" ]'
exec 9<>/dev/neuron0
check "rmmod is refused while the device is open" '! rmmod neuron_emu 2>/dev/null'
check "and neuron.ko cannot go either" '! rmmod neuron 2>/dev/null'
exec 9>&-
check "rmmod works after" 'rmmod neuron_emu && rmmod neuron'
check "nothing is left" '[ ! -e /dev/neuron0 ] && [ ! -e $root ]'

for arch in inf1:4:Inferentia trn1:2:Trainium1 inf2:2:Inferentia2 trn2:8:Trainium2 trn3:8:Trainium3; do
	name=${arch%%:*} rest=${arch#*:}
	check "load as $name" "modprobe neuron_emu arch=$name"
	check "$name: name" "[ \"\$(cat $root/neuron0/info/architecture/device_name)\" = ${rest#*:} ]"
	check "$name: cores" "[ \"\$(cat $root/neuron0/core_count)\" = ${rest%%:*} ]"
	check "$name: unload" 'rmmod neuron_emu'
done
check "unknown architecture is refused" '! modprobe neuron_emu arch=tpu 2>/dev/null'
check "less memory of cards than 64 MiB is refused" '! modprobe neuron_pci hbm_limit=63 2>/dev/null'
check "and a number that is none" '! modprobe neuron_pci hbm_limit=x 2>/dev/null'
check "64 MiB are not" 'modprobe neuron_pci hbm_limit=64 &&
	[ "$(cat /sys/module/neuron_pci/parameters/hbm_limit)" = 64 ] && rmmod neuron_pci'
check "an unknown pretence is refused" '! modprobe neuron_emu pretend=maybe 2>/dev/null'
check "an unknown arithmetic is refused" '! modprobe neuron_emu arithmetic=slide-rule 2>/dev/null'
check "65 devices are refused" '! modprobe neuron_emu nr_devices=65 2>/dev/null'
check "16 devices" 'modprobe neuron_emu nr_devices=16'
check "16 nodes" '[ "$(ls -d /dev/neuron* | wc -l)" = 16 ]'
check "neighbours of device 0" '[ "$(cat $root/neuron0/connected_devices)" = "12, 1, 3, 4" ]'
cat $root/neuron*/neuron_core*/stats/memory_usage/device_mem/total | sort -u >/tmp/totals
check "all memory counters are 0" '[ "$(cat /tmp/totals)" = 0 ]'
check "unload 16" 'rmmod neuron_emu'
i=0
while [ $i -lt 10 ] && modprobe neuron_emu && rmmod neuron_emu; do i=$((i + 1)); done
check "10 times" '[ $i = 10 ]'
check "load for the tests that follow" 'modprobe neuron_emu'
exit $bad
