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
# What offloaded memory may leave behind, and how long a step may take of which half is elsewhere.
LEFT, STEP = 0.05, 1.3


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
    idle, halves = rows["idle"], rows["halves"]
    left, step = idle["left"] / idle["bytes"], halves["away"] / halves["there"]
    row(f"{idle['bytes'] / 1e9:.1f} GB of idle memory, {idle['written'] >> 20} MiB not zero, to the host: "
        "left on the device", f"{100 * LEFT:.0f} %", f"{100 * left:.2f} %", left <= LEFT)
    row("its way there, its way back", "report", f"{idle['out'] / 1e9:.1f} s, {idle['back'] / 1e9:.1f} s")
    row("two decoders take turns, one of them prefetched while the other runs: a step", f"{STEP} x",
        f"{halves['there'] / 1e6:.1f} ms with both there, {step:.2f} x", step <= STEP)
    row("device memory of both, of one", "report", f"{halves['both']:,} bytes, {halves['one']:,}")
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
