#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# neuron-profile: a file, in words what is in it, memory that comes back; bad input.

models=/usr/share/neuron/models
out=/tmp/profile.out
file=/tmp/profile.json
root=/sys/devices/virtual/neuron_device/neuron0
bad=0
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; sed 's/^/# /' $out; bad=1; fi
}
status() {
	want=$1
	shift
	rm -f $file
	neuron-profile "$@" >$out 2>&1
	[ $? = "$want" ]
}
capture() { status 0 capture -s $file "$@"; }
number() { sed -n "s/.* \([0-9]*\) $1.*/\1/p" $out; }
clean() { ! find $root -path '*memory_usage*' -name total -exec grep -Hvx 0 {} + >>$out; }

set -- $models/*.neff
# shellcheck disable=SC2034	# what check() evaluates
model=$1
check "there is a model" '[ -e "$model" ]'
check "capture" 'capture -n "$model"'
check "one run, nothing lost" 'grep -q "^$file: 1 runs, .* 0 lost$" $out'
check "two cores have buffers" 'grep -q "^profile buffers 3.875GB, " $out'
check "the file has a process for each" 'grep -q "\"ND 0 NC 0\"" $file && grep -q "\"ND 0 NC 1\"" $file'
check "and each instruction" '[ "$(number instructions)" -gt 20 ] && [ "$(grep -c "\"cat\":\"instruction\"" $file)" = "$(number instructions)" ]'
check "and each packet" '[ "$(grep -c "\"cat\":\"dma\"" $file)" = "$(number packets)" ]'
# shellcheck disable=SC2034
one=$(number instructions)
check "everything came back" 'clean'
check "five runs on another core" 'capture -n "$model" -r 5 -c 3 && [ "$(number instructions)" = $((5 * one)) ]'
check "where it says" 'grep -q "\"ND 0 NC 6\"" $file'
# shellcheck disable=SC2034
two=$(sed -n 's/.*inputs and outputs //p' $out)
check "a single tensor" 'capture -n "$model" --single-io && [ "$(number instructions)" = "$one" ]'
# shellcheck disable=SC2034
single=$(sed -n 's/.*inputs and outputs //p' $out)
check "takes less ($single, not $two)" '[ -n "$single" ] && [ "$single" != "$two" ]'
check "small buffers" 'capture -n "$model" -b DMA=1 -b event=1 -b throttle=1 -b cc_core_instruction=1 -b cc_core_event=1 && grep -q "^profile buffers 50.000MB, " $out'
check "everything came back again" 'clean'
check "T5: microcode is set aside as in the runtime" '[ "$(cat $root/neuron_core0/stats/memory_usage/device_mem/model_code/peak)" -ge 100663296 ]'
check "T5: the environment says how much buffers take" '(for kind in EVENT DMA THROTTLE CC_CORE_INSTRUCTION CC_CORE_EVENT; do export NEURON_RT_PROFILE_BUF_${kind}_MB=1; done; capture -n "$model") && grep -q "^profile buffers 50.000MB, " $out'
check "T5: an option more" '(export NEURON_RT_PROFILE_BUF_EVENT_MB=3 NEURON_RT_PROFILE_BUF_DMA_MB=1; capture -n "$model" -b event=1 -b throttle=1 -b cc_core_instruction=1 -b cc_core_event=1) && grep -q "^profile buffers 50.000MB, " $out'
check "T5: and where models go" '(export NEURON_RT_MICROCODE_MB=4097; status 1 capture -n "$model") && grep -q "NEURON_RT_MICROCODE_MB=4097 is not" $out && (export NEURON_SCRATCHPAD_PAGE_SIZE=1024; capture -n "$model") && grep -q "NEURON_SCRATCHPAD_PAGE_SIZE=1024 has no effect" $out'
check "T5: a core of one" '(export NEURON_LOGICAL_NC_CONFIG=1; capture -n "$model" -c 1) && grep -q "\"ND 0 NC 1\"" $file && ! grep -q "\"ND 0 NC 0\"" $file'
check "the usual place" 'cd /tmp && status 0 capture -n "$model" && [ -e /tmp/profile.json ]'
check "no such file" 'status 1 capture -n /no/such/file'
check "not a NEFF" 'status 1 capture -n /proc/self/exe'
check "no such device" 'status 1 capture -n "$model" -d 63'
check "no such core" 'status 1 capture -n "$model" -c 4'
check "a place that cannot be written" 'status 1 capture -n "$model" -s /no/such/dir/file'
check "to the standard output" '(cd / && neuron-profile capture -n "$model" -s - >/tmp/piped 2>$out) && [ ! -e /- ] && head -c 1 /tmp/piped | grep -q "[[{]" && grep -q "^-: 1 runs" $out'
check "no room: the file of before stays" 'mkdir /tmp/small && mount -t tmpfs -o size=8k none /tmp/small && echo old >/tmp/small/p &&
	! neuron-profile capture -n "$model" -s /tmp/small/p >$out 2>&1 && grep -q "small/p: No space" $out &&
	[ "$(cat /tmp/small/p)" = old ] && [ "$(ls /tmp/small)" = p ]; umount /tmp/small'
check "wrong arguments" 'status 64 && status 64 view -n "$model" && status 64 capture && status 64 capture -n "$model" -b DMA=3 && status 64 capture -n "$model" -b SPARE=1 && status 64 capture -n "$model" -r 0'
check "nothing stays" 'clean'
rm -f $out $file
exit $bad
