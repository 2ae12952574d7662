#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""neuron-top: text, JSON and the screen, for a sysfs and /proc that are made up here.

For tools that were built (make lib). The screen is that of tmux.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

from tree import (GIB, Tool, add_client, counter, devices, env, make_device, make_tree, root,
                  run_tests, show, work, write)

TOP = Tool('neuron-top')
TOOL = TOP.path


class Screen:
    """A terminal with neuron-top in it."""

    def __init__(self, cols, rows, *arguments, before=()):
        self.socket = work / f'tmux-{len(list(work.iterdir()))}'
        command = ' '.join(['env', *before, str(TOOL), *arguments])
        self.tmux('-f/dev/null', 'new-session', '-d', '-x', str(cols), '-y', str(rows),
                  f'{command}; echo status $?; stty -a | grep -c -w -e -echo; exec sleep 100')

    def tmux(self, *arguments):
        return subprocess.run(['tmux', '-S', self.socket, '-u', *arguments], env=env, check=True,
                              capture_output=True, text=True, timeout=20).stdout

    def text(self):
        return self.tmux('capture-pane', '-p')

    def wait(self, *words, none=()):
        for _ in range(100):
            text = self.text()
            if all(w in text for w in words) and not any(w in text for w in none):
                return text
            time.sleep(0.05)
        raise AssertionError(f'no {words} or {none} in\n{text}')

    def press(self, *keys):
        self.tmux('send-keys', *keys)

    def pid(self):
        shell = self.tmux('list-panes', '-F', '#{pane_pid}').strip()
        return int(subprocess.run(['pgrep', '-P', shell], capture_output=True, text=True,
                                  check=True).stdout)

    def end(self):
        self.tmux('kill-server')


def text_fits():
    """16 devices in 24 lines of 80 columns"""
    make_tree(16)
    lines = TOP.run('--batch', '-n', '1').stdout.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80, lines
    assert sum('Trainium2' in line for line in lines) == 16, lines
    assert '5.0G/96.0G' in lines[3] and ' 1/8 ' in lines[3] and '[▆' in lines[3], lines[3]
    assert any('202' in line and '9.0G' in line and 'trainer' in line for line in lines), lines
    assert '16 devices, trn2.48xlarge (software), driver 2.30' in lines[0], lines[0]


def one_is_open():
    """a single device is open, a core has letters"""
    make_tree(1)
    lines = TOP.run('--batch', '-n', '1').stdout.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80, lines
    assert any('HBM 0' in line and 'largest  9.5G frag  50%' in line for line in lines), lines
    assert any('core 0' in line and '[MTT' in line for line in lines), lines
    assert any('M code 1.0G' in line and 'T tensors 4.0G' in line for line in lines), lines


def first_is_open():
    """of three devices, as many are open as fit: the first"""
    make_tree(3)
    lines = TOP.run('--batch', '-n', '1').stdout.splitlines()
    assert len(lines) <= 24, lines
    assert [line[:5] for line in lines if 'Trainium2' in line] == ['-   0', '+   1', '+   2'], lines


def json_values():
    """JSON has what the files say"""
    make_tree(16)
    one, = TOP.objects('-n', '1')
    assert one['schema_version'] == 1 and one['driver'] == '2.30'
    device = one['neuron_devices'][0]
    assert len(one['neuron_devices']) == 16 and device['emulated'] is True
    assert device['total'] == 96 * GIB and device['used'] == 5 * GIB
    assert device['hbms'][0]['largest_free'] == 19 * GIB // 2
    core = device['cores'][0]
    assert core['categories']['tensors'] == 4 * GIB and core['used'] == 5 * GIB + 4096
    assert core['inferences'] == 1000 and core['inferences_per_second'] is None
    assert device['neuron_processes'][0] == {
        'pid': 101, 'user': device['neuron_processes'][0]['user'],
        'command': 'python3 serve.py', 'device_bytes': 5 * GIB, 'host_bytes': 64 << 10}


def two_clients():
    """a process with two clients of a device is listed once, with what they have together"""
    make_tree(1)
    add_client(101, 0, 1024, fd=4)
    one, = TOP.objects('-n', '1')
    listed = one['neuron_devices'][0]['neuron_processes']
    assert [(p['pid'], p['device_bytes'], p['host_bytes']) for p in listed] == \
        [(101, 6 * GIB, 128 << 10)], listed
    top = TOP.start('--json', '-d', '0.2')
    top.stdout.readline()
    fdinfo = root / 'proc/101/fdinfo/4'
    fdinfo.write_text(fdinfo.read_text().replace(f'{1 << 20} KiB', f'{2 << 20} KiB'))
    for _ in range(10):
        p, = json.loads(top.stdout.readline())['neuron_devices'][0]['neuron_processes']
        if p['device_bytes'] == 7 * GIB:
            break
    else:
        raise AssertionError(p)
    top.terminate()
    top.wait()


def rates():
    """rates are those between two refreshes, an error has its class"""
    make_tree(1)
    top = TOP.start('--json', '-d', '1', '-n', '3')
    first = json.loads(top.stdout.readline())
    write(counter(0, 0, 'other_info/inference_count'), 1100)
    write(counter(0, 0, 'other_info/nc_time_in_use'), 501000)
    write(counter(0, 0, 'status/oob_error'), 10)
    for name in 'infer_completed_with_error', 'execute_completed_with_error':
        write(counter(0, 0, f'status/{name}'), 5)
    second = json.loads(top.stdout.readline())['neuron_devices'][0]
    write(counter(0, 0, 'other_info/inference_count'), 0)
    third = json.loads(top.stdout.readline())['neuron_devices'][0]
    assert top.wait() == 0
    core = second['cores'][0]
    assert first['neuron_devices'][0]['inferences_per_second'] is None
    assert 70 < core['inferences_per_second'] <= 101, core
    assert 0.35 < core['busy'] <= 0.51, core
    assert core['errors']['bounds']['total'] == 10, core
    assert 7 < core['errors']['bounds']['per_second'] <= 10.1, core
    assert core['errors']['other']['total'] == 5, 'two names of one error'
    assert third['cores'][0]['inferences_per_second'] is None, 'somebody cleared it'
    assert third['cores'][1]['inferences_per_second'] == 0


def missing_files():
    """what a driver does not tell is -, and null"""
    make_tree(2)
    for hbm in devices.glob('neuron*/hbm*'):
        shutil.rmtree(hbm)
    for core in devices.glob('neuron0/neuron_core*/stats'):
        shutil.rmtree(core)
    for name in 'info', 'emulated':
        path = devices / 'neuron1' / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    flops = devices / 'neuron1/neuron_core0/stats/other_info/flop_count'
    shutil.rmtree(flops)
    flops.write_text('77\n')
    zero, one = TOP.objects('-n', '1')[0]['neuron_devices']
    assert zero['used'] is None and zero['total'] == 96 * GIB, 'the kind is known'
    assert zero['cores'][0]['inferences'] is None and zero['hbms'] == []
    assert one['total'] is None and one['emulated'] is False and one['used'] == 0
    assert one['cores'][0]['flops'] == 77
    text = TOP.run('-b', '-n', '1').stdout
    assert '-/96.0G' in text and '0/-' in text, text
    (devices / 'neuron0/core_count').write_text('')
    shutil.rmtree(devices / 'neuron1')
    (devices / 'neuron1').mkdir()
    assert '-/-' in TOP.run('-b', '-n', '1').stdout


def come_and_go():
    """devices that come, go and come back under the same number"""
    make_tree(3)
    top = TOP.start('--json', '-d', '0.3')

    def numbers():
        return [d['neuron_device'] for d in json.loads(top.stdout.readline())['neuron_devices']]

    def until(want):
        for _ in range(10):
            if numbers() == want:
                return
        raise AssertionError(want)

    until([0, 1, 2])
    (devices / 'neuron1').rename(work / 'gone')
    until([0, 2])
    make_device(3)
    until([0, 2, 3])
    (devices / 'neuron0').rename(work / 'gone0')
    make_device(9)
    (devices / 'neuron9').rename(devices / 'neuron0')
    write(devices / 'neuron0/hbm0/used', 77)
    for _ in range(10):
        if json.loads(top.stdout.readline())['neuron_devices'][0]['hbms'][0]['used'] == 77:
            break
    else:
        raise AssertionError('still the old neuron0')
    shutil.rmtree(devices)
    until([])
    devices.mkdir()
    make_device(5)
    until([5])
    top.terminate()
    top.wait()
    shutil.rmtree(work / 'gone')
    shutil.rmtree(work / 'gone0')


def appears():
    """a device that was seen while its driver added cores, HBMs and their files"""
    make_tree(2)
    late = work / 'late'
    late.mkdir()
    names = ['core_count', *(f'hbm{n}' for n in range(4)), *(f'neuron_core{n}' for n in range(8))]
    for name in names:
        (devices / 'neuron1' / name).rename(late / name)
    (late / 'neuron_core7/stats/other_info').rename(late / 'other_info')
    top = TOP.start('--json', '-d', '0.2')

    def until(cores, hbms, inferences):
        for _ in range(10):
            zero, one = json.loads(top.stdout.readline())['neuron_devices']
            if (len(one['cores']), len(one['hbms'])) == (cores, hbms) and \
                    (not cores or one['cores'][-1]['inferences'] == inferences):
                break
        else:
            raise AssertionError(one)
        assert len(zero['cores']) == 8, zero

    def add(*more):
        for name in more:
            (late / name).rename(devices / 'neuron1' / name)

    until(0, 0, None)
    add(*names[:3])
    until(0, 2, None)
    add(*names[3:7])
    until(2, 4, 1000)
    add(*names[7:])
    until(8, 4, None)
    (late / 'other_info').rename(devices / 'neuron1/neuron_core7/stats/other_info')
    until(8, 4, 1000)
    top.terminate()
    top.wait()


def no_opens():
    """no file is opened between two refreshes"""
    make_tree(16)
    opens = []
    for count in '2', '8':
        log = work / 'strace'
        # Other calls go on at full speed: processes are looked for every three seconds.
        subprocess.run(['strace', '-f', '--seccomp-bpf', '-o', log, '-e', 'trace=open,openat',
                        TOOL, '-b', '-d', '0.1', '-n', count], env=env, stdout=subprocess.DEVNULL, check=True, timeout=60)
        opens.append(sum('SIGCHLD' not in line for line in log.read_text().splitlines()))
    assert opens[0] == opens[1], opens


def usage():
    """status 2 for wrong options, 1 without a device, 0 for help"""
    make_tree(1)
    for wrong in (['-d', '0'], ['-d', 'x'], ['-n', '0'], ['--none'], ['x'], ['-d', 'nan']):
        got = TOP.run(*wrong)
        assert got.returncode == 2 and got.stderr and not got.stdout, (wrong, got)
    assert TOP.run('--help').returncode == 0 and TOP.run('--version').stdout.startswith('neuron-top ')
    make_tree(0)
    got = TOP.run('-b', '-n', '1')
    assert got.returncode == 1 and 'No Neuron device' in got.stdout, got
    got = TOP.run('--json', '-n', '1')
    assert got.returncode == 1 and json.loads(got.stdout)['neuron_devices'] == [], got
    got = subprocess.run(f'{TOOL} -b >/dev/full', shell=True, env=env, stderr=subprocess.DEVNULL,
                         check=False)
    assert got.returncode == 1, got


def screen_small():
    """80x24: 16 devices, keys"""
    make_tree(16)
    screen = Screen(80, 24, '-d', '0.5')
    text = screen.wait('Trainium2', 'q Quit')
    assert text.count('Trainium2') == 16 and 'python3 serve.py' in text, text
    assert 'core 0' not in text, text
    show('80x24', text)
    screen.press('Enter')
    show('80x24, a device opened', screen.wait('core 0', 'HBM 3', '[MTT'))
    screen.press('Down', 'Down', 'Left')
    screen.wait('15 Trainium2', none=['core 0'])
    screen.press('s', 's')
    screen.wait('Sort:inferences')
    screen.press('s', 's', 's', 'r')
    text = screen.wait('Sort:memory(r)')
    assert text.index('  1 Trainium2') < text.index(' 15 Trainium2') < text.index('  0 Trainium2')
    screen.press('Tab')
    text = screen.wait('Tab Devices', 'Sort:memory')
    assert text.index('trainer') < text.index('serve.py'), text
    screen.press('s', 's')
    text = screen.wait('Sort:pid')
    assert text.index('serve.py') < text.index('trainer'), text
    screen.press('/', 't', 'r', 'a', 'i', 'n')
    screen.wait('Filter: train_', 'trainer', none=['serve.py'])
    screen.press('Enter')
    screen.wait('Filter:train')
    screen.press('/', 'Escape')
    screen.wait('serve.py', none=['train_'])
    screen.press('?')
    show('help', screen.wait('Any key', 'shared scratchpad', 'uncategorized'))
    screen.press('x')
    screen.wait('q Quit')
    screen.press('q')
    screen.wait('status 0\n0')
    screen.end()


def screen_large():
    """120x40: two devices start open, resizing, devices that go, SIGTERM"""
    make_tree(2)
    screen = Screen(120, 40, '-d', '0.2')
    show('120x40', screen.wait('LAST MINUTE', 'core 7', '1 Trainium2'))
    write(counter(0, 0, 'status/oob_error'), 3)
    screen.wait('errors: bounds 3')
    screen.tmux('resize-window', '-x', '60', '-y', '10')
    screen.wait('neuron-top', none=['LAST MINUTE'])
    screen.tmux('resize-window', '-x', '20', '-y', '3')
    time.sleep(0.3)
    screen.tmux('resize-window', '-x', '90', '-y', '30')
    screen.wait('neuron-top', 'q Quit', 'core 7')
    shutil.rmtree(devices / 'neuron0')
    screen.wait('1 device,', none=['  0 Trainium2'])
    os.kill(screen.pid(), signal.SIGTERM)
    screen.wait('status 143\n0', none=['q Quit'])
    screen.end()


def screen_wide():
    """480x24: wider than a line is ever drawn"""
    make_tree(16)
    screen = Screen(480, 24, '-d', '0.2')
    screen.wait('16 devices', 'q Quit')
    screen.press('q')
    screen.wait('status 0\n0')
    screen.end()


def no_colour():
    """--no-color and NO_COLOR"""
    make_tree(1)
    for before, arguments, colours in (((), [], True), ((), ['--no-color'], False),
                                       (['NO_COLOR=1'], [], False)):
        screen = Screen(80, 24, *arguments, before=before)
        screen.wait('[MTT')
        text = screen.tmux('capture-pane', '-p', '-e')
        assert ('\x1b[32m' in text or '\x1b[42m' in text or ';42m' in text) == colours, repr(text)
        screen.end()


bad = run_tests(text_fits, one_is_open, first_is_open, json_values, two_clients, rates,
                missing_files, come_and_go, appears, no_opens, usage, screen_small, screen_large,
                screen_wide, no_colour)
for server in work.glob('tmux-*'):
    subprocess.run(['tmux', '-S', server, 'kill-server'], check=False, capture_output=True)
shutil.rmtree(work)
sys.exit(bad)
