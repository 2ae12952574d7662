#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Every instance type: number and kind of its devices, their links, what they cost
# at rest. Then the tests of the driver on the other architectures.

bad=0
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; bad=1; fi
}
root=/sys/devices/virtual/neuron_device

# Without a process for each: a guest of 16 devices forks hundreds of times otherwise.
peers_of() {
	IFS=', ' read -r a b c d more <$root/neuron$1/connected_devices
	peers="$a $b $c $d $more"
}

links() {
	peers_of "$1"
	echo $peers
}

# Device $1 has $2 links, each of them to another device that links back.
links_good() {
	seen=' '
	n=0
	peers_of "$1"
	for peer in $peers; do
		n=$((n + 1))
		[ "$peer" != "$1" ] && [ -e $root/neuron"$peer" ] || return 1
		case $seen in *" $peer "*) return 1 ;; esac
		seen="$seen$peer "
		peers_of "$peer"
		case " $peers " in *" $1 "*) ;; *) return 1 ;; esac
	done
	[ $n = "$2" ]
}

sorted() {
	tr -d ' ' <$root/neuron"$1"/connected_devices | tr , '\n' | sort -n | tr '\n' ' '
}

# kB that are free, once memory that is about to be free is free
available() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 1
	while read -r key value _; do
		[ "$key" != MemAvailable: ] || echo "$value"
	done </proc/meminfo
}

check "unload" 'rmmod neuron_emu'
# type:devices:name:cores:links of most devices:links of the others
for row in inf1.xlarge:1:Inferentia:4:0:0 inf1.2xlarge:1:Inferentia:4:0:0 \
	inf1.6xlarge:4:Inferentia:4:2:1 inf1.24xlarge:16:Inferentia:4:2:1 \
	inf2.xlarge:1:Inferentia2:2:0:0 inf2.8xlarge:1:Inferentia2:2:0:0 \
	inf2.24xlarge:6:Inferentia2:2:2:1 inf2.48xlarge:12:Inferentia2:2:2:2 \
	trn1.2xlarge:1:Trainium1:2:0:0 trn1.32xlarge:16:Trainium1:2:4:4 \
	trn2.48xlarge:16:Trainium2:8:4:4; do
	IFS=: read -r type devices name cores most ends <<-EOF
	$row
	EOF
	check "load $type" "modprobe neuron_emu instance=$type"
	check "$type: $devices devices" "[ \$(ls -d $root/neuron[0-9]* | wc -l) = $devices ]"
	wrong=0 i=0
	while [ $i -lt "$devices" ]; do
		read -r is <$root/neuron$i/info/architecture/device_name
		read -r has <$root/neuron$i/core_count
		[ "$is:$has" = "$name:$cores" ] || wrong=$((wrong + 1))
		links_good $i "$most" || { links_good $i "$ends" &&
			{ [ $i = 0 ] || [ $i = $((devices - 1)) ]; }; } || wrong=$((wrong + 1))
		i=$((i + 1))
	done
	check "$type: every device is a $name and its links lead back" "[ $wrong = 0 ]"
	# what is documented
	case $type in
	inf1.6xlarge)
		check "$type: chain" '[ "$(links 0)" = 1 ] && [ "$(links 1)" = "2 0" ]' ;;
	inf2.48xlarge)
		check "$type: ring" '[ "$(links 0)" = "11 1" ] && [ "$(links 11)" = "10 0" ]' ;;
	inf2.24xlarge)
		check "$type: chain" '[ "$(links 0)" = 1 ] && [ "$(links 5)" = 4 ]' ;;
	trn1.32xlarge)
		check "$type: device 0" '[ "$(cat $root/neuron0/connected_devices)" = "12, 3, 4, 1" ]'
		check "$type: device 5" '[ "$(cat $root/neuron5/connected_devices)" = "1, 4, 9, 6" ]'
		;;
	trn2.48xlarge)
		check "$type: device 0" '[ "$(sorted 0)" = "1 3 4 12 " ]'
		check "$type: device 5" '[ "$(sorted 5)" = "1 4 6 9 " ]'
		;;
	esac
	for file in arch_type device_name instance_type; do
		grep -hvE '^[A-Z][A-Za-z]*[0-9]?$|^N[DC]v[1-4]$' $root/neuron*/info/architecture/$file
	done >/tmp/odd
	check "$type: info files" '[ ! -s /tmp/odd ]'
	check "$type: unload" 'rmmod neuron_emu'
done
check "unknown instance is refused" '! modprobe neuron_emu instance=trn9.huge 2>/dev/null'

# Whatever else the guest does in between counts, too, and may even free memory: the
# smallest of three is not too much, the largest is something.  Kernels that check add to
# every allocation, and are not asked.
each='' most=0 tries='1 2 3'
[ ! -e /sys/kernel/debug/kmemleak ] && ! grep -q kasan /proc/kallsyms || tries=
for try in $tries; do
	modprobe neuron_emu nr_devices=0
	before=$(available)
	rmmod neuron_emu
	modprobe neuron_emu instance=trn2.48xlarge
	after=$(available)
	entries=$(find $root/neuron0 | wc -l)
	rmmod neuron_emu
	one=$(((before - after) / 16))
	echo "# load $try: a trn2 at rest takes $one KiB, with $entries entries in sysfs"
	[ -n "$each" ] && [ "$each" -le $one ] || each=$one
	[ $most -ge $one ] || most=$one
done
# Twice what it takes (tests/bench/README.md): entries of sysfs, and tables of the software
# device. What the allocator knows of an HBM is made when somebody wants memory.
[ -z "$tries" ] || check "16 trn2 at rest take something, and at most 1024 KiB each" \
	"[ $most -gt 0 ] && [ $each -le 1024 ]"

for arch in inf1:4:Inf1:NDv1:NCv1 trn1:2:Trn1:NDv2:NCv2; do
	IFS=: read -r name cores type nd nc <<-EOF
	$arch
	EOF
	check "load as $name" "modprobe neuron_emu arch=$name"
	check "$name: info files" "[ \"\$(cat $root/neuron0/info/architecture/instance_type \
		$root/neuron0/info/architecture/arch_type \
		$root/neuron0/neuron_core0/info/architecture/arch_type | tr '\n' ' ')\" = \
		'$type $nd $nc ' ]"
	check "$name: a core for each" "[ -e $root/neuron0/neuron_core$((cores - 1)) ]"
	for test in /tests/*-driver /tests/*-dma_compute; do
		[ -x "$test" ] || continue
		"$test" >/tmp/out 2>&1
		status=$?
		grep '^not ok' /tmp/out | sed 's/^not ok/#/'
		check "$name: ${test#*-}" "[ $status = 0 ] && ! grep -q '^not ok' /tmp/out"
	done
	check "$name: unload" 'rmmod neuron_emu'
done
check "load for what follows" 'modprobe neuron_emu'
exit $bad
