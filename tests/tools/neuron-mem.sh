#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# neuron-mem: wrong options, and snapshots that need no device. For tools that were built
# (make lib).
#
# shellcheck disable=SC2016,SC2317	# check() evaluates

tool=libneuron/build/neuron-mem
# shellcheck source=tests/tools/tool.sh
. "$(dirname "$0")/tool.sh"

# page TIME: of a snapshot that was taken then
page() {
	echo "{\"kind\": \"memory snapshot\", \"schema_version\": 1, \"device\": 3," \
		"\"time\": $1, \"hbms\": []}" >"$dir/snapshot"
	TZ=UTC status 0 snapshot --html --from "$dir/snapshot" "$dir/page.html"
}

check "the time of a snapshot" 'page 86399 && grep -q "<p>1970-01-01 23:59:59 +0000</p>" $dir/page.html'
check "a time of no year" 'page 9223372036854775807 && grep -q "<p>@9223372036854775807</p>" $dir/page.html'
check "a snapshot of a file that is none" \
	'status 1 snapshot --from "$0" $dir/s && grep -q "no memory snapshot" $out && [ ! -e $dir/s ]'
check "one that is" \
	'page 0 && status 0 snapshot --from $dir/snapshot $dir/again && cmp $dir/snapshot $dir/again'
for arguments in "snapshot --from $dir/snapshot $dir/s 7" "resolve 0x1000 --pid=1.7" "resolve 0x1000 --pid=0" "--watch --iterations=1.5" \
		 "--watch --iterations=1e3" "map --rows=4.9" "map --rows=3" "--watch=nan" "--watch=0" \
		 "resolve 0x1000 --watch" "snapshot $dir/s --watch" "timeline $dir/s.svg --watch=5" \
		 "timeline --from $dir/snapshot $dir/s.txt" "timeline --from $dir/snapshot $dir/s" \
		 "snapshot $dir/s --watch --iterations=2"; do
	check "wrong arguments: $arguments" 'status 2 $arguments && [ ! -e $dir/s ] && [ ! -e $dir/s.svg ]'
done
check "a timeline needs no device" \
	'status 0 timeline --from $dir/snapshot $dir/t.svg && status 0 timeline --from $dir/snapshot -'
check "nobody else reads a snapshot" 'chmod 644 $dir/again && status 0 snapshot --from $dir/snapshot $dir/again && [ "$(stat -c %a $dir/again)" = 600 ]'
check "no room for a snapshot: the one before stays" \
	'echo old >$dir/again && (trap "" XFSZ && ulimit -f 0 && status 1 snapshot --from $dir/snapshot $dir/again) &&
	[ "$(cat $dir/again)" = old ] && ! ls $dir/again.?????? 2>/dev/null'
check "a file without an end" '(ulimit -v 4000000; status 1 snapshot --from /dev/zero $dir/s) &&
	grep -q "/dev/zero is a device" $out'
exit $bad
