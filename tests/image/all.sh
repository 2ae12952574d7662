# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154	# test.sh has them
#
# What takes long: part of test.sh.

# The published schema of the Container Device Interface.
schema() {
	# In Debian 13 the package has another name.
	# shellcheck disable=SC2016	# expanded there
	tests/root.sh run "$builder" --bind "$files:/files" bash -euc '
		cd "$(mktemp -d)"
		apt-get -q download golang-tags.cncf-container-device-interface-dev ||
			apt-get -q download golang-github-container-orchestrated-devices-container-device-interface-dev
		dpkg-deb -x ./*.deb .
		mkdir -p /files/schema
		cp "$(find . -name schema.json)" "$(find . -name defs.json)" /files/schema/'
}

# A runner with the packages of the workflow and what it built, and then as a machine.
runner() {
	local base root=$work/runner kernel

	base=$(tests/root.sh make "$release" git make linux-image-amd64 systemd-sysv dbus udev kmod adduser \
		login procps zstd shim-signed grub-efi-amd64-signed)
	cp -a --reflink=auto "$base" "$root"
	kernel=$(cd "$root/boot" && ls vmlinuz-*)
	# shellcheck disable=SC2016	# a script
	printf '#!/bin/sh\n[ "$*" = -r ] || exec /bin/uname "$@"\necho %s\n' "${kernel#vmlinuz-}" \
		>"$root/usr/local/bin/uname"
	printf '#!/bin/sh\nexec "$@"\n' >"$root/usr/local/bin/sudo"
	chmod +x "$root/usr/local/bin/uname" "$root/usr/local/bin/sudo"
	echo 'APT::Get::Assume-Yes "true";' >"$root/etc/apt/apt.conf.d/yes"
	copy_tree "$root/job/neuron-open"
	tests/root.sh run "$root" --bind "$CACHE/archives/$suite:/var/cache/apt/archives" \
		bash -ec "cd /job; $(step modules Install)" || return
	rm -r "$root/job/neuron-open" "$root/usr/local/bin/uname"
	{
		echo 'set -e; cd /job'
		for name in Load Test Unload; do
			step modules $name
		done
	} >"$root/job/steps"
	printf '%s\n' '#!/bin/sh' '[ "$(ls -d /dev/neuron[01] | wc -l)" = 2 ] && neuron-demo -n 100' \
		>"$root/job/run-tests"
	chmod +x "$root/job/run-tests"
	mkdir "$work/runner-image"
	tests/image/make.sh --disk "$root" "$work/runner-image" || return
	"$work/runner-image/neuron-vm" --timeout=900 --append=modprobe.blacklist=neuron_emu -- bash -c '! lsmod | grep neuron; bash /job/steps &&
		! lsmod | grep neuron'
}

suite=$(suite_of "$release")
point "the schema of CDI" schema
points programs "$two"
point "the workflow that loads modules" runner
tests/deps.sh secureboot
points_of tests/image/secureboot.py "$image"
