#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make image: a Debian in a disk image with the packages of this tree, Neuron devices in
# software, systemd, network and Python, and neuron-vm, which starts a machine with it.
# Boots with UEFI, Secure Boot included, or from the kernel beside it.
#
# usage: make.sh RELEASE DIR [PACKAGE...]	(debian-12 or debian-13; further packages)
#        make.sh --disk ROOT DIR		of a root that is there, which is changed

set -eu -o pipefail
. "$(dirname "$0")/../vm/lib.sh"
cd "$ROOT"

release=$1 dir=$2
shift 2
if [ "$release" = --disk ]; then
	root=$dir dir=$1 suite=''
else
	suite=$(suite_of "$release")
fi
tests/deps.sh root image
mkdir -p "$dir" "$CACHE/tmp" "$CACHE/archives/$suite"
dir=$(readlink -f "$dir")
work=$(mktemp -d "$CACHE/tmp/image.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/debs"
log=$CACHE/logs/image.log
mkdir -p "${log%/*}"
: >"$log"

inside() {
	logged "$log" tests/root.sh run "$root" --bind "$CACHE/archives/$suite:/var/cache/apt/archives" \
		--bind "$work/debs:/debs" bash -euo pipefail -c "$1"
}

# A root with all of it.
populate() {
	local base

	say "building the packages"
	logged "$log" tests/debs.sh "$release" "$work/debs"
	rm -f "$work"/debs/*dbgsym*
	base=$(tests/root.sh make "$release" linux-image-amd64 linux-headers-amd64 systemd-sysv dbus udev kmod \
		adduser login procps less iproute2 python3 zstd shim-signed grub-efi-amd64-signed "$@")
	root=$work/root
	cp -a --reflink=auto "$base" "$root"
	say "installing them"
	# Not started: this is no machine. The modules are built for the kernel in the root.
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod +x "$root/usr/sbin/policy-rc.d"
	inside 'apt-get -q -y --no-install-recommends install /debs/*.deb'
	rm "$root/usr/sbin/policy-rc.d"
}

configure() {
	local n

	cp -r tests/image/files/. "$root/"
	mkdir -p "$root/shared"
	echo neuron >"$root/etc/hostname"
	printf '127.0.0.1 localhost\n127.0.1.1 neuron\n' >"$root/etc/hosts"
	# What neuron-vm --lan makes them; the card's address says which one it is.
	for n in {1..9}; do
		echo "10.1.0.$n neuron$n" >>"$root/etc/hosts"
		printf '%s\n' '[Match]' "MACAddress=52:54:00:01:00:0$n" '[Network]' "Address=10.1.0.$n/24" \
			>"$root/etc/systemd/network/70-lan-$n.network"
	done
	echo 'nameserver 10.0.2.3' >"$root/etc/resolv.conf"
	: >"$root/etc/machine-id"
	# A tenth of the time to load it: what machines of QEMU and of clouds have.
	sed -i 's/^MODULES=.*/MODULES=list/' "$root/etc/initramfs-tools/initramfs.conf"
	printf '%s\n' ext4 virtio_pci virtio_blk virtio_scsi sd_mod ahci nvme \
		>>"$root/etc/initramfs-tools/modules"
	inside 'systemctl enable neuron-command.service systemd-networkd.service
		update-initramfs -u; rm -rf /var/lib/apt/lists/*'
	rmdir "$root/debs"
}

# The disk: what firmware starts, and the root.
disk() {
	local efi=$work/efi raw=$work/disk

	truncate -s 64M "$efi"
	mformat -i "$efi" -T 131072 -h 64 -s 32 ::
	mmd -i "$efi" ::/EFI ::/EFI/BOOT ::/EFI/debian
	mcopy -i "$efi" "$root/usr/lib/shim/shimx64.efi.signed" ::/EFI/BOOT/BOOTX64.EFI
	mcopy -i "$efi" "$root/usr/lib/shim/mmx64.efi.signed" ::/EFI/BOOT/mmx64.efi
	mcopy -i "$efi" "$root/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed" ::/EFI/BOOT/grubx64.efi
	mcopy -i "$efi" tests/image/grub.cfg ::/EFI/debian/grub.cfg
	truncate -s 8G "$raw"
	printf '%s\n' 'label: gpt' 'start=1MiB, size=64MiB, type=U' 'start=65MiB, type=L' |
		sfdisk -q "$raw"
	dd if="$efi" of="$raw" bs=1M seek=1 conv=notrunc,sparse status=none
	mke2fs -q -F -t ext4 -L neuron -d "$root" -E offset=$((65 << 20)) "$raw" $((8190 - 65))M
	cp -L "$root/vmlinuz" "$root/initrd.img" "$dir/"
	# A quarter of the time that zlib takes, and it is smaller; QEMU before 5.1 cannot read it.
	qemu-img convert -c -o compression_type=zstd -O qcow2 "$raw" "$dir/neuron.qcow2"
}

[ -z "$suite" ] || populate "$@"
configure
say "writing $dir/neuron.qcow2"
disk >>"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
cp tests/image/neuron-vm "$dir/"
echo "$dir"
