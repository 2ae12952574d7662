#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Build the project's modules for a kernel of the cache, or one whose build directory is named,
# and print the directory that holds them. Built in a copy, one for each kernel, so that kernels do not
# disturb each other and the tree stays clean.
#
# usage: modules.sh DIR|KERNEL [make arguments...]	(a name of kernels.sh)

set -eu -o pipefail
. "$(dirname "$0")/lib.sh"

[ $# -ge 1 ] || die "usage: modules.sh KERNEL [make arguments...]"
kernel=$1
shift
kdir=$("$ROOT/tests/vm/kdir.sh" "$kernel")
# Warnings are errors: a warning is seen only when its file is compiled.
args=(KDIR="$kdir" WERROR=1 NEURON_TESTS=1)
case $kernel in
debug|kcsan|kmsan|7.3-debug) args+=(NEURON_KUNIT=1) ;;
fuzz) args+=(NEURON_KCOV=1) ;;
uml) args+=(NEURON_KUNIT=1 ARCH=um) ;;
arm64|arm64-64k) args+=(NEURON_KUNIT=1) ;;
uml-bench) args+=(NEURON_TESTS=0 ARCH=um) ;;
esac
[[ $kernel != arm64* ]] || args+=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)

# One copy for each work tree, kernel and set of options.
key=$(echo "$ROOT $kernel $kdir $*" | sha256sum | cut -c1-12)
dir=$CACHE/build/${kernel##*/}-$key
mkdir -p "$dir" "$CACHE/lock"
exec 9>"$CACHE/lock/build-$key"
flock 9

# Only differences are copied, and get the time of now: one that is older than an
# object which was built meanwhile would not be rebuilt.
for part in kmod uapi tests/kunit tests/vm/importer VERSION; do
	[ -e "$ROOT/$part" ] || continue
	mkdir -p "$dir/$(dirname "$part")"
	if [ -d "$ROOT/$part" ]; then
		rsync -rlp --delete --checksum --exclude='*.o' --exclude='*.ko' --exclude='*.gcno' --exclude='*.ci' --exclude='.*.cmd' \
			--exclude='*.mod' --exclude='*.mod.c' --exclude='*.cmd' \
			--exclude=modules.order --exclude=Module.symvers \
			"$ROOT/$part/" "$dir/$part/"
	else
		cp -u "$ROOT/$part" "$dir/$part"
	fi
done

# Debian's 7.3 wants the compiler of Debian 13; where there is none, that of a root.
inside=()
if [[ $kernel == 7.3* ]] && [ "$kernel" != 7.3-debug ] &&
   ! command -v x86_64-linux-gnu-gcc-14 >/dev/null; then
	root=$("$ROOT/tests/root.sh" make debian-13 gcc-14 make libc6-dev pahole kmod)
	inside=("$ROOT/tests/root.sh" run "$root" --bind "$(readlink -f "$CACHE")"
		--bind "$(readlink -f "$CACHE/kernels")")
	dir=$(readlink -f "$dir")
fi

log=$dir/build.log
: >"$log"
if ! "${inside[@]}" make -C "$dir/kmod" -j"$JOBS" "${args[@]}" "$@" >"$log" 2>&1; then
	echo "modules do not build for $kernel; see $log:" >&2
	grep -E -A6 'error|Error|undefined' "$log" | head -n 60 >&2
	exit 1
fi
grep -E 'warning:|WARNING:' "$log" >&2 || true
echo "$dir/kmod"
