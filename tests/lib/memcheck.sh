#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Run a test under memcheck: no error, and nothing lost, also not what only a pointer
# into it is left of. Children are not judged: what they inherit is the parent's, and
# they forget it.
#
# usage: memcheck.sh PROGRAM [ARGUMENTS]

log=$1.memcheck
kinds=definite,indirect,possible
valgrind -q --leak-check=full --show-leak-kinds=$kinds --errors-for-leak-kinds=$kinds \
	--fair-sched=yes --child-silent-after-fork=yes --log-file="$log" "$@"
status=$?
[ -s "$log" ] || exit $status
cat "$log" >&2
exit 99
