#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A QEMU with a vfio-user client (10.1 or newer), unpacked into the cache with the libraries
# that it needs; nothing is installed. It comes from the backports of the next release, through
# the archive that this machine uses. Prints the program's name.
#
# usage: qemu.sh [--cached]	--cached: fail rather than fetch it

set -eu -o pipefail
. "$(dirname "$0")/../vm/lib.sh"

DEBIAN_NEXT=trixie
dir=$CACHE/qemu-vfio-user

fetch() {
	local uri suite package
	local -a apt

	[ ! -e "$dir/.complete" ] || return 0
	uri=$(archive Debian)
	[ -n "$uri" ] || die "no Debian archive among this machine's package sources"
	rm -rf "$dir"
	mkdir -p "$dir"/apt/{parts,lists/partial,cache/archives/partial} "$dir/root"
	: >"$dir/apt/status"
	for suite in "$DEBIAN_NEXT" "$DEBIAN_NEXT-backports"; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $suite main"
	done >"$dir/apt/sources.list"
	apt=(-qq -o "Dir::Etc::sourcelist=$dir/apt/sources.list"
	     -o "Dir::Etc::sourceparts=$dir/apt/parts" -o "Dir::Etc::preferencesparts=$dir/apt/parts"
	     -o "Dir::State::lists=$dir/apt/lists" -o "Dir::State::status=$dir/apt/status"
	     -o "Dir::Cache=$dir/apt/cache" -o APT::Sandbox::User=root)
	say "fetching QEMU from $DEBIAN_NEXT-backports"
	apt-get "${apt[@]}" update >&2
	apt-get "${apt[@]}" -y --no-install-recommends --download-only -t "$DEBIAN_NEXT-backports" \
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
	"$dir/qemu-system-x86_64" -device vfio-user-pci,help | grep -q "^vfio-user-pci options" ||
		die "this QEMU has no vfio-user-pci"
	touch "$dir/.complete"
}

if [ "${1:-}" = --cached ]; then
	[ -e "$dir/.complete" ] || exit 1
else
	with_lock qemu-vfio-user fetch
fi
echo "$dir/qemu-system-x86_64"
