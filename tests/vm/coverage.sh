#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Which lines of the modules the guest tests reach: coverage by file and the functions
# that nobody called, from the output of a run on the debug kernel with modules that
# count (--make NEURON_GCOV=1) and gcov.sh as its last test. Fails when less than 85 %
# of the lines of neuron.ko ran.
#
# usage: coverage.sh OUTPUT [coverage.py options]

set -eu -o pipefail
. "$(dirname "$0")/lib.sh"

[ $# -ge 1 ] || die "usage: coverage.sh OUTPUT [coverage.py options]"
output=$1 work=$CACHE/coverage
shift
rm -rf "$work"
mkdir -p "$work"
tr -d '\r' <"$output" | sed -n 's/^gcov: //p' | base64 -d | tar -xz -C "$work"
# The counters stand below the directory that the modules were built in; what the
# compiler knows about the source is still there.
built=$("$ROOT/tests/vm/modules.sh" debug NEURON_GCOV=1)
find "$work" -name '*.gcda' | while read -r file; do
	notes=${file#"$work"}
	cp "${notes%.gcda}.gcno" "${file%.gcda}.gcno"
done
"$ROOT/tests/vm/coverage.py" "$@" "$work$built" "$built"
