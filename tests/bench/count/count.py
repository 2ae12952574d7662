#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Instructions and jumps of a call, by function: what plugin.c counted, with the kernel's symbols.

usage: count.py COUNTS SYMBOLS [--top N] [--jumps]
"""

import argparse
import bisect
import collections

CALLS = collections.defaultdict(lambda: 1000, {13: 10 * 1024, 14: 10 * 1024, 17: 100000})
WORKS = {1: "getppid", 2: "empty", 3: "alloc", 4: "free", 5: "alloc, live", 6: "free, live",
         7: "fill", 8: "empty it", 9: "free any", 10: "alloc again", 11: "alloc, holes",
         12: "free, holes", 13: "of a bulk", 14: "its free", 15: "copy to", 16: "copy from",
         17: "at exit"}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("counts")
    parser.add_argument("symbols")
    parser.add_argument("--top", type=int, default=60)
    parser.add_argument("--jumps", action="store_true", help="list jumps by function")
    args = parser.parse_args()

    symbols = []
    with open(args.symbols, encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if words[1] in "tTwW":
                symbols.append((int(words[0], 16), words[2],
                                words[3].strip("[]") if len(words) > 3 else "kernel"))
    symbols.sort()
    starts = [s[0] for s in symbols]

    # By module and by function, instructions and jumps of each work.
    modules = [collections.defaultdict(collections.Counter) for _ in range(2)]
    table = [collections.defaultdict(collections.Counter) for _ in range(2)]
    with open(args.counts, encoding="utf-8") as f:
        for line in f:
            work, addr, *counts = line.split()
            at = bisect.bisect_right(starts, int(addr, 16)) - 1
            name, module = symbols[at][1:] if int(addr, 16) >> 47 else ("program", "program")
            for what, count in enumerate(counts):
                table[what][f"{module} {name}"][int(work)] += int(count)
                modules[what][module][int(work)] += int(count)
    works = sorted({w for counter in modules[0].values() for w in counter})
    for what, title in enumerate(("instructions", "jumps")):
        modules[what]["all"] = sum(modules[what].values(), collections.Counter())
        print(f"{title:44}" + "".join(f"{WORKS[w]:>13}" for w in works))
        for module, counter in modules[what].items():
            print(f"{module:44}" + "".join(f"{counter[w] / CALLS[w]:13.0f}" for w in works))
        print()
    rows = sorted(table[args.jumps].items(), key=lambda row: -max(row[1].values()))[:args.top]
    rows.sort(key=lambda row: (row[0].split()[0], -max(row[1].values())))
    for name, counter in rows:
        print(f"{name:44}"[:44] + "".join(f"{counter[w] / CALLS[w]:13.1f}" for w in works))


if __name__ == "__main__":
    main()
