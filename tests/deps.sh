#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Install the distribution packages that a target needs. Silent, and without
# touching the network, when they are there.
#
# usage: deps.sh GROUP...
#   build	modules, library, tools
#   test	host unit tests, property tests, fuzzing
#   vm		building test kernels and booting them
#   dkms	the DKMS test
#   model	training the example model
#   check	static checks
#   root	a Debian in a directory
#   image	a disk image with a Debian
#   imagetest	its test
#   secureboot	the image on a machine with Secure Boot
#   plot	plots of the benchmark
#   series	make series
#   cover	coverage reports
#   memcheck	make valgrind
#   layers	make layers
#   arm64	a guest of another architecture
#   clang	the modules built with clang
#   rtd		the daemon, and its test
#   deb		make deb
#   screenshots	make screenshots
#   print	only print the packages of the groups that follow

set -eu

print=0
packages=()
rtd=(libgrpc-dev libprotobuf-c-dev protobuf-c-compiler)
for group; do
	case $group in
	print)	print=1 ;;
	build)	packages+=(gcc make libc6-dev pkg-config libarchive-dev
			   libjansson-dev nettle-dev zlib1g-dev libudev-dev
			   libsmartcols-dev libncurses-dev libmicrohttpd-dev pahole kmod) ;;
	test)	packages+=(gcc make libc6-dev pkg-config libcmocka-dev python3
			   libarchive-dev libjansson-dev nettle-dev zlib1g-dev
			   libfabric-dev libpmix-dev openmpi-bin iproute2 libudev-dev procps python3-prometheus-client strace tmux
			   valgrind) ;;
	vm)	packages+=(gcc ccache make libc6-dev bc bison flex libelf-dev libssl-dev
			   pahole kmod cpio gzip xz-utils tar busybox-static dash
			   qemu-system-x86 rsync libarchive-dev libjansson-dev nettle-dev
			   zlib1g-dev libudev-dev libsmartcols-dev libncurses-dev libmicrohttpd-dev
			   pkg-config udev systemd) ;;
	dkms)	packages+=(dkms patch pahole kmod) ;;
	model)	packages+=(python3 python3-numpy gcc make libc6-dev libarchive-dev
			   libjansson-dev nettle-dev zlib1g-dev)
		# Not needed where another package provides it (they conflict).
		command -v npm >/dev/null || packages+=(npm) ;;
	check)	packages+=(mandoc sparse codespell cppcheck shellcheck python3 perl
			   python3-ply python3-git) ;;
	root)	packages+=(mmdebstrap debian-archive-keyring e2fsprogs) ;;
	image)	packages+=(qemu-system-x86 qemu-utils mtools fdisk e2fsprogs) ;;
	imagetest)	packages+=(python3-yaml) ;;
	secureboot)	packages+=(ovmf qemu-utils) ;;
	plot)	packages+=(python3-matplotlib) ;;
	series)	packages+=(git python3) ;;
	screenshots)	packages+=(tmux aha chromium fonts-dejavu-core pngquant optipng) ;;
	deb)	packages+=(build-essential debhelper dh-dkms fakeroot libfabric-dev libpmix-dev "${rtd[@]}") ;;
	cover)	packages+=(lcov) ;;
	memcheck)	packages+=(valgrind) ;;
	rtd)	packages+=("${rtd[@]}" protobuf-compiler python3-grpcio python3-protobuf) ;;
	arm64)	packages+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-system-arm) ;;
	clang)	packages+=(clang lld llvm) ;;
	layers)	packages+=(python3 python3-networkx graphviz) ;;
	*)	echo "deps.sh: unknown group $group" >&2
		exit 2 ;;
	esac
done

if [ $print = 1 ]; then
	printf '%s\n' "${packages[@]}" | sort -u
	exit
fi

missing=()
for package in $(printf '%s\n' "${packages[@]}" | sort -u); do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=none
	[ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "deps.sh: as root, run: apt-get install ${missing[*]}" >&2
	exit 1
fi

# Steps run beside each other, and apt waits for the lock of dpkg, not for that of its lists.
# What a package starts does not get the lock.
exec 9<"$0"
flock 9
echo "# installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
apt=(apt-get -qq -y -o DPkg::Lock::Timeout=600)
install=("${apt[@]}" install --no-install-recommends "${missing[@]}")
if ! "${install[@]}" >"$log" 2>&1 9<&-; then
	# Package lists are missing or old on a fresh machine.
	if ! { "${apt[@]}" update && "${install[@]}"; } >"$log" 2>&1 9<&-; then
		cat "$log" >&2
		exit 1
	fi
fi
