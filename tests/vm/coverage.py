#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Line coverage of the modules from gcov's counters.

usage: coverage.py [--lines] DIRECTORY SOURCE

DIRECTORY holds .gcda and .gcno files in the tree of SOURCE, the directory that the
modules were built in. Prints a table and the functions that were never called; fails
when less than MINIMUM per cent of the lines of neuron.ko ran. With --lines, also the
numbers of the lines that did not.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import gcov  # pylint: disable=wrong-import-position

MINIMUM = 85.0
# What is linked into each module, by directory.
MODULES = {"neuron.ko": ("core", "mem", "dma", "sysfs"), "neuron_emu.ko": ("emu",)}


def main():
    show = sys.argv[1] == "--lines"
    directory, source = sys.argv[2 if show else 1:]
    coverage = gcov.Coverage(source)
    for path in gcov.counters(directory):
        if path[len(directory):].lstrip("/").split("/")[0] in sum(MODULES.values(), ()):
            coverage.add(path, directory)
    shares = {}
    for module, parts in MODULES.items():
        print(module)
        shares[module] = coverage.table(lambda name, p=parts: name.split("/")[0] in p)
    if show:
        coverage.missed()
    return gcov.verdict(shares["neuron.ko"], MINIMUM, "neuron.ko")


if __name__ == "__main__":
    sys.exit(main())
