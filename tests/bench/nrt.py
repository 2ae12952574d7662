#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The table of "make bench-nrt".

usage: nrt.py DIRECTORY		reads nrt.jsonl, writes nrt.md and nrt.json
"""

import json
import os
import sys

STEPS = ("archive", "json", "plan", "memory", "copy", "rings")
# Constants from here on must be copied as fast as this share of memcpy.
LARGE, SHARE = 64 << 20, 0.7


def main():
    where = sys.argv[1]
    head, loads, rows, depths = {}, [], {}, []
    with open(os.path.join(where, "nrt.jsonl"), encoding="utf-8") as f:
        for d in map(json.loads, f):
            if "date" in d:
                head = d
            elif d["work"] == "load":
                loads.append(d)
            elif d["work"] == "depth":
                depths.append(d)
            else:
                rows[d["work"]] = d
    text = f"# The library, measured\n\n{head['date']}, kernel {head['kernel']}, {head['cpu']}\n\n"
    if head["quick"]:
        text += "A few iterations, to see that it works: the figures say nothing.\n\n"

    text += ("| constants | load, ms | " + ", % | ".join(STEPS) + ", % | copy, MB/s "
             "| of memcpy | of memcpy to fresh memory |\n" + "| --- " * 11 + "|\n")
    worst = None
    for d in loads:
        share = " | ".join(f"{100 * d[s] / d['total']:.1f}" for s in STEPS)
        # The rest of what is copied are kilobytes.
        warm, fresh = d["memcpy"] / d["copy_least"], d["memcpy_fresh"] / d["copy_least"]
        d["of_memcpy"], d["of_memcpy_fresh"] = warm, fresh
        # A model gets memory that nobody uses; so does this memcpy.
        if d["bytes"] >= LARGE and (worst is None or fresh < worst):
            worst = fresh
        text += (f"| {d['what']} | {d['total'] / 1e6:.2f} | {share} "
                 f"| {d['bytes'] * 1e3 / d['copy_least']:.0f} | {warm:.2f} | {fresh:.2f} |\n")

    desc, run, cycles = rows["descriptors"], rows["execute"], rows["cycles"]
    table = []

    def row(what, target, measured, held=None):
        table.append({"work": what, "target": target, "measured": measured, "held": held})

    if worst is not None:
        row("copies of constants of 64 MiB and more, of memcpy to fresh memory", str(SHARE), f"{worst:.2f}",
            worst >= SHARE)
    row("descriptors built", "report",
        f"{desc['number'] * 1e9 / desc['ns']:,.0f} a second ({desc['number']:,} in a model)")
    row("notification round trip (doorbell, eventfd, process)", "report",
        f"{run['round_trip'] / 1e3:.0f} µs")
    row("execution of an empty NEFF", "report",
        f"{run['empty'] / 1e3:.0f} µs, {run['empty'] / run['round_trip']:.2f} x a round trip")
    row(f"{cycles['number']:,} loads and unloads: device memory", "no growth",
        f"{cycles['device_before']:,} bytes, then {cycles['device_after']:,}",
        cycles["device_after"] == cycles["device_before"])
    row(f"{cycles['number']:,} loads and unloads: memory of the process", "no growth",
        f"{cycles['host_before']:,} bytes, then {cycles['host_after']:,}",
        cycles["host_after"] == cycles["host_before"])
    text += "\n| work | target | measured | held |\n| --- | --- | --- | --- |\n"
    for t in table:
        held = {True: "yes", False: "**no**", None: ""}[t["held"]]
        text += f"| {t['work']} | {t['target']} | {t['measured']} | {held} |\n"

    text += ("\n| requests under way | empty NEFF, a second | two nodes of 256 KiB, a second |\n"
             "| --- | --- | --- |\n")
    for d in depths:
        text += f"| {d['depth']} | {d['empty']:.0f} | {d['pair']:.0f} |\n"
    with open(os.path.join(where, "nrt.md"), "w", encoding="utf-8") as f:
        f.write(text)
    with open(os.path.join(where, "nrt.json"), "w", encoding="utf-8") as f:
        json.dump({"machine": head, "table": table, "loads": loads, "depths": depths,
                   "rows": rows}, f, indent=1)
    print(text)


if __name__ == "__main__":
    main()
