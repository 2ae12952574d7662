#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Every command in README.md, word by word, on a clean Debian. The table below says
# where each one runs; a command that it does not name, and a name that README.md does
# not have, are failures.
#
# usage: readme.sh [RELEASE [PART...]]	(debian-12 or debian-13; all parts)
#
#   build	in a root with git and make: modules, with and without DKMS, library
#   guest	the same root as a virtual machine, under systemd, with its own kernel
#   fresh	in a root with git and make: what installs all that it needs
#   no		not run, for the reason given
#
# A root stands for a machine that runs its newest kernel: "uname -r" says so there.

set -eu -o pipefail
. "$(dirname "$0")/vm/lib.sh"
. "$ROOT/tests/points.sh"
cd "$ROOT"

# shellcheck disable=SC2016	# the words of README.md
places() {
	cat <<-'END'
	fresh	make demo
	no	make shell	tests/vm/shell.py presses its keys
	no	make image	tests/image/test.sh makes it and runs it
	no	build/image/neuron-vm --files=. -- neuron-demo	so does this
	no	make deb	tests/deb.sh builds and installs them
	no	apt-get install ./build/deb/*.deb	so does this
	no	make uninstall	tests/tools/install.sh
	no	make test	this is one of its steps
	build	apt-get install dkms linux-headers-amd64
	build	make dkms
	build	dkms install neuron-open/$(cat VERSION)
	guest	modprobe neuron_emu
	guest	cat /sys/devices/virtual/neuron_device/neuron0/core_count
	build	make modules && make modules_install
	build	tests/deps.sh build
	build	make lib && make install
	guest	neuron-demo
	guest	systemd-sysusers && udevadm control --reload && udevadm trigger -s neuron_device
	guest	adduser USER neuron
	guest	neuron-ls
	guest	neuron-cdi generate
	no	neuron-top	tests/tools/neuron-top.py, it would not end
	no	neuron-monitor	tests/tools/neuron-monitor.py, likewise
	guest	neuron-mem
	guest	neuron-mem map
	guest	neuron-mem owners
	guest	neuron-mem resolve 0x40012000
	guest	neuron-mem snapshot memory.json
	guest	neuron-mem timeline memory.svg
	guest	neuron-mem --failures
	guest	neuron-preflight model.neff
	guest	neuron-preflight -i trn2.48xlarge rank.neff@0-63
	guest	neuron-preflight --now model.neff
	guest	neuron-preflight --diff --budget 12G old.neff new.neff
	guest	neuron-neff plan model.neff
	guest	neuron-profile capture -n model.neff
	guest	grep drm- /proc/PID/fdinfo/*
	guest	cd /sys/class/neuron_device/neuron0
	guest	echo 8G >limits/process_memory
	guest	echo 12G >neuron_core0/limits/memory
	guest	trace-cmd record -e neuron -- PROGRAM; trace-cmd report
	guest	perf record -e 'neuron:*' -a -- PROGRAM; perf script
	guest	bpftrace -e 'tracepoint:neuron:neuron_alloc { @[comm, args->category] = sum(args->size); }'
	fresh	tests/vm/run.sh 6.12 --stack --test my-test.sh
	fresh	tests/vm/run.sh debug --stack --test my-test.sh
	fresh	tests/uml/run.sh
	fresh	tests/vm/kdir.sh 7.3
	fresh	tests/vm/kernels.sh --update 6.12
	fresh	make series
	no	make test-all	this is one of its steps
	no	make coverage	the host tests, which make test runs
	no	make valgrind	half an hour
	no	make coverage-lib	a step of make test-all
	no	make coverage-vm	a step of make test-all
	no	make kcsan	a step of make test-all
	no	make kmsan	a step of make test-all
	no	make mutate SECONDS=1800 SEED=1	half an hour
	no	make fuzz-ioctl SECONDS=3600 SEED=1	an hour
	no	make screenshots	a browser to install
	no	make bench	an hour
	no	make bench-alloc	a quarter of an hour
	no	make bench-nrt	a quarter of an hour
	no	make bench-pools	a quarter of an hour
	no	make bench-rtd	it takes more packages
	END
}

# The commands in README.md: the first column of its indented blocks, where a block
# has two. "Where things are" has a tree of files instead.
commands() {
	sed -E '/^## /h; /^    [^ ]/!d; G; /\n## Where things are/d; s/\n.*//; s/^ +//;
		s/(\t| {2,}).*//' README.md
}

release=${1:-debian-12}
[ $# = 0 ] || shift
[ $# -gt 0 ] || set -- build guest fresh
label="README, $release"
suite=$(suite_of "$release")
# The kernels have the same names in each release.
cache=$CACHE
[ "$release" = debian-12 ] || cache=$CACHE/$release
mkdir -p "$cache/tmp" "$cache/kernels" "$CACHE/archives/$suite" "$CACHE/logs"
work=$(mktemp -d "$cache/tmp/readme.XXXXXX")
trap 'rm -rf "$work"' EXIT
log=$work/log

# A root of its own in $root, with this tree in ~/neuron.
new_root() {
	local base
	base=$(tests/root.sh make "$release" git make "$@")
	root=$work/root
	rm -rf "$root"
	cp -a --reflink=auto "$base" "$root"
	copy_tree "$root/root/neuron"
	# The person who says yes.
	echo 'APT::Get::Assume-Yes "true";' >"$root/etc/apt/apt.conf.d/yes"
}

inside() {
	tests/root.sh run "$root" --bind "$CACHE/archives/$suite:/var/cache/apt/archives" \
		--bind "$cache" --bind "$(dirname "$(readlink -f "$cache/kernels")")" \
		--env NEURON_CACHE="$cache" bash -c "cd ~/neuron && $1" </dev/null
}

# Each command that runs in a place, in README.md's order.
run_here() {
	local command status

	while read -r command; do
		status=0
		inside "$command" >"$log" 2>&1 || status=$?
		result $status "$command"
	done < <(commands_of "$1")
}

commands_of() {
	commands | grep -xF -f <(places | sed -n "s/^$1\t//p")
}

machine() {
	new_root linux-image-amd64 systemd-sysv udev adduser kmod "$@"
	kernel=$(cd "$root/boot" && ls vmlinuz-*)
	kernel=${kernel#vmlinuz-}
	printf '#!/bin/sh\n[ "$*" = -r ] || exec /bin/uname "$@"\necho %s\n' "$kernel" \
		>"$root/usr/local/bin/uname"
	chmod +x "$root/usr/local/bin/uname"
}

part_build() {
	local status=0

	run_here build
	# Each way by itself: R2.
	# shellcheck disable=SC2016
	inside 'cd /lib/modules/$(uname -r)/updates && mv dkms /root && cd - && make modules_install &&
		modprobe -S $(uname -r) -n -v neuron_emu' >"$log" 2>&1 || status=$?
	result $status "modprobe finds what make modules_install installed"
	status=0
	# shellcheck disable=SC2016
	inside 'cd /lib/modules/$(uname -r)/updates &&
		find .. -name "neuron*.ko*" -delete && mv /root/dkms . &&
		depmod $(uname -r) && modprobe -S $(uname -r) -n -v neuron_emu' >"$log" 2>&1 || status=$?
	result $status "modprobe finds what DKMS installed"
	status=0
	inside 'neuron-neff --help >/dev/null && neuron-mem --help' >"$log" 2>&1 || status=$?
	result $status "tools start"
}

# The script that is the guest's only service. Names in capitals and files that a
# reader has are put in.
guest_script() {
	local command shown

	cat <<-'END'
	#!/bin/bash
	# Into a file: at a terminal programs wait for keys, into a pipe perf records.
	touch /run/out
	tail -f /run/out >/dev/ttyS1 &
	exec >/run/out 2>&1 </dev/null
	export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	cd /root/neuron
	mkdir -p /run/readme && cd /run/readme
	cp /root/neuron/tests/models/mnist-bf16.neff model.neff
	cp model.neff old.neff
	cp model.neff new.neff
	useradd somebody
	udevadm settle
	END
	while read -r command; do
		shown=$command
		case $command in
		# It runs until somebody stops it.
		bpftrace*)	command="{ sleep 60; neuron-demo -n 1 >/dev/null; } & timeout -s INT 120 $command" ;;
		# Not where an earlier line went to.
		trace-cmd*|perf*) command="cd /run/readme; ${command//PROGRAM/neuron-demo -n 1}" ;;
		*PID*)		command="sleep 900 9<>/dev/neuron0 & sleep 1; ${command/PID/\$!}" ;;
		*)		command=${command/USER/somebody} ;;
		esac
		printf 'echo "# "%q\n{ %s\n} && echo ok - %q || echo not ok - %q\n' \
			"$shown" "$command" "$shown" "$shown"
	done < <(commands_of guest)
	cat <<-'END'
	[ "$(stat -c %G /dev/neuron0)" = neuron ] && id -nG somebody | grep -qw neuron &&
		echo "ok - the group may" || echo "not ok - the group may"
	echo "# done"
	sleep 3
	reboot -f
	END
}

part_guest() {
	local status=0 output=$CACHE/logs/readme-$release command

	guest_script >"$root/root/guest"
	chmod +x "$root/root/guest"
	printf '%s\n' '[Unit]' 'After=systemd-udev-settle.service' 'Wants=systemd-udev-settle.service' \
		'[Service]' 'Type=oneshot' 'ExecStart=/root/guest' \
		>"$root/etc/systemd/system/readme.service"
	rm -f "$root/usr/local/bin/uname"
	logged "$log" mke2fs -q -F -t ext4 -d "$root" "$work/disk" 6G
	timeout -k 5 1800 qemu-system-x86_64 -nodefaults -no-user-config -display none \
		-machine pc -accel tcg,thread=multi -cpu max,-cx16 -smp 2 -m 2048 -no-reboot \
		-kernel "$root/boot/vmlinuz-$kernel" -initrd "$root/boot/initrd.img-$kernel" \
		-append "root=/dev/vda rw console=ttyS0 no_timer_check mitigations=off panic=-1 systemd.unit=readme.service" \
		-drive "file=$work/disk,format=raw,if=virtio,cache=unsafe" \
		-serial "file:$output.console" -serial "file:$output.output" \
		</dev/null >"$log" 2>&1 || status=$?
	[ ! -e "$output.output" ] || tr -d '\r' <"$output.output" >>"$log"
	mv "$log" "$output.log"
	while read -r command; do
		status=0
		# What it printed itself.
		sed -n '/^# /h; G; s/^\(.*\)\n# \(.*\)$/\2\t\1/p' "$output.log" |
			awk -F '\t' -v command="$command" '$1 == command { print $2 }' >"$log"
		grep -qxF -e "ok - $command" "$output.log" || status=1
		result $status "$command"
	done < <(commands_of guest; echo "the group may")
}

part_fresh() {
	new_root
	echo 'echo ok - mine' >"$root/root/neuron/my-test.sh"
	sed -i '1i#!/bin/sh' "$root/root/neuron/my-test.sh"
	run_here fresh
}

tests/deps.sh root vm
named=0
diff <(commands | sort -u) <(places | cut -f2 | sort -u) >"$log" || named=1
result $named "each command has its place, and the other way round"

# Recorders are "the usual tools".
for part; do
	case $part in
	build)	if [[ " $* " == *" guest "* ]]; then
			machine trace-cmd linux-perf bpftrace
		else
			machine
		fi
		part_build ;;
	guest)	part_guest ;;
	fresh)	part_fresh ;;
	*)	die "unknown part $part" ;;
	esac
done

echo "# README on $release: $passed passed, $failed failed"
[ $failed = 0 ]
