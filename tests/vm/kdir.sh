#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Print the KDIR of a kernel in the cache, making it first if needed; or of a kernel of one's
# own, whose build directory is named: DIR has a slash in it.
# usage: kdir.sh DIR|KERNEL [kdir|image|modules|release]	(a name of kernels.sh)

set -eu
. "$(dirname "$0")/lib.sh"

[ $# -ge 1 ] || die "usage: kdir.sh DIR|KERNEL (a name of kernels.sh) [kdir|image|modules|release]"
if [[ $1 == */* ]]; then
	[ -d "$1" ] || die "$1: no such directory"
	[ -f "$1/include/config/kernel.release" ] ||
		die "$1: no kernel was built there: no include/config/kernel.release"
	case ${2:-kdir} in
	kdir)		readlink -f "$1" ;;
	image)		readlink -e "$1/arch/x86/boot/bzImage" || die "$1: no kernel for x86-64: no arch/x86/boot/bzImage" ;;
	modules)	;;
	release)	cat "$1/include/config/kernel.release" ;;
	*)		die "unknown part $2" ;;
	esac
	exit
fi
"$ROOT/tests/vm/kernels.sh" "$1"
dir=$(readlink -f "$CACHE/kernels/$1-$("$ROOT/tests/vm/kernels.sh" --hash "$1")")
case ${2:-kdir} in
kdir|image)	readlink -f "$dir/${2:-kdir}" ;;
modules)	readlink -e "$dir/modules" || true ;;
release)	cat "$dir/release" ;;
*)		die "unknown part $2" ;;
esac
