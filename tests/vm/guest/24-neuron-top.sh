#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# neuron-top shows the device that is there, and a program that runs on it.

bad=0
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; bad=1; fi
}

check "text" 'neuron-top --batch -n 1 >/tmp/top && sed "s/^/# /" /tmp/top'
check "a trn2, which is opened" 'grep -q "^-   0 Trainium2 .*0/8 .*/96.0G" /tmp/top &&
	grep -q "HBM 3 .* 0/24.0G largest 24.0G frag *0%" /tmp/top && grep -q "core 7" /tmp/top'
check "nothing is unknown but rates" '! grep -q -e "-/" -e "/-" /tmp/top'
check "nobody uses it" 'grep -q "No process uses the devices" /tmp/top'

neuron-demo -m mnist-int8 -p 1000 >/tmp/demo 2>&1 &
demo=$!
neuron-top --json -d 0.5 -n 20 >/tmp/top.json &
neuron-top -d 0.5 -n 20 >/tmp/top
wait $!
kill $demo
wait $demo 2>/dev/null
tail -n 24 /tmp/top | sed 's/^/# /'
check "an object a line" '[ "$(grep -c "^{\"schema_version\":1,.*}$" /tmp/top.json)" = 20 ]'
check "a software device" 'grep -q "\"emulated\":true" /tmp/top.json'
check "the program owns a core" 'grep -q "\"owner\":$demo,\"used\":[1-9]" /tmp/top.json &&
	grep -q "^ *$demo root *0 [0-9]" /tmp/top'
check "its memory, by category" 'grep -q "\"tensors\":[1-9]" /tmp/top.json &&
	grep -q "T tensors [0-9]" /tmp/top'
check "the host memory of the device" 'grep -q "\"host\":[1-9]" /tmp/top.json'
check "it is among the processes" \
	'grep -q "\"pid\":$demo,\"user\":\"root\",\"command\":\"neuron-demo -m mnist-int8 -p 1000\",\"device_bytes\":[1-9]" /tmp/top.json'
check "executions" 'grep -q "\"inferences_per_second\":[1-9]" /tmp/top.json'
check "time in use" 'grep -q "\"busy\":0\.[0-9]*[1-9]" /tmp/top.json || grep -q "\"busy\":1" /tmp/top.json'
check "no errors" '! grep -q "errors: " /tmp/top'

check "the module goes while it looks, and comes back" 'neuron-top --json -d 0.5 -n 16 >/tmp/top.json &
	sleep 2; rmmod neuron_emu && sleep 2 && modprobe neuron_emu nr_devices=2 && wait $! &&
	grep -q "\"neuron_devices\":\[\]" /tmp/top.json &&
	tail -n 1 /tmp/top.json | grep -q "\"neuron_device\":1"'
check "16 devices, 24 lines" 'rmmod neuron_emu && modprobe neuron_emu instance=trn2.48xlarge &&
	neuron-top -n 2 -d 0.1 >/tmp/top 2>/tmp/err && [ ! -s /tmp/err ] && [ "$(grep -c "^+ .*Trainium2" /tmp/top)" = 32 ] &&
	[ "$(wc -l </tmp/top)" -le 48 ] && ! grep -q "^.\{81\}" /tmp/top'
check "no device: 1" 'rmmod neuron_emu; neuron-top -b -n 1 >/tmp/none 2>/tmp/err; [ $? = 1 ] &&
	grep -q "no Neuron device" /tmp/err'
check "a wrong option: 2" 'neuron-top -d 0 2>/dev/null; [ $? = 2 ]'
check "load for what follows" 'modprobe neuron_emu'
exit $bad
