#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# neuron-mem shows what is there, in both forms.

bad=0
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; bad=1; fi
}

check "runs" 'neuron-mem >/tmp/mem'
check "an HBM of 24 GB" 'grep -q "^neuron0 HBM 3: 24.000GB, used " /tmp/mem'
check "nothing is refused yet" '! grep -q refused: /tmp/mem'
check "JSON" 'neuron-mem --json 0 >/tmp/mem.json'
check "of 4 HBMs" '[ "$(grep -c "\"total\": 25769803776" /tmp/mem.json)" = 4 ]'
check "and 8 cores" '[ "$(grep -c "\"core\": " /tmp/mem.json)" = 8 ]'
check "a device that is not there" '! neuron-mem 63 2>/tmp/err && grep -q "/dev/neuron63: No such file" /tmp/err'
check "nonsense" '! neuron-mem x 2>/dev/null'
for address in "" x 12x 0x 0x1ffffffffffffffff; do
	check "no address: \"$address\"" 'neuron-mem resolve "$address" 2>/tmp/err; [ $? = 2 ] && grep -q " is no address" /tmp/err'
done
check "an address is missing" 'neuron-mem resolve 2>/tmp/err; [ $? = 2 ] && grep -q "the address is missing" /tmp/err'
check "a device too much" 'neuron-mem resolve 1 0 0 2>/dev/null; [ $? = 2 ]'
check "a process is of resolve" 'neuron-mem --pid=1 2>/dev/null; [ $? = 2 ]'
check "and tells the device" 'neuron-mem resolve --pid=1 0 0 2>/dev/null; [ $? = 2 ]'
check "groups are of owners" 'neuron-mem --groups 2>/dev/null; [ $? = 2 ]'
check "and not of differences" 'neuron-mem owners --groups --diff 2>/dev/null; [ $? = 2 ]'

# With all places taken, root can still look, and takes none.
sleep 1000 3<>/dev/neuron0 &
one=$!
holders=
for _ in 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
	sleep 1000 3<>/dev/neuron0 &
	holders="$holders $!"
done
i=0
while (: 3<>/dev/neuron0) 2>/dev/null && [ $i -lt 50 ]; do
	sleep 0.1
	i=$((i + 1))
done
check "16 processes have the device" '! (: 3<>/dev/neuron0) 2>/dev/null'
for what in "" map owners "owners --groups" "resolve 0" "snapshot /tmp/full" "timeline /tmp/full.svg" --failures; do
	check "full: neuron-mem $what" 'neuron-mem $what >/dev/null'
done
check "full: neuron-preflight" 'neuron-preflight --now /usr/share/neuron/models/mnist-bf16.neff >/dev/null'
kill $one
wait $one 2>/dev/null
neuron-mem --watch=0.1 -n 30 >/dev/null &
watcher=$!
refused=0
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	(: 3<>/dev/neuron0) 2>/dev/null || refused=$((refused + 1))
done
check "nobody is kept out while one looks" '[ $refused = 0 ]'
# shellcheck disable=SC2086	# several
kill $holders $watcher
wait
exit $bad
