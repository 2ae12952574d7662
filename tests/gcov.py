# SPDX-License-Identifier: GPL-2.0-only
"""Line coverage from gcov's counters, for the programs that judge it."""

import collections
import gzip
import json
import os
import subprocess


def counters(directory, suffix=".gcda"):
    """All files below a directory that hold counters, or (".gcno") that could."""
    for where, _, names in os.walk(directory):
        for name in sorted(names):
            if name.endswith(suffix):
                yield os.path.join(where, name)


class Coverage:
    """Sums up: lines[FILE][NUMBER] and calls[FILE, LINE, FUNCTION] are counts.

    FILE is relative to SOURCE; what lies elsewhere does not count.
    """

    def __init__(self, source):
        self.source = os.path.realpath(source)
        self.lines = collections.defaultdict(dict)
        self.calls = {}

    def add(self, path, directory):
        """Counters of one object, which was compiled in a directory."""
        out = subprocess.run(["gcov", "--json-format", "--stdout", os.path.abspath(path)],
                             check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             cwd=directory).stdout
        report = json.loads(gzip.decompress(out) if out[:2] == b"\x1f\x8b" else out)
        for file in report["files"]:
            name = os.path.join(report["current_working_directory"], file["file"])
            name = os.path.relpath(os.path.normpath(name), self.source)
            if name.startswith(".."):
                continue
            for line in file["lines"]:
                counts = self.lines[name]
                counts[line["line_number"]] = max(counts.get(line["line_number"], 0),
                                                  line["count"])
            for function in file["functions"]:
                key = (name, function["start_line"], function["demangled_name"])
                self.calls[key] = self.calls.get(key, 0) + function["execution_count"]

    def table(self, wanted):
        """Print the files for which wanted(FILE), and what nobody called; the percentage."""
        total = reached = 0
        for name in sorted(filter(wanted, self.lines)):
            n = len(self.lines[name])
            ran = sum(1 for count in self.lines[name].values() if count)
            print(f"  {name:<28} {ran:5} of {n:5} lines  {100 * ran / n:5.1f} %")
            total += n
            reached += ran
        if not total:
            raise SystemExit("no counters")
        share = 100 * reached / total
        print(f"  {'all':<28} {reached:5} of {total:5} lines  {share:5.1f} %")
        never = [key for key, count in sorted(self.calls.items()) if not count and wanted(key[0])]
        print(f"  never called: {len(never)} functions")
        for name, line, function in never:
            print(f"    {name}:{line} {function}")
        return share

    def missed(self):
        """Print the numbers of the lines that did not run."""
        for name, counts in sorted(self.lines.items()):
            lines = [str(line) for line, count in sorted(counts.items()) if not count]
            print(f"{name}: {' '.join(lines)}")


def verdict(share, minimum, what):
    """The line that a test ends with, and its exit status."""
    good = share >= minimum
    print(f"{'ok' if good else 'not ok'} - {share:.1f} % of the lines of {what}, "
          f"at least {minimum:.0f} % wanted")
    return 0 if good else 1
