#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make bench-nrt: what the library costs (guest/nrt.c) and whether loading and unloading
# leaves anything behind (tests/vm/guest/load_cycles.c), in one virtual machine.
#
# usage: nrt.sh RESULTS [quick]
# RESULTS becomes a directory with nrt.jsonl, nrt.json and nrt.md. quick: a few iterations,
# to see that it works; no goal is looked at.
# KERNEL=6.1 chooses another kernel.

set -eu -o pipefail
# All of it is read before it runs: that takes a while, and this file may change.
{
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$root/tests/vm/lib.sh"
results=$1 how=${2:-}
kernel=${KERNEL:-6.12}
cycles=1000 log=bench-nrt-$kernel
[ "$how" != quick ] || { cycles=20 log=$log-quick; }

"$root/tests/deps.sh" build vm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make_here . lib
for program in "$here/guest/nrt.c" "$root/tests/vm/guest/load_cycles.c"; do
	name=${program##*/}
	gcc -O2 -std=gnu11 -Wall -Wextra -pthread -I"$root/uapi" -I"$root/libneuron/include" \
		-o "$work/${name%.c}" "$program" -L"$root/libneuron/build" \
		-Wl,-rpath-link,"$root/libneuron/build" -lneuron -lz
done
cat >"$work/bench.sh" <<END
#!/bin/sh
bad=0
# Copies by the thread that asks for them: how soon a busy machine lets another one run
# is not what is measured.
modprobe neuron_emu arch=trn1 completion=inline || exit 1
nrt load $how || bad=1
modprobe -r neuron_emu && modprobe neuron_emu arch=trn1 || exit 1
nrt run $how || bad=1
nrt offload $how || bad=1
load_cycles $cycles || bad=1
modprobe -r neuron_emu || exit 1
exit \$bad
END
# An emulated "rep movsb" moves one byte at a time: let the kernel use its other loops.
"$root/tests/vm/run.sh" "$kernel" --stack --log "$log" --mem 2048 --cpu max,-erms,-fsrm \
	--timeout 3600 --test-timeout 3500 --file "$work/nrt:/bin/nrt" \
	--file "$work/load_cycles:/bin/load_cycles" --test "$work/bench.sh"
mkdir -p "$results"
{
	printf '{"date":"%s","kernel":"%s","cpu":"%s","quick":%s}\n' "$(date -u +%Y-%m-%d)" \
		"$("$root/tests/vm/kdir.sh" "$kernel" release)" \
		"$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
		"$([ "$how" = quick ] && echo true || echo false)"
	tr -d '\r' <"$CACHE/logs/$log/output.log" | grep '^{'
} >"$results/nrt.jsonl"
python3 -B "$here/nrt.py" "$results"
exit
}
