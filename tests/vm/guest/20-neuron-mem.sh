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
exit $bad
