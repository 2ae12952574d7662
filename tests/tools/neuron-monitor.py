#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""neuron-monitor: JSON, periods, configuration, Prometheus, for a sysfs and /proc that are
made up here.

For tools that were built (make lib).
"""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from prometheus_client.parser import text_string_to_metric_families

from tree import (CATEGORIES, GIB, Tool, add_client, counter, devices, env, make_device,
                  make_process, make_tree, root, run_tests, work, write)

MONITOR = Tool('neuron-monitor')
CONFIG = work / 'monitor.json'
PROM = work / 'neuron.prom'
USAGE = dict.fromkeys('user nice system idle io_wait irq soft_irq'.split(), float)
N = (int, type(None))
X = (float, type(None))
SCHEMA = {
    'schema_version': int, 'time': float,
    'neuron_runtime_data': [{
        'pid': int, 'address': str, 'neuron_runtime_tag': str, 'error': str,
        'report': {
            'neuroncore_counters': {
                'period': float, 'error': str,
                'neuroncores_in_use': {'*': {
                    'neuroncore_utilization': float, 'flops': int,
                    'v3d': {'*': {'neuroncore_utilization': float}}}}},
            'execution_stats': {
                'period': float, 'error': str,
                'error_summary': {'transient': N} | dict.fromkeys(
                    'generic numerical model runtime hardware'.split(), int),
                'execution_summary': dict.fromkeys(
                    'completed completed_with_err completed_with_num_err timed_out '
                    'incorrect_input failed_to_queue'.split(), int),
                'latency_stats': {'total_latency': type(None), 'device_latency': type(None)}},
            'memory_used': {
                'period': float, 'error': str, 'loaded_models': type(None),
                'neuron_runtime_used_bytes': {
                    'host': int, 'neuron_device': int,
                    'usage_breakdown': {
                        'host': {'application_memory': N, 'constants': N, 'dma_buffers': int,
                                 'tensors': N},
                        'neuroncore_memory_usage': {'*': dict.fromkeys(CATEGORIES, int)}}}},
            'neuron_runtime_vcpu_usage': {
                'period': float, 'error': str, 'vcpu_usage': {'user': X, 'system': X}}}}],
    'system_data': {
        'neuron_hw_counters': {
            'period': float, 'error': str,
            'neuron_devices': [{
                'neuron_device_index': int, 'emulated': bool, 'mem_ecc_corrected': int,
                'mem_ecc_uncorrected': int, 'mem_ecc_repairable_uncorrected': int,
                'sram_ecc_corrected': int,
                'sram_ecc_uncorrected': int}]},
        'vcpu_usage': {'period': float, 'error': str, 'average_usage': USAGE,
                       'usage_data': {'*': USAGE}, 'context_switch_count': int},
        'memory_info': {'period': float, 'error': str, 'memory_total_bytes': int,
                        'memory_used_bytes': int, 'swap_total_bytes': int,
                        'swap_used_bytes': int}},
    'instance_info': dict.fromkeys(
        'instance_name instance_id instance_type instance_availability_zone '
        'instance_availability_zone_id instance_region ami_id subnet_id error'.split(), str),
    'neuron_hardware_info': {
        'neuron_device_type': str, 'neuron_device_version': str, 'neuroncore_version': str,
        'neuron_device_count': int, 'neuron_device_memory_size': int,
        'neuroncore_per_device_count': int, 'logical_neuroncore_config': int,
        'neuron_driver_version': str, 'emulated': bool, 'error': str},
}


def check(value, schema, where='object'):
    """VALUE has the keys of SCHEMA and no others, and each has its type."""
    if isinstance(schema, dict):
        wild = list(schema) == ['*']
        assert isinstance(value, dict) and (wild or set(value) == set(schema)), \
            f'{where}: {set(value) ^ set(schema)}'
        for key, v in value.items():
            check(v, schema['*' if wild else key], f'{where}.{key}')
    elif isinstance(schema, list):
        assert isinstance(value, list), where
        for i, v in enumerate(value):
            check(v, schema[0], f'{where}[{i}]')
    else:
        assert isinstance(value, schema), f'{where} is {value!r}'


def host_tree(ticks=0):
    """What the host and process 101 do."""
    write(root / 'proc/stat', f'cpu  {100 + ticks} 0 {50 + ticks} {1000 + 2 * ticks} 0 0 0 0 0 0\n'
          f'cpu0 {100 + ticks} 0 {50 + ticks} {1000 + 2 * ticks} 0 0 0 0 0 0\n'
          f'intr 1 2 3\nctxt {5000 + ticks}\nbtime 1')
    write(root / 'proc/meminfo', 'MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\n'
          'SwapTotal: 10 kB\nSwapFree: 4 kB')
    write(root / 'proc/101/stat', '101 (a) b) S 1 1 1 0 -1 0 0 0 0 0 '
          f'{10 + ticks} {20 + ticks // 2} 0 0 20 0 1 0 777 4096 100 1')


def tree(count=2):
    """Process 101 has device 0 alone, process 303 has no device that is there."""
    make_tree(count)
    host_tree()
    write(root / 'proc/101/environ', 'A=1\0NEURON_PROCESS_TAG=serving\0B=2\0')


def config(**what):
    CONFIG.write_text(json.dumps(what))
    return '-c', CONFIG


def one_of(o, pid):
    return next(r for r in o['neuron_runtime_data'] if r['pid'] == pid)


def has_schema():
    """the documented keys, with their types"""
    tree()
    monitor = MONITOR.start('-p', '500ms', '-n', '2')
    objects = [json.loads(monitor.stdout.readline())]
    host_tree(ticks=10)
    objects.append(json.loads(monitor.stdout.readline()))
    assert monitor.wait() == 0 and len(objects) == 2
    check(objects[1], SCHEMA)
    # Nothing has moved in the first period, so there is no share of the time.
    check(objects[0], {**SCHEMA, 'system_data': dict})
    info = objects[0]['neuron_hardware_info']
    assert info == {
        'neuron_device_type': 'trainium2', 'neuron_device_version': 'v4',
        'neuroncore_version': 'v3d', 'neuron_device_count': 2,
        'neuron_device_memory_size': 96 * GIB, 'neuroncore_per_device_count': 4,
        'logical_neuroncore_config': 2, 'neuron_driver_version': '2.30', 'emulated': True,
        'error': ''}, info
    assert objects[0]['instance_info']['instance_type'] == 'trn2.48xlarge'
    assert objects[0]['instance_info']['error'], 'this is no EC2 instance'
    assert objects[0]['system_data']['neuron_hw_counters']['neuron_devices'][1] == {
        'neuron_device_index': 1, 'emulated': True, 'mem_ecc_corrected': 1,
        'mem_ecc_uncorrected': 1, 'mem_ecc_repairable_uncorrected': 10, 'sram_ecc_corrected': 1,
        'sram_ecc_uncorrected': 1}


def instance():
    """the instance is what the firmware says on EC2"""
    tree()
    for name, value in {'sys_vendor': 'Amazon EC2', 'product_name': 'trn2.48xlarge',
                        'board_asset_tag': 'i-0123456789abcdef0'}.items():
        write(root / 'sys/devices/virtual/dmi/id' / name, value)
    info = MONITOR.objects('-p', '100ms', '-n', '1')[0]['instance_info']
    assert info['instance_id'] == 'i-0123456789abcdef0' and not info['error'], info
    assert info['instance_type'] == 'trn2.48xlarge', info


def between(change, *arguments, environ=None):
    """The object after CHANGE, which is made behind the first of two."""
    monitor = MONITOR.start('-p', '1s', '-n', '2', *arguments, env={**env, **(environ or {})})
    assert monitor.stdout.readline()
    change()
    o = json.loads(monitor.stdout.readline())
    assert monitor.wait() == 0
    return o


def work_of_core_3():
    write(counter(0, 3, 'other_info/nc_time_in_use'), 501000)
    write(counter(0, 3, 'other_info/flop_count'), 1000 + 10 ** 12)
    write(counter(0, 3, 'other_info/inference_count'), 1100)
    for error, n in {'oob_error': 3, 'timeout': 2, 'hw_error': 1, 'generic_error': 5,
                     'execute_completed_with_num_error': 7, 'exec_bad_input': 4,
                     'hw_repairable_hbm_ue_error': 6, 'execute_failed_to_queue': 8,
                     'execute_completed_with_error': 9}.items():
        write(counter(0, 3, f'status/{error}'), n)
    host_tree(ticks=100)


def rates():
    """utilisation, flops, executions, errors and processor time of a period"""
    tree()
    o = between(work_of_core_3)
    report = one_of(o, 101)['report']
    cores = report['neuroncore_counters']['neuroncores_in_use']
    assert sorted(cores) == ['0', '1', '2', '3'], cores
    # Half a second in a period that is a second, but for how late each end of it was.
    busy = cores['1']['v3d']['nc_v3.3']['neuroncore_utilization']
    assert 35 < busy <= 62.5, cores
    assert abs(cores['1']['neuroncore_utilization'] - busy / 2) < 1e-6, cores
    assert cores['1']['v3d']['nc_v3.2']['neuroncore_utilization'] == 0, cores
    assert abs(cores['1']['flops'] / (busy * 2e10) - 1) < 1e-3 and cores['0']['flops'] == 0, cores
    stats = report['execution_stats']
    assert stats['execution_summary'] == {
        'completed': 100, 'completed_with_err': 9, 'completed_with_num_err': 7, 'timed_out': 2,
        'incorrect_input': 4, 'failed_to_queue': 8}, stats
    assert stats['error_summary'] == {
        'generic': 14, 'numerical': 7, 'transient': None, 'model': 7, 'runtime': 10,
        'hardware': 7}, stats
    usage = report['neuron_runtime_vcpu_usage']['vcpu_usage']
    assert 70 < usage['user'] <= 125 and 35 < usage['system'] <= 62.5, usage
    cpu = o['system_data']['vcpu_usage']
    assert cpu['average_usage'] == cpu['usage_data']['0'] == {
        'user': 25, 'nice': 0, 'system': 25, 'idle': 50, 'io_wait': 0, 'irq': 0,
        'soft_irq': 0}, cpu
    assert cpu['context_switch_count'] == 100, cpu
    assert 0.8 < cpu['period'] < 1.4, cpu


def late_errors():
    """16 devices: errors are not read each time, but none is lost"""
    tree(16)
    make_process(404, 3, 'other', 1)
    monitor = MONITOR.start('-p', '500ms')
    seen = []
    for turn in range(12):
        if turn in (1, 4):
            for core in range(8):
                write(counter(3, core, 'status/timeout'), turn * 10)
        o = json.loads(monitor.stdout.readline())
        seen.append(one_of(o, 404)['report']['execution_stats']['execution_summary']['timed_out'])
    monitor.terminate()
    assert sum(seen[1:]) == 8 * 40 and sum(n > 0 for n in seen[1:]) > 2, seen


def slow_errors():
    """16 devices, a long period: errors of all cores are in the next object"""
    tree(16)
    make_process(404, 3, 'other', 1)
    monitor = MONITOR.start('-p', '3s', '-n', '1')
    time.sleep(1)
    for core in range(8):
        write(counter(3, core, 'status/timeout'), 10)
    o = json.loads(monitor.stdout.readline())
    ended = one_of(o, 404)['report']['execution_stats']['execution_summary']
    assert ended['timed_out'] == 80, ended


def new_owner():
    """what a process did before it ended is not booked on the next one of its cores"""
    tree(16)
    monitor = MONITOR.start('-p', '500ms')
    assert one_of(json.loads(monitor.stdout.readline()), 101)
    for core in range(8):
        write(counter(0, core, 'status/timeout'), 10)
        write(counter(0, core, 'other_info/inference_count'), 1100)
        write(counter(0, core, 'other_info/nc_time_in_use'), 300000)
    # The file is open, and is found empty at once.
    (root / 'proc/101/fdinfo/3').write_text('')
    shutil.rmtree(root / 'proc/101')
    make_process(404, 0, 'next', 1)
    seen = []
    for turn in range(24):
        if turn == 12:
            for core in range(8):
                write(counter(0, core, 'status/timeout'), 13)
                write(counter(0, core, 'other_info/inference_count'), 1107)
        seen.append(one_of(json.loads(monitor.stdout.readline()), 404)['report'])
    monitor.terminate()
    first = seen[0]
    assert set(first['execution_stats']['execution_summary'].values()) == {None}, first
    core = first['neuroncore_counters']['neuroncores_in_use']['0']
    assert core['neuroncore_utilization'] is None and core['flops'] is None, core
    ended = [r['execution_stats']['execution_summary'] for r in seen[1:]]
    assert sum(e['completed'] for e in ended) == 8 * 7, ended
    assert sum(e['timed_out'] for e in ended) == 8 * 3, ended
    assert not any(e['timed_out'] for e in ended[:11]), ended


def memory():
    """memory of a process, by core and category, and of the host"""
    tree()
    o, = MONITOR.objects('-p', '100ms', '-n', '1')
    used = one_of(o, 101)['report']['memory_used']['neuron_runtime_used_bytes']
    assert used['neuron_device'] == 5120 << 20, used
    assert used['host'] == (64 << 10) + 100 * os.sysconf('SC_PAGESIZE'), used
    host = used['usage_breakdown']['host']
    assert host == {'application_memory': 100 * os.sysconf('SC_PAGESIZE'), 'constants': None,
                    'dma_buffers': 64 << 10, 'tensors': None}, host
    core = used['usage_breakdown']['neuroncore_memory_usage']['0']
    assert core['tensors'] == 4 * GIB and core['model_code'] == GIB, core
    info = o['system_data']['memory_info']
    assert {k: v for k, v in info.items() if k.endswith('bytes')} == {
        'memory_total_bytes': 1000 << 10, 'memory_used_bytes': 600 << 10,
        'swap_total_bytes': 10 << 10, 'swap_used_bytes': 6 << 10}, info


def physical_cores():
    """with NEURON_LOGICAL_NC_CONFIG=1 a core is a physical one"""
    tree()
    o = between(work_of_core_3, environ={'NEURON_LOGICAL_NC_CONFIG': '1'})
    cores = one_of(o, 101)['report']['neuroncore_counters']['neuroncores_in_use']
    assert len(cores) == 8 and 35 < cores['3']['neuroncore_utilization'] <= 51, cores
    assert set(cores['3']) == {'neuroncore_utilization', 'flops'}, cores
    info = o['neuron_hardware_info']
    assert info['neuroncore_version'] == 'v3' and info['neuroncore_per_device_count'] == 8, info


def owners():
    """a core whose process is not known is nobody's, and that is said"""
    tree()
    make_process(404, 0, 'other', 1)
    o, = MONITOR.objects('-p', '100ms', '-n', '1')
    for pid in 101, 404:
        group = one_of(o, pid)['report']['neuroncore_counters']
        assert group['neuroncores_in_use'] == {} and 'not known' in group['error'], group
    assert one_of(o, 202)['report']['neuroncore_counters']['error'] == ''
    used = one_of(o, 101)['report']['memory_used']['neuron_runtime_used_bytes']
    assert used['neuron_device'] == 5120 << 20, 'known all the same'


def two_clients():
    """a process with two clients of a device is one, which has what they have together"""
    tree()
    add_client(101, 0, 1024, fd=4)
    add_client(101, 1, 3, fd=5)
    o, = MONITOR.objects('-p', '100ms', '-n', '1')
    report = one_of(o, 101)['report']
    group = report['neuroncore_counters']
    assert len(group['neuroncores_in_use']) == 8 and not group['error'], group
    used = report['memory_used']['neuron_runtime_used_bytes']
    assert used['neuron_device'] == (5120 + 1024 + 3) << 20, used
    assert MONITOR.run('-t', PROM, '-n', '1').returncode == 0
    got = {k: v for k, v in parse(PROM.read_text()).items()
           if 'process' in k[0] and ('pid', '101') in k[1]}
    assert sorted(got.values()) == [64 << 10, 128 << 10, 3 << 20, 6 * GIB], got


def missing_files():
    """what a driver does not tell is null"""
    tree()
    for name in 'status', 'memory_usage', 'other_info':
        for path in devices.glob(f'neuron0/neuron_core*/stats/{name}'):
            shutil.rmtree(path)
    shutil.rmtree(devices / 'neuron0/stats/hardware')
    o, = MONITOR.objects('-p', '100ms', '-n', '1')
    report = one_of(o, 101)['report']
    assert set(report['execution_stats']['execution_summary'].values()) == {None}, report
    core = report['neuroncore_counters']['neuroncores_in_use']['0']
    assert core['neuroncore_utilization'] is None and core['flops'] is None, core
    assert o['system_data']['neuron_hw_counters']['neuron_devices'][0]['mem_ecc_corrected'] is None


def periods():
    """a group comes with its own period"""
    tree()
    start = time.monotonic()
    objects = MONITOR.objects('-n', '8', *config(
        period='200ms',
        neuron_runtimes=[{'period': '400ms', 'metrics': [
            {'type': 'memory_used'}, {'type': 'execution_stats', 'period': '0.6s'}]}],
        system_metrics=[{'type': 'neuron_hw_counters'}, {'type': 'vcpu_usage', 'period': '1s'}]))

    assert time.monotonic() - start > 1.5, time.monotonic() - start
    assert len(objects) == 8

    def times(kind):
        return sum(kind in o['system_data'] or any(
            kind in r['report'] for r in o['neuron_runtime_data']) for o in objects)

    got = [times(kind) for kind in (
        'neuron_hw_counters', 'memory_used', 'execution_stats', 'vcpu_usage')]
    # A turn that is late on a busy machine may have what the next one would have had.
    assert got[0] == 8 and got[1] in (4, 5) and got[2] in (2, 3) and got[3] in (1, 2), got
    seen = [r['report'] for o in objects for r in o['neuron_runtime_data'] if r['pid'] == 101]
    assert all(r['memory_used']['period'] > 0.35 for r in seen if 'memory_used' in r), seen
    assert not any('neuroncore_counters' in r for r in seen), 'not asked for'
    for o in MONITOR.objects('-p', '100ms', '-n', '2', *config(
            period='1h', system_metrics=[{'type': 'memory_info'}])):
        assert list(o['system_data']) == ['memory_info'], 'the option comes before the file'


def tags():
    """processes by their tags"""
    tree()
    what = [{'tag_filter': '^serv', 'metrics': [{'type': 'memory_used'}]},
            {'tag_filter': '^2', 'metrics': [{'type': 'execution_stats'}]}]
    o, = MONITOR.objects('-p', '100ms', '-n', '1', *config(neuron_runtimes=what))
    assert one_of(o, 101)['neuron_runtime_tag'] == 'serving'
    assert list(one_of(o, 101)['report']) == ['memory_used'], o
    assert one_of(o, 202)['neuron_runtime_tag'] == '202', o
    assert list(one_of(o, 202)['report']) == ['execution_stats'], o
    (root / 'proc/202/environ').write_bytes(b'NEURON_PROCESS_TAG=2\xff\0')
    o, = MONITOR.objects('-p', '100ms', '-n', '1', *config(neuron_runtimes=what))
    assert one_of(o, 202)['neuron_runtime_tag'] == '202', 'what is no UTF-8 is no JSON'
    o, = MONITOR.objects('-p', '100ms', '-n', '1', *config(neuron_runtimes=what[:1]))
    assert [r['pid'] for r in o['neuron_runtime_data']] == [101], o


def wrong_configuration():
    """a configuration that makes no sense is named, with its place, and status 2"""
    tree()
    for text, words in (
            ('{', 'line 1'), ('[]', 'no object'), ('{"tempo": "1s"}', 'key "tempo"'),
            ('{"period": 5}', 'no text'), ('{"period": "5"}', '"5" is not a time'),
            ('{"period": "1ms"}', 'not a time'), ('{"period": "nans"}', 'not a time'),
            ('{"period": "1s", "period": "2s"}', 'duplicate'), ('{}', 'no metrics'),
            ('{"neuron_runtimes": {}}', 'no list'),
            ('{"neuron_runtimes": [1]}', '[0] is no object'),
            ('{"neuron_runtimes": [{"tag_filter": "("}]}', 'tag_filter of neuron_runtimes[0]'),
            ('{"neuron_runtimes": [{"metrics": [{}]}]}', 'neuron_runtimes[0].metrics[0]: missing'),
            ('{"neuron_runtimes": [{"metrics": [{"type": "vcpu_usage"}]}]}', '"vcpu_usage" here'),
            ('{"system_metrics": [{"type": "memory_info"}, {"type": "x"}]}', 'system_metrics[1]')):
        CONFIG.write_text(text)
        got = MONITOR.run('-n', '1', '-c', CONFIG)
        assert got.returncode == 2 and words in got.stderr and not got.stdout, (text, got)
    got = MONITOR.run('-n', '1', '-c', work / 'none')
    assert got.returncode == 2 and 'none' in got.stderr, got


def usage():
    """status 2 for wrong options, 0 for help"""
    for wrong in (['-p', '0'], ['-p', '5'], ['-p', '-1s'], ['-n', '0'], ['--none'], ['x'],
                  ['-l', '-n', '1'], ['-t', PROM, '-c', CONFIG], ['--listen=x'],
                  ['--listen=0'], ['--listen=:80'], ['--listen=70000']):
        got = MONITOR.run(*wrong)
        assert got.returncode == 2 and got.stderr and not got.stdout, (wrong, got)
    assert MONITOR.run('--help').returncode == 0
    assert MONITOR.run('--version').stdout.startswith('neuron-monitor ')
    got = subprocess.run(f'{MONITOR.path} -p 100ms -n 1 >/dev/full', shell=True, env=env,
                         stderr=subprocess.DEVNULL, check=False)
    assert got.returncode == 1, got


def come_and_go():
    """devices and processes that come and go; none at all"""
    tree(3)
    monitor = MONITOR.start('-p', '200ms')

    def until(numbers, pids):
        for _ in range(40):
            o = json.loads(monitor.stdout.readline())
            listed = o['system_data']['neuron_hw_counters']['neuron_devices']
            # An object may be of before and after, because each group looks by itself.
            if [d['neuron_device_index'] for d in listed] == numbers and \
                    sorted(r['pid'] for r in o['neuron_runtime_data']) == pids and \
                    o['neuron_hardware_info']['neuron_device_count'] == len(numbers):
                return o
        raise AssertionError(o)

    until([0, 1, 2], [101, 202])
    (devices / 'neuron1').rename(work / 'gone')
    make_process(505, 2, 'late', 7)
    until([0, 2], [101, 202, 505])
    shutil.rmtree(root / 'proc/101')
    until([0, 2], [202, 505])
    shutil.rmtree(devices)
    o = until([], [202, 505])
    assert o['neuron_hardware_info']['error'], o
    devices.mkdir()
    make_device(5)
    until([5], [202, 505])
    monitor.terminate()
    assert monitor.wait() == -signal.SIGTERM
    shutil.rmtree(work / 'gone')


def parse(text):
    """{(name, labels): value}, for a text that has help and type for all of it."""
    out = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type in ('gauge', 'counter'), family
        for sample in family.samples:
            assert sample.name.startswith('neuron_'), sample
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in out, key
            out[key] = sample.value
    return out


def key(name, **labels):
    return 'neuron_' + name, tuple(sorted({k: str(v) for k, v in labels.items()}.items()))


def textfile():
    """a file for node_exporter, complete whenever it is read"""
    tree()
    write(root / 'proc/202/comm', 'a"b\\c')
    assert MONITOR.run('-t', PROM.name, '-n', '1', cwd=work).returncode == 0
    got = parse(PROM.read_text())
    assert got[key('device_info', neuron_device=1, device_name='Trainium2', emulated=1,
                   instance_type='trn2.48xlarge', driver_version='2.30')] == 1
    core = {'neuron_device': 0, 'neuron_core': 0}
    for name, value in {
            key('device_memory_size_bytes', neuron_device=0): 96 * GIB,
            key('device_memory_used_bytes', neuron_device=0): 5 * GIB,
            key('device_host_memory_bytes', neuron_device=0): 8 << 20,
            key('device_ecc_events_total', neuron_device=1, memory='sram', type='corrected'): 1,
            key('device_ecc_events_total', neuron_device=1, memory='mem',
                type='repairable_uncorrected'): 10,
            key('hbm_size_bytes', neuron_device=0, hbm=3): 24 * GIB,
            key('hbm_used_bytes', neuron_device=0, hbm=0): 5 * GIB,
            key('hbm_free_bytes', neuron_device=0, hbm=0): 19 * GIB,
            key('hbm_largest_free_bytes', neuron_device=0, hbm=0): 19 * GIB // 2,
            key('hbm_high_water_bytes', neuron_device=0, hbm=0): 6 * GIB,
            key('core_memory_bytes', **core, category='tensors'): 4 * GIB,
            key('core_host_memory_bytes', **core): 1 << 20,
            key('core_executions_total', **core): 1000,
            key('core_busy_seconds_total', **core): 0.001,
            key('core_flops_total', **core): 1000,
            key('core_errors_total', **core, **{'class': 'bounds'}): 0,
            key('process_device_memory_bytes', neuron_device=15, pid=202, process='a"b\\c',
                user='12345' if os.geteuid() == 0 else os.environ.get('USER', '')): 9 * GIB,
    }.items():
        assert got.get(name) == value, (name, got.get(name))
    assert not any('core_in_use' in name for name, _ in got), 'unknown, has no line'
    assert [p.name for p in work.iterdir() if 'prom' in p.name] == [PROM.name]
    monitor = MONITOR.start('-t', PROM, '-p', '100ms')
    end = time.monotonic() + 1.5
    seen = set()
    while time.monotonic() < end:
        seen.add(parse(PROM.read_text())[key('monitor_cpu_seconds_total')])
    assert len(seen) > 1, 'it is written again'
    monitor.terminate()
    assert monitor.wait() == -signal.SIGTERM
    assert not [p.name for p in work.iterdir() if 'prom' in p.name], 'the file ends with it'
    got = MONITOR.run('-t', work / 'none/x.prom', '-n', '1')
    assert got.returncode == 1 and 'none/x.prom' in got.stderr, got


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def ask(port, method='GET', path='/metrics', host='127.0.0.1'):
    for _ in range(100):
        try:
            connection = http.client.HTTPConnection(host, port, timeout=20)
            connection.request(method, path, body='x' * 5000 if method == 'POST' else None)
            answer = connection.getresponse()
            return answer, answer.read().decode()
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise AssertionError(f'nobody listens at {host}:{port}')


def over_http():
    """an HTTP server for Prometheus, on this host only"""
    tree()
    port = free_port()
    monitor = MONITOR.start(f'--listen={port}')
    answer, text = ask(port)
    assert answer.status == 200, answer.status
    assert answer.headers['Content-Type'].startswith('text/plain; version=0.0.4'), answer.headers
    executions = key('core_executions_total', neuron_device=0, neuron_core=0)
    assert parse(text)[executions] == 1000
    write(counter(0, 0, 'other_info/inference_count'), 1234)
    time.sleep(0.6)
    assert parse(ask(port)[1])[executions] == 1234
    write(counter(0, 0, 'other_info/inference_count'), 1235)
    assert parse(ask(port)[1])[executions] == 1234, 'half a second old at most'
    answer, text = ask(port, 'HEAD')
    assert answer.status == 200 and not text and int(answer.headers['Content-Length']) > 1000
    assert ask(port, path='/x')[0].status == 404 and ask(port, path='/')[0].status == 200
    assert ask(port, 'POST')[0].status == 405
    with socket.socket() as s:
        assert s.connect_ex(('127.0.0.2', port)), 'bound to 127.0.0.1'
    got = MONITOR.run(f'--listen={port}')
    assert got.returncode == 1 and 'in use' in got.stderr, got
    # Those who connect and say nothing do not keep others from it.
    idle = [socket.create_connection(('127.0.0.1', port)) for _ in range(10)]
    assert ask(port)[0].status == 200
    for s in idle:
        s.close()
    monitor.send_signal(signal.SIGINT)
    assert monitor.wait(timeout=5) == -signal.SIGINT


def small_answer(s):
    """Asks over a connection that stays, and reads all of the answer."""
    s.sendall(b'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    text = b''
    while not text.endswith(b'at /metrics\n'):
        more = s.recv(4096)
        assert more, text
        text += more


def crowd():
    """hundreds who connect and ask for nothing, or for a half, keep nobody else from it"""
    tree()
    port = free_port()
    monitor = MONITOR.start(f'--listen={port}')
    assert ask(port)[0].status == 200
    idle = [socket.create_connection(('127.0.0.1', port), timeout=5) for _ in range(200)]
    for s in idle[::2]:
        try:
            s.sendall(b'GET /metrics HTTP/1.1\r\nHost: x\r\n')
        except ConnectionError:
            pass
    # So have some that were answered, and did not go.
    for _ in range(40):
        s = socket.create_connection(('127.0.0.1', port), timeout=5)
        idle.append(s)
        small_answer(s)
    start = time.monotonic()
    assert ask(port)[0].status == 200
    assert time.monotonic() - start < 5, time.monotonic() - start
    small_answer(s)
    for s in idle:
        s.close()
    monitor.send_signal(signal.SIGINT)
    assert monitor.wait(timeout=5) == -signal.SIGINT


def other_address():
    """HTTP at another address, beside JSON and a file"""
    tree()
    port = free_port()
    monitor = MONITOR.start(f'--listen=[::1]:{port}', '--json', '-t', PROM, '-p', '300ms')
    assert json.loads(monitor.stdout.readline())['schema_version'] == 1
    assert ask(port, host='::1')[0].status == 200 and parse(PROM.read_text())
    with socket.socket() as s:
        assert s.connect_ex(('127.0.0.1', port))
    monitor.terminate()
    assert monitor.wait(timeout=5) == -signal.SIGTERM and not PROM.exists()


def wait_for_reader(monitor):
    """Until MONITOR waits for its reader, who does not read."""
    state = ''
    for _ in range(200):
        state = open(f'/proc/{monitor.pid}/wchan', encoding='ascii').read()
        if 'pipe' in state:
            return
        time.sleep(0.1)
    raise AssertionError(f'it waits in {state}, not for its reader')


def signals():
    """a signal ends it, also while its reader does not read"""
    tree(16)
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        monitor = MONITOR.start('-p', '10s')
        time.sleep(0.3)
        monitor.send_signal(number)
        assert monitor.wait(timeout=5) == -number
    monitor = MONITOR.start('-p', '100ms')
    wait_for_reader(monitor)
    monitor.terminate()
    assert monitor.wait(timeout=5) == -signal.SIGTERM


def no_file_is_left():
    """whatever ends it, also while its reader does not read, no old file stays"""
    tree(16)
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        monitor = MONITOR.start('-j', '-t', PROM, '-p', '100ms')
        wait_for_reader(monitor)
        assert PROM.exists()
        monitor.send_signal(number)
        assert monitor.wait(timeout=5) == -number and not PROM.exists()
    # Its reader goes; with an HTTP server, that is an error and no signal.
    for more, status in ([], -signal.SIGPIPE), ([f'--listen={free_port()}'], 1):
        monitor = MONITOR.start('-j', '-t', PROM, '-p', '100ms', *more, stderr=subprocess.DEVNULL)
        assert monitor.stdout.readline()
        monitor.stdout.close()
        assert monitor.wait(timeout=20) == status and not PROM.exists()
    got = subprocess.run(f'{MONITOR.path} -j -t {PROM} -p 100ms >/dev/full', shell=True, env=env,
                         stderr=subprocess.DEVNULL, check=False)
    assert got.returncode == 1 and not PROM.exists(), got
    # The file was written, and now its directory has gone.
    place, gone = work / 'place', work / 'gone'
    place.mkdir()
    monitor = MONITOR.start('-t', place / PROM.name, '-p', '500ms', stderr=subprocess.DEVNULL)
    while not (place / PROM.name).exists():
        time.sleep(0.01)
    place.rename(gone)
    assert monitor.wait(timeout=20) == 1
    shutil.rmtree(gone)


def turn(*arguments):
    """System calls by name, of a turn in which processes are not looked for."""
    log = work / 'strace'
    subprocess.run(['strace', '-f', '-o', log, MONITOR.path, '-n', '6', *arguments], env=env,
                   stdout=subprocess.DEVNULL, check=True, timeout=100)
    turns = [{}]
    for line in log.read_text().splitlines():
        name = line.split(maxsplit=1)[1].partition('(')[0]
        turns[-1][name] = turns[-1].get(name, 0) + 1
        # The file has its name, or signals are caught again after an object was written.
        if name == 'rename' or 'rt_sigaction(SIGHUP' in line and 'write' in turns[-1]:
            turns.append({})
    # The first ones open the files; what comes last is the end of the program.
    return min(turns[2:-1], key=lambda calls: sum(calls.values()))


def few_calls():
    """16 devices: a turn opens no file of theirs, and reads none twice"""
    tree(16)
    files = sum(1 for p in devices.rglob('*') if p.is_file())
    each = turn('-t', PROM, '-p', '100ms')
    print(f'# Prometheus: {sum(each.values()):.0f} system calls, {each["pread64"]:.0f} of them '
          f'reads of {files} files')
    # The file itself.
    assert each.get('openat', 0) < 10 and each['pread64'] < files * 1.02, each
    assert sum(each.values()) - each['pread64'] < 60, each
    each = turn('-p', '100ms')
    print(f'# JSON: {sum(each.values()):.0f} system calls, {each["pread64"]:.0f} of them reads')
    assert each.get('openat', 0) < 20 and each['pread64'] < files * 1.02, each
    assert sum(each.values()) - each['pread64'] < 150, each
    each = turn(*config(period='100ms', system_metrics=[{'type': 'neuron_hw_counters'}]))
    assert each['pread64'] < 16 * 10, 'what is not asked for is not read'


def instructions(count, *arguments):
    """What the program executes for so many objects or files, of which each follows at once."""
    run = subprocess.run(['valgrind', '--tool=cachegrind', '--cache-sim=no',
                          '--cachegrind-out-file=/dev/null', MONITOR.path, '-p', '100ms',
                          '-n', str(count), *arguments], env=env, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, text=True, check=True, timeout=300)
    return int(re.search(r'I +refs: +([0-9,]+)', run.stderr)[1].replace(',', ''))


def cheap():
    """16 devices in use, once a second: under 1 % of 2 GHz, an instruction a cycle"""
    tree(16)
    for n in range(1, 15):
        make_process(1000 + n, n, 'worker', 1)
    for name, arguments in {'JSON': [], 'Prometheus': ['-t', PROM]}.items():
        # Counted, since time is that of other programs, too; the first ones open the files.
        each = (instructions(13, *arguments) - instructions(3, *arguments)) / 10
        print(f'# {name}: {each / 1e6:.2f} million instructions a turn')
        assert 0 < each < 20e6, each


bad = run_tests(has_schema, instance, rates, late_errors, slow_errors, new_owner, memory,
                physical_cores, owners, two_clients, missing_files, periods, tags,
                wrong_configuration, usage, come_and_go, textfile, over_http, crowd,
                other_address, signals, no_file_is_left, few_calls, cheap)
shutil.rmtree(work)
sys.exit(bad)
