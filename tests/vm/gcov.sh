#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The last test of a coverage run: the counters of our modules, as lines of output
# (a compressed archive in base64). The kernel keeps them when a module goes, and
# adds them up when it comes again.

gcov=/sys/kernel/debug/gcov
cd "$gcov" || exit 1
# cpio and tar believe the sizes that debugfs shows, which are 0.
find . -name '*.gcda' | while read -r file; do
	mkdir -p "/tmp/gcov/${file%/*}" && cat "$file" >"/tmp/gcov/$file"
done
cd /tmp/gcov || exit 1
files=$(find . -name '*.gcda' | wc -l)
echo "# $files files"
[ "$files" -gt 0 ] || exit 1
tar -c -z . | base64 | sed 's/^/gcov: /'
echo "ok - counters of $files files"
