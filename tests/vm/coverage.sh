#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make coverage-vm: which lines of the modules the guest tests reach. Runs the whole
# stack on the debug kernel with modules that count, and prints coverage by file and
# the functions that nobody called. Fails when less than 85 % of the lines of
# neuron.ko ran, or a test failed.
#
# usage: coverage.sh [run.sh options]	(further tests, for example)

set -eu -o pipefail
. "$(dirname "$0")/lib.sh"

name=coverage-vm
log=$CACHE/logs/$name
work=$CACHE/coverage
tests=()
for file in "$ROOT"/tests/vm/guest/[0-9]*.sh "$ROOT"/tests/vm/guest/*.c \
	    "$ROOT"/tests/vm/guest/z*.sh; do
	tests+=(--test "$file")
done
"$ROOT/tests/vm/run.sh" debug --stack --make NEURON_GCOV=1 --log "$name" --mem 2048 \
	--timeout 3000 --test-timeout 600 --file "$ROOT/tests/models:/usr/share/neuron/models" \
	"${tests[@]}" "$@" --test "$ROOT/tests/vm/gcov.sh" || die "tests failed"

rm -rf "$work"
mkdir -p "$work"
tr -d '\r' <"$log/output.log" | sed -n 's/^gcov: //p' | base64 -d | tar -xz -C "$work"
# The counters stand below the directory that the modules were built in; what the
# compiler knows about the source is still there.
built=$("$ROOT/tests/vm/modules.sh" debug NEURON_GCOV=1)
find "$work" -name '*.gcda' | while read -r file; do
	notes=${file#"$work"}
	cp "${notes%.gcda}.gcno" "${file%.gcda}.gcno"
done
"$ROOT/tests/vm/coverage.py" "$work$built" "$built"
