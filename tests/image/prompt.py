#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""neuron-vm without a command, driven through a terminal: a prompt, and its end.

usage: prompt.py NEURON-VM [OPTION...]
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'vm'))
# pylint: disable=wrong-import-position
from shell import Terminal

machine = Terminal(*sys.argv[1:])
# What the kernel has to say may follow on the same line.
machine.expect(r'root@neuron:~# ', 300)
machine.send('neuron-ls | head -1; ls /dev/neuron0\n')
text = machine.expect(r'^/dev/neuron0$')
assert '1 Neuron device' in text, text
machine.send('poweroff\n')
status = machine.end()
assert status == 0, status
