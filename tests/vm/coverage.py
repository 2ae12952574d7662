#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Line coverage of the modules from gcov's counters.

usage: coverage.py [--lines] DIRECTORY SOURCE

DIRECTORY holds .gcda and .gcno files in the tree of SOURCE, the directory that the
modules were built in. Prints a table and the functions that were never called; fails
when less than MINIMUM per cent of the lines of neuron.ko ran. With --lines, also the
numbers of the lines that did not.
"""

import collections
import gzip
import json
import os
import subprocess
import sys

MINIMUM = 85.0
# What is linked into each module, by directory.
MODULES = {"neuron.ko": ("core", "mem", "dma", "sysfs"), "neuron_emu.ko": ("emu",)}


def objects(directory):
    for where, _, names in os.walk(directory):
        for name in sorted(names):
            if name.endswith(".gcda"):
                yield os.path.join(where, name)


def main():
    show = sys.argv[1] == "--lines"
    directory, source = sys.argv[2 if show else 1:]
    lines = collections.defaultdict(dict)
    calls = {}
    for path in objects(directory):
        if path[len(directory):].lstrip("/").split("/")[0] not in sum(MODULES.values(), ()):
            continue
        out = subprocess.run(["gcov", "--json-format", "--stdout", path], check=True,
                             stdout=subprocess.PIPE, cwd=directory).stdout
        report = json.loads(gzip.decompress(out) if out[:2] == b"\x1f\x8b" else out)
        for file in report["files"]:
            name = os.path.join(report["current_working_directory"], file["file"])
            name = os.path.relpath(os.path.normpath(name), source)
            if name.startswith(".."):
                continue
            for line in file["lines"]:
                counts = lines[name]
                counts[line["line_number"]] = max(counts.get(line["line_number"], 0),
                                                  line["count"])
            for function in file["functions"]:
                key = (name, function["start_line"], function["demangled_name"])
                calls[key] = calls.get(key, 0) + function["execution_count"]

    shares = {}
    for module, parts in MODULES.items():
        total = reached = 0
        print(module)
        for name in sorted(lines):
            if name.split("/")[0] not in parts:
                continue
            n = len(lines[name])
            ran = sum(1 for count in lines[name].values() if count)
            print(f"  {name:<28} {ran:5} of {n:5} lines  {100 * ran / n:5.1f} %")
            total += n
            reached += ran
        if not total:
            sys.exit(f"no counters of {module}")
        shares[module] = 100 * reached / total
        print(f"  {'all':<28} {reached:5} of {total:5} lines  {shares[module]:5.1f} %")
        never = [key for key, count in sorted(calls.items())
                 if not count and key[0].split("/")[0] in parts]
        print(f"  never called: {len(never)} functions")
        for name, line, function in never:
            print(f"    {name}:{line} {function}")
    for name, counts in sorted(lines.items() if show else []):
        missed = [str(line) for line, count in sorted(counts.items()) if not count]
        print(f"{name}: {' '.join(missed)}")
    good = shares["neuron.ko"] >= MINIMUM
    print(f"{'ok' if good else 'not ok'} - {shares['neuron.ko']:.1f} % of the lines of neuron.ko, "
          f"at least {MINIMUM:.0f} % wanted")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
