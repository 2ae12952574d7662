#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Coverage of kmod/mem/buddy.c by its host tests: all lines, and 95 % of branches.
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
gcov -b -c tb-test_buddy.gcda 2>/dev/null |
	sed -n "/buddy\.c'$/,/^$/p" | grep -v test_buddy >summary
grep -q 'kmod/mem/buddy.c' summary
awk '/kmod\/mem\/buddy.c/ { on = 1 } on && /^(Lines|Taken)/ { print } /^$/ { on = 0 }' summary >numbers

lines=$(sed -n 's/^Lines executed:\([0-9.]*\)%.*/\1/p' numbers | head -n 1)
branches=$(sed -n 's/^Taken at least once:\([0-9.]*\)%.*/\1/p' numbers | head -n 1)
echo "kmod/mem/buddy.c: $lines % of lines, $branches % of branches"
grep -n '#####:' buddy.c.gcov | sed 's/^[0-9]*: *#####: */never run: line /' || true
if [ "${1:-}" = -v ]; then
	awk '/^branch .*(taken 0|never executed)/ && !seen { print "branch: line " last; seen = 1 }
	     !/^(branch|call|function|unconditional)/ { last = $0; sub(/^[^:]*: */, "", last); seen = 0 }' \
		buddy.c.gcov
fi
bad=$(awk -v l="$lines" -v b="$branches" 'BEGIN { print (l < 100) + (b < 95) }')
echo "$((2 - bad)) passed, $bad failed"
[ "$bad" = 0 ]
