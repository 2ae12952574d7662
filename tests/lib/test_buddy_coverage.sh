#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Coverage of kmod/mem/buddy by its host tests: all lines, and 95 % of branches.
# Prints what is missing, and "N passed, N failed" at the end.
#
# usage: test_buddy_coverage.sh [-v]	(-v: also list the branches never taken)

set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

gcc -std=gnu11 -g -O0 --coverage -DPROPERTY_STEPS=1000000 \
	"$root/tests/lib/test_buddy.c" -o tb -lcmocka
./tb >log 2>&1 || { tail -n 20 log; echo "0 passed, 1 failed"; exit 1; }
gcov -b -c tb-test_buddy.gcda 2>/dev/null >summary

# A paragraph for each file; sums of what is below the allocator's folder.
awk -F "[:' ]+" '
	/^File/ { on = /kmod\/mem\/buddy\// && !/shim/; name = $2; sub(/.*\//, "", name) }
	on && /^Lines executed/ { lines += $5; run += $3 * $5 / 100; text = $3 " of lines" }
	on && /^Taken at least once/ { branches += $7; taken += $5 * $7 / 100
		print "# " name ": " text ", " $5 " of branches" }
	END {
		if (!lines) exit 1
		l = 100 * run / lines; b = 100 * taken / branches
		printf "kmod/mem/buddy: %.2f %% of lines, %.2f %% of branches\n", l, b
		bad = (l < 99.999) + (b < 95)
		printf "%d passed, %d failed\n", 2 - bad, bad >"verdict"
	}' summary
for file in "$root"/kmod/mem/buddy/*.[ch]; do
	name=${file##*/}
	[ -e "$name.gcov" ] || continue
	grep '#####:' "$name.gcov" | sed "s/^ *#####: */never run: $name line /" || true
	[ "${1:-}" != -v ] || awk -v name="$name" '
		/^branch .*(taken 0|never executed)/ && !seen { print "branch: " name " line " last; seen = 1 }
		!/^(branch|call|function|unconditional)/ { last = $0; sub(/^[^:]*: */, "", last); seen = 0 }' \
		"$name.gcov"
done
cat verdict
grep -q ' 0 failed' verdict
