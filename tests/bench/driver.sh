#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make bench: what the driver costs (guest/driver.c), in one virtual machine.
#
# usage: driver.sh RESULTS [WORK...]
# RESULTS becomes a directory with driver-KERNEL.jsonl, .json and .md.
# CARD=1: a model of a Trainium 2 card beside the software device, and nothing else.
# KERNEL=6.1 chooses another kernel; KERNEL=uml-bench runs at the processor's own speed.

set -eu -o pipefail
# All of it is read before it runs: that takes a while, and this file may change.
{
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$root/tests/vm/lib.sh"
results=$1
shift
kernel=${KERNEL:-6.12}

name=driver-$kernel
cards=()
if [ -n "${CARD:-}" ]; then
	name=card-$kernel
	cards=(--card trn2)
	set -- card
fi

"$root/tests/deps.sh" build vm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -O2 -std=gnu11 -Wall -Wextra -pthread -I"$root/uapi" -I"$root/uapi/share" \
	-o "$work/driver-bench" "$here/guest/driver.c"
printf '#!/bin/sh\nexec driver-bench %s\n' "$*" >"$work/bench.sh"
# An emulated "rep movsb" moves one byte at a time: let the kernel use its other loops.
modules=$("$root/tests/vm/modules.sh" "$kernel")
"$root/tests/vm/run.sh" "$kernel" --modules "$modules" --log "bench-$name" --mem 2048 \
	--cpu max,-erms,-fsrm \
	"${cards[@]}" --timeout 3600 --test-timeout 3500 \
	--file "$work/driver-bench:/bin/driver-bench" \
	--test "$work/bench.sh"
mkdir -p "$results"
{
	printf '{"date":"%s","kernel":"%s","cpu":"%s"}\n' "$(date -u +%Y-%m-%d)" \
		"$("$root/tests/vm/kdir.sh" "$kernel" release)" \
		"$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
	tr -d '\r' <"$CACHE/logs/bench-$name/output.log" | grep '^{'
} >"$results/$name.jsonl"
python3 -B "$here/driver.py" "$results" "$name"
exit
}
