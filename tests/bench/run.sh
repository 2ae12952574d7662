#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Build the benchmark with the kernel's own allocators, from the distribution's
# kernel source, and run it in User Mode Linux: kernel code at native speed.
#
# usage: run.sh RESULTS [TESTS [PEERS [SEEDS [QUICK [DRAW]]]]]
# TESTS and PEERS are lists of names, all if empty; QUICK is 1 or 0.
# RESULTS becomes a directory with results.jsonl and machine.txt.

set -eu
# All of it is read before it runs: that takes a while, and this file may change.
{
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
results=$1 seeds=${4:-3} quick=${5:-0} draw=${6:-1}
tests=${2:-} peers=${3:-}
tests=${tests// /,} peers=${peers// /,}

"$root/tests/deps.sh" vm plot
kdir=$("$root/tests/vm/kdir.sh" uml-bench)
image=$("$root/tests/vm/kdir.sh" uml-bench image)
source=$("$root/tests/vm/kernels.sh" --source 6.12)

work=$(mktemp -d "${TMPDIR:-/tmp}/neuron-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tests/bench" "$work/kmod/mem/buddy" "$work/root"/{bin,proc,dev}
cp "$here"/*.[ch] "$here/Kbuild" "$work/tests/bench/"
rm -f "$work/tests/bench"/{host,threads}.c
cp "$root"/kmod/mem/buddy/*.[ch] "$work/kmod/mem/buddy/"
peer() {
	{ echo '#include "peers.h"'; cat "$source/$2"; } >"$work/tests/bench/peer_$1.c"
}
peer gpu_buddy drivers/gpu/buddy.c
peer drm_mm drivers/gpu/drm/drm_mm.c
peer genalloc lib/genalloc.c
echo "# building the benchmark" >&2
make -s -C "$kdir" M="$work/tests/bench" modules >"$work/build.log" 2>&1 || {
	cat "$work/build.log" >&2
	exit 1
}

cp "$work/tests/bench/neuron_bench.ko" "$here/traces"/*.trace "$work/root/"
cp "$(command -v busybox)" "$work/root/bin/busybox"
install -m 755 "$here/init.sh" "$work/root/init"
recorded=$(cd "$work/root" && printf ',/%s' *.trace)
printf 'tests="%s"\npeers="%s"\nseeds=%s\nrecorded="%s"\nquick=%s\ndraw=%s\n' "$tests" "$peers" \
	"$seeds" "${recorded#,}" "$quick" "$draw" >"$work/root/arguments"
echo "# running it" >&2
timeout "${BENCH_TIMEOUT:-7200}" "$image" mem=1500M root=none rootfstype=hostfs \
	rootflags="$work/root" rw init=/init con=null con0=null,fd:1 \
	</dev/null >"$work/console" 2>&1 || true
mkdir -p "$results"
grep -q '^insmod: 0' "$work/console" || {
	# What there is may still be worth a look.
	cp "$work/root/results.json" "$results/partial.jsonl" || true
	tail -n 40 "$work/console" >&2
	exit 1
}
cp "$work/root/results.json" "$results/results.jsonl"
{
	echo "date:   $(date -u +%Y-%m-%d)"
	echo "kernel: User Mode Linux $("$root/tests/vm/kdir.sh" uml-bench release)"
	echo "cpu:    $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors"
} >"$results/machine.txt"
exit
}
