#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The table of "make bench-pools".

usage: pools.py DIRECTORY	reads pools.jsonl, writes pools.md and pools.json
"""

import datetime
import json
import os
import subprocess
import sys

HIT_NS, BLOCK_NS, RATIO, TRIM = 200, 100, 1.25, 0.99


def cpu():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "?")


def main():
    where = sys.argv[1]
    with open(os.path.join(where, "pools.jsonl"), encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True,
                            check=False).stdout.strip()
    head = {"date": str(datetime.date.today()), "commit": commit, "cpu": cpu(),
            "load": round(os.getloadavg()[0], 1)}
    text = f"{head['date']}, {head['commit']}, {head['cpu']}, load {head['load']}.\n\n"
    goals = []

    text += ("| live blocks | allocation, ns | free, ns | of malloc | of free() | calls of the driver |\n"
             + "| ---: " * 6 + "|\n")
    for r in (r for r in rows if r["work"] == "hits"):
        text += (f"| {r['live']:,} | {r['alloc']:.0f} | {r['free']:.0f} | {r['alloc'] / r['malloc']:.2f} "
                 f"| {r['free'] / r['malloc_free']:.2f} | {r['calls']} |\n")
        goals.append((f"a hit, {r['live']:,} live: ns, calls of the driver", f"{HIT_NS}, 0",
                      f"{r['alloc']:.0f}, {r['calls']}", r["alloc"] <= HIT_NS and not r["calls"]))
        goals.append((f"its free, {r['live']:,} live: ns", f"{HIT_NS}", f"{r['free']:.0f}", r["free"] <= HIT_NS))

    text += ("\n| recorded | increase, MiB | operations | ns | peak use, MiB | reserved, MiB | calls of the driver | refused | refused when recorded, "
             "of these placed | unused with half freed, MiB | of it returned | with all freed |\n"
             + "| --- " + "| ---: " * 11 + "|\n")
    for r in (r for r in rows if r["work"] == "recorded"):
        half, everything = (r[f"{k}_returned"] / max(1, r[f"{k}_unused"]) for k in ("half", "all"))
        text += (f"| {r['trace']} | {r['increase'] >> 20:,} | {r['operations']:,} | {r['ns']:.0f} | {r['peak'] >> 20:,} "
                 f"| {r['reserved'] >> 20:,} | {r['calls']:,} | {r['refused']:,} | {r['refused_then']:,}, {r['placed_then']:,} "
                 f"| {r['half_unused'] >> 20:,} | {100 * half:.1f} % | {100 * everything:.1f} % |\n")
        what = f"{r['trace']}, increase {r['increase'] >> 20:,} MiB"
        goals.append((f"reserved to peak use, {what}", str(RATIO), f"{r['ratio']:.3f}", r["ratio"] <= RATIO))
        goals.append((f"returned by trim, all freed, {what}", f"{100 * TRIM:.0f} %",
                      f"{100 * everything:.1f} %", everything >= TRIM))
        goals.append((f"the same, a random half freed, {what}", f"{100 * TRIM:.0f} %", f"{100 * half:.1f} %",
                      half >= TRIM))
    for r in (r for r in rows if r["work"] == "long"):
        goals.append((f"a hit, {r['live']} live of 2 to 15 MiB: ns, calls of the driver", f"{HIT_NS}, 0",
                      f"{r['alloc']:.0f}, {r['calls']}", r["alloc"] <= HIT_NS and not r["calls"]))
        goals.append(("its free: ns", f"{HIT_NS}", f"{r['free']:.0f}", r["free"] <= HIT_NS))
    for r in (r for r in rows if r["work"] == "tokens"):
        goals.append(("a block of tokens: ns", str(BLOCK_NS), f"{r['append']:.0f}", r["append"] <= BLOCK_NS))
        goals.append(("its free: ns", "report", f"{r['free']:.0f}", None))

    text += "\n| goal | must | measured | held |\n| --- | --- | --- | --- |\n"
    for what, must, measured, held in goals:
        text += f"| {what} | {must} | {measured} | {'' if held is None else 'yes' if held else '**no**'} |\n"
    with open(os.path.join(where, "pools.md"), "w", encoding="utf-8") as f:
        f.write(text)
    with open(os.path.join(where, "pools.json"), "w", encoding="utf-8") as f:
        json.dump({"head": head, "rows": rows}, f, indent=1)
    print(text, end="")
    print(f"# {where}/pools.md, pools.json")


if __name__ == "__main__":
    main()
