#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The image on a machine with Secure Boot: the modules that DKMS signed load once its key
is enrolled, in the way that README.md says, through the firmware's screens.

usage: secureboot.py IMAGE-DIRECTORY
"""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'vm'))
# pylint: disable=wrong-import-position
from shell import Terminal

FIRMWARE = '/usr/share/OVMF/OVMF_CODE_4M.ms.fd'
VARIABLES = '/usr/share/OVMF/OVMF_VARS_4M.ms.fd'
PROMPT = r'root@neuron:~# $'
DOWN = '\x1b[B'
PASSWORD = 'neuron-open'


def start(image, directory):
    """A machine whose disk and firmware variables stay when it starts again."""
    variables = f'{directory}/variables'
    disk = f'{directory}/disk'
    shutil.copy(VARIABLES, variables)
    subprocess.run(['qemu-img', 'create', '-q', '-f', 'qcow2', '-F', 'qcow2',
                    '-b', os.path.abspath(f'{image}/neuron.qcow2'), disk], check=True)
    machine = Terminal(shutil.which('qemu-system-x86_64'), '-nodefaults', '-no-user-config', '-display', 'none',
                    '-machine', 'q35,smm=on', '-accel', 'tcg,thread=multi', '-cpu', 'max,-cx16', '-smp', '2',
                    '-m', '2048', '-global', 'driver=cfi.pflash01,property=secure,value=on',
                    '-drive', f'if=pflash,format=raw,unit=0,readonly=on,file={FIRMWARE}',
                    '-drive', f'if=pflash,format=raw,unit=1,file={variables}',
                    '-drive', f'file={disk},if=virtio', '-serial', 'stdio')
    machine.prompt = PROMPT
    return machine


def refused(machine):
    machine.expect(PROMPT, 600)
    text = machine.run('mokutil --sb-state; cat /sys/kernel/security/lockdown')
    assert 'SecureBoot enabled' in text and '[integrity]' in text, text
    text = machine.run('modprobe neuron_emu; ls /dev/neuron0')
    assert 'Key was rejected by service' in text and 'No such file' in text, text


def enrol(machine):
    machine.send('mokutil --import /var/lib/dkms/mok.pub\n')
    for question in ('input password: ?', 'again: ?'):
        machine.expect(question)
        machine.send(PASSWORD + '\n')
    machine.expect(PROMPT)
    machine.send('reboot\n')
    machine.expect('Press any key to perform MOK management', 300)
    machine.send('\n')
    for screen, keys in (('Enroll MOK', DOWN), (None, '\r'),
                         ('View key 0', DOWN), (None, '\r'),
                         ('Enroll the key', DOWN), (None, '\r'),
                         ('Password', PASSWORD), (None, '\r'),
                         ('Reboot', '\r')):
        if screen:
            machine.expect(screen)
        machine.settle()
        machine.send(keys)


def accepted(machine):
    machine.expect(PROMPT, 600)
    text = machine.run('mokutil --sb-state; neuron-ls | head -1; cat /proc/sys/kernel/tainted')
    assert 'SecureBoot enabled' in text and '1 Neuron device' in text, text


def main():
    with tempfile.TemporaryDirectory() as directory:
        machine = start(sys.argv[1], directory)
        for name, point in (('modules whose key is not enrolled are refused', refused),
                            ('its key is enrolled', enrol),
                            ('they are loaded', accepted)):
            try:
                point(machine)
            except AssertionError as error:
                print(f'not ok - Secure Boot: {name}\n# {error}')
                return 1
            print(f'ok - Secure Boot: {name}', flush=True)
        machine.send('poweroff\n')
        return machine.end()


if __name__ == '__main__':
    sys.exit(main())
