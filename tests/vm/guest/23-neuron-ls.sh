#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# neuron-ls shows the device that is there and the process that uses it.

bad=0
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; bad=1; fi
}

export NEURON_LOGICAL_NC_CONFIG=
check "runs" 'neuron-ls >/tmp/ls && sed "s/^/# /" /tmp/ls'
check "one trn2, a software device" \
	'grep -q "^neuron0 *Trainium2 *8 *0-3 *2 *96 GiB *- *.*software device" /tmp/ls'
check "nobody uses it" 'grep -qx "No process uses them." /tmp/ls'
unshare -pf true 2>/dev/null &&
	check "another pid name space does not see everybody" \
		'unshare -pf neuron-ls | grep -qx "No process that you may see uses them."'
check "no links" 'grep -qx "Links: none." /tmp/ls'
check "one physical core each" 'neuron-ls --lnc 1 | grep -q "^neuron0 *Trainium2 *8 *0-7 *1 "'
check "the variable does the same" \
	'NEURON_LOGICAL_NC_CONFIG=1 neuron-ls | grep -q "^neuron0 *Trainium2 *8 *0-7 *1 "'
check "so does its other name, which the runtime knows, too" \
	'NEURON_RT_VIRTUAL_CORE_SIZE=1 neuron-ls | grep -q "^neuron0 *Trainium2 *8 *0-7 *1 "'

sleep 1000 3<>/dev/neuron0 &
holder=$!
check "a process that has it open" \
	'neuron-ls | grep -q "^neuron0 *$holder *- .*sleep 1000"'
check "JSON has it, too" 'neuron-ls --json >/tmp/ls.json && grep -q "\"pid\": $holder" /tmp/ls.json'
check "JSON: keys" 'for key in neuron_device bdf cpu_affinity numa_node connected_to nc_count \
	logical_neuroncore_config memory_size neuroncore_ids neuron_processes emulated; do
	grep -q "\"$key\": " /tmp/ls.json || exit 1; done'
check "JSON: 96 GiB" 'grep -q "\"memory_size\": 103079215104" /tmp/ls.json'
kill $holder
wait $holder 2>/dev/null
check "looking takes no place" 'neuron-ls | grep -qx "No process uses them."'

check "a wrong option: 2" 'neuron-ls --lnc 3 2>/dev/null; [ $? = 2 ]'
check "an argument: 2" 'neuron-ls x 2>/dev/null; [ $? = 2 ]'
check "version" 'neuron-ls --version | grep -q "^neuron-ls [0-9]"'
check "16 devices" 'rmmod neuron_emu && modprobe neuron_emu instance=trn2.48xlarge'
check "are a torus of 4 x 4" 'neuron-ls --topology >/tmp/topology && sed "s/^/# /" /tmp/topology &&
	grep -q "a torus of 4 x 4" /tmp/topology && grep -q "\[ 12\].*\[ 15\]" /tmp/topology'
check "16 lines, the last cores are 60 to 63" \
	'[ "$(neuron-ls | grep -c "^neuron[0-9]* *Trainium2")" = 16 ] && neuron-ls | grep -q " 60-63 "'
check "for containers: a device, all of them, a core" 'neuron-cdi generate &&
	grep -q "\"kind\": \"aws.amazon.com/neuron\"" /etc/cdi/neuron.json &&
	[ "$(grep -c "\"name\": \"core" /etc/cdi/neuron.json)" = 64 ] &&
	[ "$(grep -c "\"name\": \"[0-9]" /etc/cdi/neuron.json)" = 16 ] &&
	[ "$(grep -c "\"path\": \"/dev/neuron15\"" /etc/cdi/neuron.json)" = 6 ]'
check "with the libraries" 'grep -q "\"hostPath\": \".*/libneuron.so.0\"" /etc/cdi/neuron.json &&
	grep -q "\"hostPath\": \".*/libnrt.so.1\"" /etc/cdi/neuron.json &&
	neuron-cdi -n -o - generate >/tmp/cdi && ! grep -q hostPath /tmp/cdi'
mkdir /tmp/links && ln -s /tmp/links/real.json /tmp/links/cdi.json && mknod /tmp/links/null c 1 3
check "a link to nothing: 1" 'neuron-cdi -o /tmp/links/cdi.json generate 2>/dev/null; [ $? = 1 ]'
: >/tmp/links/real.json
check "a link stays a link" 'neuron-cdi -o /tmp/links/cdi.json generate && [ -L /tmp/links/cdi.json ] &&
	grep -q "\"core63\"" /tmp/links/real.json && [ "$(stat -c %a /tmp/links/real.json)" = 644 ]'
check "a device stays a device" 'neuron-cdi -o /tmp/links/null generate && [ -c /tmp/links/null ]'
check "and nothing else is left" '[ "$(ls /tmp/links | wc -l)" = 3 ]'
check "no room: 1, and why" 'neuron-cdi -o - generate 2>/tmp/err >/dev/full; [ $? = 1 ] &&
	grep -q "No space left" /tmp/err'
check "physical cores" '[ "$(neuron-cdi -l 1 -o - generate | grep -c "\"name\": \"core")" = 128 ]'
check "an unknown command: 2" 'neuron-cdi frob 2>/dev/null; [ $? = 2 ]'
check "no command: 2" 'neuron-cdi 2>/dev/null; [ $? = 2 ]'
check "a folder that is not there: 1" 'neuron-cdi -o /nowhere/x generate 2>/dev/null; [ $? = 1 ]'
check "12 devices of inf2 are a ring" 'rmmod neuron_emu && modprobe neuron_emu instance=inf2.48xlarge &&
	neuron-ls -t | grep -q "^Links: a ring of 12"'
check "no device" 'rmmod neuron_emu && ! neuron-ls >/tmp/none 2>/tmp/err && [ ! -s /tmp/none ] &&
	grep -q "no Neuron device" /tmp/err'
check "nothing for containers" '! neuron-cdi -o /tmp/none.json generate 2>/dev/null &&
	[ ! -e /tmp/none.json ]'
check "JSON: an empty list" '[ "$(neuron-ls -j 2>/dev/null)" = "[]" ]'
check "load for what follows" 'modprobe neuron_emu'
exit $bad
