#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# neuron-monitor reports a program that runs, as JSON and for Prometheus, and what it costs.

bad=0
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; bad=1; fi
}

# User Mode Linux has no TCP here: what would be served is in the file.
listen=--listen=9649
if [ ! -e /proc/net/tcp ]; then
	listen=
fi
fetch() {
	if [ "$listen" ]; then
		busybox wget -q -O /tmp/http.prom http://127.0.0.1:9649/metrics
	else
		sleep 2 && cp /tmp/neuron.prom /tmp/http.prom
	fi
}

[ ! "$listen" ] || busybox ip link set lo up
NEURON_PROCESS_TAG=demo neuron-demo -m mnist-int8 -p 1000 >/tmp/demo 2>&1 &
demo=$!
neuron-monitor -p 500ms -n 20 >/tmp/monitor.json &
json=$!
# shellcheck disable=SC2086
neuron-monitor $listen --textfile=/tmp/neuron.prom -p 1s &
monitor=$!
wait $json
check "an object a line" '[ "$(grep -c "^{\"schema_version\":1,.*}$" /tmp/monitor.json)" = 20 ]'
check "a software device" 'grep -q "\"neuron_device_type\":\"trainium2\".*\"emulated\":true" /tmp/monitor.json'
check "the program, with its tag" \
	'grep -q "\"pid\":$demo,\"address\":\"\",\"neuron_runtime_tag\":\"demo\"" /tmp/monitor.json'
check "its core is busy" 'grep -q "\"neuroncore_utilization\":[0-9]*[1-9]" /tmp/monitor.json'
check "it executes" 'grep -q "\"completed\":[1-9]" /tmp/monitor.json'
check "without errors" '! grep -q "\"\(generic\|numerical\|model\|runtime\|hardware\|transient\)\":[1-9]" /tmp/monitor.json'
check "its memory" 'grep -q "\"neuron_device\":[1-9].*\"tensors\":[1-9]" /tmp/monitor.json'
check "HTTP, if there is TCP" fetch
for file in /tmp/http.prom /tmp/neuron.prom; do
	check "metrics: the program owns a core" 'grep -q "^neuron_core_in_use{.*} 1$" $file'
	check "metrics: executions" 'grep -q "^neuron_core_executions_total{.*} [1-9]" $file'
	check "metrics: host memory of the device" \
		'grep -q "^neuron_device_host_memory_bytes{.*} [1-9]" $file'
	check "metrics: memory of the program" \
		'grep -q "^neuron_process_device_memory_bytes{neuron_device=\"0\",pid=\"$demo\",process=\"neuron-demo\",user=\"root\"} [1-9]" $file'
done
kill $demo
wait $demo 2>/dev/null
check "the module goes while it serves" 'rmmod neuron_emu && sleep 1 &&
	fetch && ! grep -q "^neuron_device_info{" /tmp/http.prom'
kill $monitor
wait $monitor
check "it ends by a signal, and its file with it" '[ $? = 143 ] && [ ! -e /tmp/neuron.prom ]'
mkdir /tmp/monitor.d && ln -s /tmp/monitor.d/real.prom /tmp/monitor.d/link.prom && mknod /tmp/monitor.d/null c 1 3
: >/tmp/monitor.d/real.prom
check "a link stays a link" 'neuron-monitor -t /tmp/monitor.d/link.prom -n 1 && [ -L /tmp/monitor.d/link.prom ] &&
	[ -s /tmp/monitor.d/real.prom ] && [ "$(stat -c %a /tmp/monitor.d/real.prom)" = 644 ]'
check "a device stays a device" 'neuron-monitor -t /tmp/monitor.d/null -n 1 && [ -c /tmp/monitor.d/null ]'
neuron-monitor -t /tmp/monitor.d/null -p 100ms &
monitor=$!
sleep 1
kill $monitor
wait $monitor
check "also at the end" '[ -c /tmp/monitor.d/null ] && [ "$(ls /tmp/monitor.d | wc -l)" = 3 ]'

# What a turn costs, on this kernel; a guest is slow.
check "16 devices" 'modprobe neuron_emu instance=trn2.48xlarge && neuron-monitor -t /tmp/a.prom -n 1 &&
	neuron-monitor -t /tmp/b.prom -n 9 -p 1s'
for file in /tmp/a.prom /tmp/b.prom; do
	echo "# $(grep "^neuron_monitor_cpu" $file), $(grep -c "^neuron_device_info{" $file) devices"
done
rmmod neuron_emu
modprobe neuron_emu
exit $bad
