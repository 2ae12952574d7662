#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What "make install" and "make modules_install" leave behind works, whatever the
# prefix. For libraries and tools that were built (make lib).
#
# shellcheck disable=SC2016,SC2034,SC2317	# check() evaluates

. "$(dirname "$0")/../vm/lib.sh"
cd "$ROOT" || exit 1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
out=$dir/out
prefix=$dir/prefix
bad=0
unset LD_LIBRARY_PATH

check() {
	if eval "$2" >"$out" 2>&1; then
		echo "ok - $1"
	else
		echo "not ok - $1"
		sed 's/^/# /' "$out"
		bad=1
	fi
}

compile() {
	local flags

	read -r -a flags <<<"$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs "$2")"
	gcc -o "$dir/${1##*/}.out" "$1" "${flags[@]}"
}

# Named by where it was found; there need not be a device.
demo_finds_models() {
	LD_LIBRARY_PATH=$prefix/lib "$prefix/bin/neuron-demo" -n 1 >"$dir/demo" 2>&1
	cat "$dir/demo"
	! grep -q 'No such file' "$dir/demo" && grep -q '^\(not \)\?ok - ' "$dir/demo"
}

make_here . install PREFIX="$prefix" >"$dir/install" 2>&1 || {
	cat "$dir/install"
	echo "not ok - make install PREFIX=ELSEWHERE"
	exit 1
}
check "R1: install says how programs find the libraries elsewhere" \
	'grep -q "LD_LIBRARY_PATH=$prefix/lib" "$dir/install" || { cat "$dir/install"; false; }'
check "R1: neuron-demo finds its models" demo_finds_models
check "R1: with DESTDIR, it says that ldconfig is left to do" \
	'make_here . install DESTDIR="$dir/dest" 2>&1 | grep ldconfig'
printf '%s\n' '#include <nrt/nrt.h>' '#include <stdio.h>' \
	'int main(void) { puts(nrt_get_status_as_str(0)); return 0; }' >"$dir/nrt.c"
printf '%s\n' '#include <neuron/neuron.h>' \
	'int main(void) { neuron_device_close(0); return 0; }' >"$dir/neuron.c"
check "R3: a program links with nrt.pc of another prefix" 'compile "$dir/nrt.c" nrt'
check "R3: and runs" 'LD_LIBRARY_PATH=$prefix/lib "$dir/nrt.c.out"'
check "R3: with neuron.pc" 'compile "$dir/neuron.c" neuron'
check "R3: and runs" 'LD_LIBRARY_PATH=$prefix/lib "$dir/neuron.c.out"'

# Without a device: the reader of its output hears when it has ended.
check "no process of the example share-tensor stays behind" \
	'timeout 20 sh -c "LD_LIBRARY_PATH=$prefix/lib libneuron/build/examples/share-tensor 2>&1 | cat"'
check "the documents that manual pages name" '(cd "$prefix/share/doc/libneuron" &&
	ls ISA.md loading.md out-of-memory.md examples/example.h)'

unit=$prefix/lib/systemd/system/neuron-monitor.service
check "neuron-monitor.service is understood" '[ -z "$(systemd-analyze verify --man=no "$unit" 2>&1 | tee /dev/stderr)" ]'
check "and has a sandbox" 'systemd-analyze security --offline=yes --threshold=30 "$unit"'

if [ -e "$prefix/bin/neuron-rtd" ]; then
	unit=$prefix/lib/systemd/system/neuron-rtd.service
	check "neuron-rtd.service is understood" '[ -z "$(systemd-analyze verify --man=no "$unit" 2>&1 | tee /dev/stderr)" ]'
	check "and has a sandbox" 'systemd-analyze security --offline=yes --threshold=30 "$unit"'
fi

check "make install lists what is below PREFIX, and nothing else" \
	'[ -s "$prefix/share/neuron/installed" ] && ! grep -v "^$prefix/" "$prefix/share/neuron/installed"'
touch "$prefix/bin/mine" "$prefix/include/neuron/mine.h"
check "make uninstall, where no daemon could be built any more" \
	'make_here . uninstall PREFIX="$prefix" rtd= && make_here . uninstall PREFIX="$prefix"'
check "make uninstall takes what make install brought, nothing else" \
	'[ "$(find "$prefix" ! -type d | sort | xargs)" = "$prefix/bin/mine $prefix/include/neuron/mine.h" ]'
check "make uninstall leaves no directory of ours behind" \
	'[ "$(find "$prefix" -type d -name "*neuron*" -o -type d -name "*nrt*")" = "$prefix/include/neuron" ]'

# Debian's headers, without the System.map that kbuild asks for before it runs depmod.
for kernel in 6.1 6.12; do
	kdir=$(tests/vm/kdir.sh $kernel)
	release=$(tests/vm/kdir.sh $kernel release)
	built=$(tests/vm/modules.sh $kernel) || exit 1
	check "R2: make modules_install for $kernel" \
		'make -s -C "$built" KDIR="$kdir" modules_install INSTALL_MOD_PATH="$dir/root"'
	check "R2: modprobe finds the modules for $kernel" \
		'[ "$(modprobe -n -v -d "$dir/root" -S "$release" neuron_emu | tee >(cat >&2) | grep -c "neuron.*ko")" = 2 ]'
done
exit $bad
