#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The series of make.sh, patch by patch: it applies, checkpatch is content, every object that
# is there compiles without a warning.  In the end the modules link against the symbols of the
# distribution's kernel (but for KUnit and the dmem controller, which that one has not), the
# kernel's own build reaches them, and the selftests compile.
#
# usage: check.sh

set -u -o pipefail
. "$(dirname "$0")/../vm/lib.sh"

"$ROOT/tests/deps.sh" build vm check series || exit 1
source=$("$ROOT/tests/vm/kernels.sh" --source 7.3) || exit 1
"$ROOT/tests/vm/kernels.sh" 7.3 || exit 1
work=$CACHE/build/series
tree=$work/tree
kernel=$work/kernel
log=$CACHE/logs/series.log
driver=drivers/accel/neuron
passed=0 failed=0

# Left out of checkpatch, and why: MAINTAINERS has its own patch, the last one
# (FILE_PATH_CHANGES); the rest is as in check_checkpatch() of tests/check.sh, which
# looks at the same files, and leaves out the same ones, programs for user space too.
ignore=$(sed -n 's/^\tignore+\?=,\?//p' "$ROOT/tests/check.sh" | tr '\n' ',')
ignore=${ignore%,}
foreign='(shim|simd_code)\.h$|simd_(kunit_)?avx[0-9]+\.c$|tools/testing/.*\.[ch]$'

point() {
	local name=$1

	shift
	if "$@" >"$log" 2>&1; then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		grep -E 'warning|rror' "$log" | head -n 20
		echo "not ok - $name ($log)"
		failed=$((failed + 1))
	fi
}

kmake() {
	make -s -C "$tree" O="$kernel" -j"$JOBS" "$@"
}

# The driver alone; its configuration is in $options, as until core/ nothing builds it.
options=(CONFIG_ACCEL_NEURON=m CONFIG_ACCEL_NEURON_EMU=m CONFIG_ACCEL_NEURON_PCI=m
	 CONFIG_ACCEL_NEURON_KUNIT_TEST=m)
alone() {
	mkdir -p "$work/objects"
	kmake M="$tree/$driver" MO="$work/objects" KCFLAGS=-Werror "${options[@]}" "$@"
}

objects() {
	local list

	mapfile -t list < <(sed -n 's/^obj-.* += //p' "$tree/$driver/Makefile")
	alone "${list[@]}"
}

checkpatch() {
	# In a directory of its own: it leaves a file where it runs.
	awk -v foreign="$foreign" '/^diff --git/ { skip = $0 ~ foreign } !skip' "$1" |
		(cd "$work" && perl "$tree/scripts/checkpatch.pl" --no-tree --strict --terse \
			--no-summary --show-types --max-line-length=100 --ignore "$ignore" -)
}

apply() {
	(cd "$tree" && git apply --whitespace=error "$1")
}

prepare() {
	rm -rf "$tree" "$work/objects"
	mkdir -p "$kernel" "$work/selftests"
	cp -al "$source" "$tree"
	kmake x86_64_defconfig
	printf 'CONFIG_%s\n' KUNIT=m CONFIGFS_FS=y CGROUP_DMEM=y DMA_SHARED_BUFFER=y MODVERSIONS=n \
		SYNC_FILE=y MMU_NOTIFIER=y ACCEL_NEURON=m ACCEL_NEURON_EMU=m ACCEL_NEURON_PCI=m \
		ACCEL_NEURON_KUNIT_TEST=m >>"$kernel/.config"
	cp "$kernel/.config" "$work/wanted"
	kmake olddefconfig && kmake modules_prepare
}

link_modules() {
	cp "$("$ROOT/tests/vm/kdir.sh" 7.3)/Module.symvers" "$kernel/Module.symvers" &&
		nm -u "$work"/objects/*.o | sed -nE \
			's/^ +U ((__)?(kunit|dmem_cgroup)_.*)/0x0\t\1\tvmlinux\tEXPORT_SYMBOL\t/p' |
			sort -u >>"$kernel/Module.symvers" &&
		alone modules
}

# Kconfig and the folder above know it.
within() {
	cp "$work/wanted" "$kernel/.config" && kmake olddefconfig &&
	[ "$(grep -c '^CONFIG_ACCEL_NEURON.*=m' "$kernel/.config")" = 4 ] &&
	kmake KCFLAGS=-Werror modules_prepare "$driver/" &&
	[ -e "$kernel/$driver/neuron.o" ] && [ -e "$kernel/$driver/neuron_emu.o" ] &&
	[ -e "$kernel/$driver/neuron_pci.o" ]
}

selftests() {
	kmake headers_install INSTALL_HDR_PATH="$kernel/usr" &&
	make -s -C "$tree/tools/testing/selftests/drivers/accel/neuron" -j"$JOBS" \
		KHDR_INCLUDES="-isystem $kernel/usr/include" OUTPUT="$work/selftests" USERCFLAGS=-Werror
}

maintainer() {
	(cd "$tree" && perl scripts/get_maintainer.pl --no-git --no-git-fallback -f \
		"$driver/core/module.c" include/uapi/misc/neuron_ioctl.h) | grep -q NEURON
}

mkdir -p "$work" "$CACHE/logs"
"$ROOT/tests/series/make.sh" "$work/patches" || exit 1
point "the source is prepared" prepare
for patch in "$work"/patches/*.patch; do
	name=$(basename "$patch" .patch)
	[ "${name%%-*}" != 0000 ] || continue
	point "$name applies" apply "$patch"
	point "$name: checkpatch" checkpatch "$patch"
	[ ! -e "$tree/$driver/Makefile" ] || point "$name compiles" objects
done
point "the modules link" link_modules
point "the kernel's build reaches them" within
point "the selftests compile" selftests
point "somebody maintains it" maintainer
echo "# series: $passed passed, $failed failed"
[ $failed = 0 ]
