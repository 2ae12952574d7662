#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Count the results in TAP or KTAP.

usage: tap.py [--name NAME] [--quiet] FILE...

Counts the leaves of nested KTAP (a suite is not a point besides its cases) and
holds every level to its plan: a test that was announced and did not report has
failed. Lines of a kernel log may carry time stamps. Prints "ok - ..." or
"not ok - ..." for each point and at the end "# NAME: N passed, N failed".
"""

import argparse
import re
import sys

LINE = re.compile(r"^( *)(ok|not ok)\b ?(\d*) ?(?:- )?(.*)$")
PLAN = re.compile(r"^( *)1\.\.(\d+)")
STAMP = re.compile(r"^(<\d+>)?\[ *\d+\.\d+\] ")
SUBTEST = re.compile(r"^( *)# Subtest: (.*)$")


def parse(lines):
    """Yield (good, name); problems of form are failed points."""
    levels = {}         # indent -> [planned or None, seen, names of open subtests]

    def close(indent):
        """End of all levels deeper than indent."""
        points = 0
        for level in sorted(k for k in levels if k > indent):
            planned, seen = levels.pop(level)
            points += seen
            if planned is not None and planned != seen:
                yield False, f"{planned} planned, {seen} reported"
        if points:
            yield None, None

    for raw in lines:
        line = STAMP.sub("", raw.rstrip("\r\n"))
        match = PLAN.match(line)
        if match:
            indent = len(match.group(1))
            yield from (p for p in close(indent - 1) if p[0] is not None)
            levels[indent] = [int(match.group(2)), 0]
            continue
        match = LINE.match(line)
        if not match:
            continue
        indent, good, name = len(match.group(1)), match.group(2) == "ok", match.group(4)
        nested = False
        for point in close(indent):
            if point[0] is None:
                nested = True
            else:
                yield point
        levels.setdefault(indent, [None, 0])[1] += 1
        # A suite whose cases all passed but which failed itself counts, too.
        if not nested or not good:
            yield good, name
    yield from (p for p in close(-1) if p[0] is not None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="tests")
    parser.add_argument("--quiet", action="store_true", help="print failures only")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()

    passed = failed = 0
    for path in args.files:
        with open(path, errors="replace") as stream:
            for good, name in parse(stream):
                if good:
                    passed += 1
                else:
                    failed += 1
                if not (good and args.quiet):
                    print(("ok - " if good else "not ok - ") + f"{args.name}: {name}")
    if passed + failed == 0:
        failed = 1
        print(f"not ok - {args.name}: no results")
    print(f"# {args.name}: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
