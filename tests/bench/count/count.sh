#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Count the instructions and jumps of allocations and frees, by function (README.md).
#
# usage: count.sh [count.py's options]		KERNEL=6.1 chooses another kernel

set -eu -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
. "$root/tests/vm/lib.sh"
kernel=${KERNEL:-6.12}

"$root/tests/deps.sh" build vm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -O2 -Wall -Wextra -shared -fPIC -fvisibility=hidden -o "$work/plugin.so" "$here/plugin.c"
gcc -O2 -std=gnu11 -Wall -Wextra -I"$root/uapi" -I"$root/uapi/share" -o "$work/calls" \
	"$here/guest.c"
cat >"$work/count.sh" <<-'END'
	#!/bin/sh
	echo 0 >/proc/sys/kernel/kptr_restrict
	modprobe neuron_emu
	calls || exit 1
	sed "s/^/kallsyms /" /proc/kallsyms
END
modules=$("$root/tests/vm/modules.sh" "$kernel")
"$root/tests/vm/run.sh" "$kernel" --modules "$modules" --log "count-$kernel" --mem 2048 \
	--cpu max --timeout 1800 --test-timeout 1500 --file "$work/calls:/bin/calls" \
	--plugin "$work/plugin.so,out=$work/counts" --test "$work/count.sh" >&2
tr -d '\r' <"$CACHE/logs/count-$kernel/output.log" | sed -n 's/^kallsyms //p' >"$work/symbols"
cp "$work/counts" "$work/symbols" "$CACHE/logs/count-$kernel/"
python3 -B "$here/count.py" "$work/counts" "$work/symbols" "$@"
