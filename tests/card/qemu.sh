#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A QEMU with a vfio-user client (10.1 or newer), unpacked into the cache with the libraries
# that it needs; nothing is installed. It comes from the backports of the next release, through
# the archive that this machine uses. Prints the program's name.

set -eu -o pipefail
. "$(dirname "$0")/../vm/lib.sh"

dir=$CACHE/qemu-vfio-user

fetch() {
	local package apt_conf
	local -a apt

	[ ! -e "$dir/.complete" ] || return 0
	rm -rf "$dir"
	mkdir -p "$dir/root"
	next_release "$dir/apt" "$DEBIAN_NEXT" "$DEBIAN_NEXT-backports"
	apt=(apt-get -qq "${apt_conf[@]}" -o APT::Sandbox::User=root)
	say "fetching QEMU from $DEBIAN_NEXT-backports"
	"${apt[@]}" update >&2
	"${apt[@]}" -y --no-install-recommends --download-only -t "$DEBIAN_NEXT-backports" \
		install qemu-system-x86 >&2
	for package in "$dir"/apt/cache/archives/*.deb; do
		dpkg -x "$package" "$dir/root"
	done
	rm -rf "$dir/apt"
	cat >"$dir/qemu-system-x86_64" <<-END
		#!/bin/sh
		usr=$dir/root/usr
		lib=\$usr/lib/x86_64-linux-gnu
		exec \$lib/ld-linux-x86-64.so.2 --library-path \$lib:\$lib/pulseaudio \\
			\$usr/bin/qemu-system-x86_64 -L \$usr/share/qemu -L \$usr/share/seabios "\$@"
	END
	chmod +x "$dir/qemu-system-x86_64"
	[[ $("$dir/qemu-system-x86_64" -device vfio-user-pci,help) == "vfio-user-pci options"* ]] ||
		die "this QEMU has no vfio-user-pci"
	touch "$dir/.complete"
}

with_lock qemu-vfio-user fetch
echo "$dir/qemu-system-x86_64"
