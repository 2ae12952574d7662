#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Line coverage of the library from gcov's counters.

usage: coverage.py [--lines] BUILD

BUILD has the objects and counters of the host tests, which were compiled in the
directory of this program. Prints a table and the functions that were never called;
fails when less than MINIMUM per cent of the lines of libneuron/src and nrt ran, or when there
is a file of which no test has an object. With --lines, also the numbers of the lines
that did not run.
"""

import glob
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import gcov  # pylint: disable=wrong-import-position

MINIMUM = 90.0
SOURCE = os.path.join(HERE, "../../libneuron")


def main():
    show = sys.argv[1] == "--lines"
    coverage = gcov.Coverage(SOURCE)
    for path in gcov.counters(sys.argv[-1]):
        coverage.add(path, HERE)
    share = coverage.table(lambda name: name.startswith(("src/", "nrt/")))
    if show:
        coverage.missed()
    sources = [os.path.relpath(path, SOURCE) for part in ("src", "nrt")
               for path in sorted(glob.glob(os.path.join(SOURCE, part, "*/*.c")))]
    without = [name for name in sources if name not in coverage.lines]
    for name in without:
        print(f"not ok - no test is built with {name}")
    return gcov.verdict(share, MINIMUM, "libneuron and libnrt") or len(without) > 0


if __name__ == "__main__":
    sys.exit(main())
