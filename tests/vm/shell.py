#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""make shell, driven through a terminal: prompt, tools, job control, files, end.

shell.py card: make card, in the same way.
"""

import os
import pty
import re
import select
import signal
import socket
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROMPT = r'neuron:\S*# $'


class Terminal:
    """A program at a terminal of its own."""

    prompt = PROMPT

    def __init__(self, *command):
        self.text = ''
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ['TERM'] = 'vt100'
            os.execv(command[0], command)

    def expect(self, pattern, seconds=60):
        """What was printed up to the pattern; the rest stays for the next call."""
        deadline = time.monotonic() + seconds
        while True:
            plain = re.sub(r'\x1b\[[?0-9;]*[a-zA-Z]', '', self.text)
            found = re.search(pattern, plain, re.M)
            if found:
                self.text = plain[found.end():]
                return plain[:found.end()]
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f'no {pattern!r} in {plain[-2000:]!r}')
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b''
            if not data:
                raise AssertionError(f'ended without {pattern!r}: {plain[-2000:]!r}')
            self.text += data.decode(errors='replace').replace('\r', '')

    def send(self, keys):
        os.write(self.fd, keys.encode())

    def settle(self, seconds=1):
        """Until nothing has been printed for as long."""
        while select.select([self.fd], [], [], seconds)[0]:
            self.text += os.read(self.fd, 65536).decode(errors='replace').replace('\r', '')

    def run(self, line, seconds=60):
        """A line, and what it prints until the next prompt."""
        self.send(line + '\n')
        return self.expect(self.prompt, seconds)

    def end(self):
        """What is printed to the end, and the exit status."""
        try:
            while select.select([self.fd], [], [], 60)[0] and os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def job_control(shell):
    shell.send('sleep 1000\n')
    shell.expect('sleep 1000\n')
    time.sleep(2)
    shell.send('\x1a')
    assert 'Stopped' in shell.expect(PROMPT)
    assert 'sleep 1000' in shell.run('jobs')
    shell.send('fg\n')
    shell.expect('sleep 1000\n')
    time.sleep(2)
    shell.send('\x03')
    shell.expect(PROMPT)
    assert 'status=130' in shell.run('echo status=$?')


def history(shell):
    shell.run('echo first-$((1 + 1))')
    shell.send('\x1b[A\n')
    assert 'first-2' in shell.expect(PROMPT)


def files(shell, shared):
    with open(f'{shared}/in', 'w', encoding='ascii') as file:
        file.write('from the host\n')
    shell.run('{ cat /shared/in; echo from the guest; } >/shared/out')
    with open(f'{shared}/out', encoding='ascii') as file:
        assert file.read() == 'from the host\nfrom the guest\n'


def prompt(shell):
    # What is missing is built, and KVM tried, before.
    shell.expect(PROMPT, 1200)


def devices(shell):
    assert 'neuron0' in shell.run('ls /dev')
    assert re.search(r'trn2|Trainium2', shell.run('neuron-ls')), 'no trn2'


def card(shell):
    """The card's process outlives the prompt; its control socket was named before it."""
    begin = shell.expect(PROMPT, 1200)
    control = re.search(r'card 0: trn2, figures and faults at (\S+)', begin)[1]
    ids = shell.run('cat /sys/bus/pci/devices/*/vendor /sys/bus/pci/devices/*/device')
    assert '0x1d0f' in ids and '0x7364' in ids, ids
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(control)
        connection.sendall(b'stats\n')
        answer = connection.makefile().read()
    assert answer.endswith('ok\n') and 'complaints 0\n' in answer, answer


def the_end(shell):
    shell.send('false\nexit\n')
    assert shell.end() == 0, 'exit status'


def main():
    with tempfile.TemporaryDirectory() as shared:
        cards = sys.argv[1:] == ['card']
        os.environ['CARD'] = 'trn2' if cards else ''
        shell = Terminal(f'{HERE}/shell.sh', shared)
        points = (('a prompt', lambda: prompt(shell)),
                  ('neuron-ls prints the device', lambda: devices(shell)),
                  ('a job is stopped, and goes on', lambda: job_control(shell)),
                  ('the line before comes back', lambda: history(shell)),
                  ('files in and out', lambda: files(shell, shared)),
                  ('exit ends it, with status 0', lambda: the_end(shell)))
        if cards:
            points = (('a card is on the bus, and can be asked', lambda: card(shell)), points[-1])
        try:
            for name, point in points:
                try:
                    point()
                except AssertionError as error:
                    print(f'not ok - shell: {name}\n# {error}')
                    return 1
                print(f'ok - shell: {name}', flush=True)
            return 0
        finally:
            try:
                os.kill(shell.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass


if __name__ == "__main__":
    sys.exit(main())
