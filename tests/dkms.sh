#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The DKMS way, from "make dkms" to built modules, for the stock kernels of the
# cache. All in trees of its own: nothing is registered or installed on the machine.

set -eu -o pipefail
. "$(dirname "$0")/vm/lib.sh"
cd "$ROOT"

# The same place each time: the compiler sees the same command then, and ccache knows it.
work=$CACHE/tmp/dkms
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
version=$(cat VERSION)
passed=0 failed=0

point() {
	local what=$1
	shift

	if "$@" >"$work/log" 2>&1; then
		passed=$((passed + 1))
		echo "ok - dkms: $what"
	else
		failed=$((failed + 1))
		echo "not ok - dkms: $what"
		sed 's/^/# /' "$work/log"
		[ ! -e "$work/tree/neuron-open/$version/build/make.log" ] ||
			tail -n 30 "$work/tree/neuron-open/$version/build/make.log" | sed 's/^/# /'
	fi
}

with_dkms() {
	local action=$1
	shift

	dkms "$action" -m neuron-open -v "$version" --dkmstree "$work/tree" \
		--sourcetree "$work/usr/src" --installtree "$work/lib/modules" "$@"
}

# All modules, with the version of the file VERSION.
built_right() {
	local release=$1 module file

	for module in neuron neuron_emu neuron_pci; do
		file=$(find "$work/tree/neuron-open/$version/$release" -name "$module.ko*" | head -n 1)
		[ -n "$file" ] || { echo "no $module"; return 1; }
		[ "$(modinfo -F version "$file")" = "$version" ] ||
			{ echo "$module is not $version"; return 1; }
		[[ $(modinfo -F vermagic "$file") == "$release "* ]] ||
			{ echo "$module is not for $release"; return 1; }
	done
}

mkdir -p "$work/tree" "$work/lib/modules"
point "source installs" make -s dkms DESTDIR="$work"
point "udev rules install" test -s "$work/usr/local/lib/udev/rules.d/60-neuron.rules"
point "dkms add" with_dkms add
# Other tests build it in roots of their own for the kernels of their releases.
release=$(tests/vm/kdir.sh 6.12 release)
kdir=$(tests/vm/kdir.sh 6.12)
point "dkms build for $release" with_dkms build -k "$release" -a x86_64 --kernelsourcedir "$kdir"
point "modules for $release" built_right "$release"
if with_dkms build -k 5.10.0-1-amd64 -a x86_64 --kernelsourcedir "$kdir" \
		>"$work/old.log" 2>&1; then
	point "a kernel older than 6.1 is refused" false
else
	point "a kernel older than 6.1 is refused" grep -q BUILD_EXCLUSIVE "$work/old.log"
fi
point "dkms remove" with_dkms remove --all

echo "# dkms: $passed passed, $failed failed"
[ $failed = 0 ]
