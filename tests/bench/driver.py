#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The table of "make bench".

usage: driver.py DIRECTORY NAME [ALLOCATORS]	reads NAME.jsonl, writes NAME.md and
	NAME.json. NAME: driver-KERNEL, or card-KERNEL for a card beside the software
	device. ALLOCATORS: results.jsonl of
	"make bench-alloc", for the peer of the churn.
"""

import json
import os
import sys


# What the vendor's driver takes, and what ours is to take, in getppid() of the same boot unless a
# unit is there.  The vendor's figures are constants: measured on Debian 6.1 under TCG with
# programs that belong to neither driver, both drivers in the same boots, medians of three.
GOALS = (
    ("alloc 4 KiB, empty heap", "empty heap", "alloc 4 KiB", 5.7, 5.4),
    ("its free", "empty heap", "free", 4.4, 4.2),
    ("alloc 4 KiB, 10^6 live", "1000000 live", "alloc 4 KiB", 64, 5.2),
    ("its free", "1000000 live", "free", 4.7, 4.4),
    ("random victim of 10^6 live: its free", "random victim", "free", 26, 9),
    ("an allocation in its place", "random victim", "alloc 4 KiB", 30, 8),
    ("free of 10^6 in order, mean", "free in order", "mean", 7.6, 5),
    ("alloc 8 KiB, checkerboard of 100,000", "checkerboard of 100000", "alloc 8 KiB", None, 5),
    ("alloc 8 KiB, checkerboard of 10^6", "checkerboard of 1000000", "alloc 8 KiB", 37500, 5),
)
EXIT_MS = (187, 20)
COPY_4K_US = ("39 (14 zero-copy)", 6)
REST_KIB = {"trn1": ("", None), "trn2": ("142 MB", 64 + 225)}	# sysfs nodes and names: 225
CHURN_PERCENT = (3.9, 1.7)


def beside(rows):
    """A card and the software device, and how many times the one is of the other."""
    text = "| work | software device | card | card / software device |\n| --- | --- | --- | --- |\n"
    for (work, what), card in rows.items():
        device = rows.get(("software device", what))
        if work != "card" or not device:
            continue
        key, form = ("value", "{:.2f}") if "value" in card else ("empty", "{:,.2f} x")
        if what.endswith("MB/s"):
            key, form = "value", "{:,.0f}"
        elif "value" in card:
            what += ", of memcpy"
        text += (f"| {what} | {form.format(device[key])} | {form.format(card[key])} | "
                 f"{card[key] / device[key]:.2f} |\n")
    return text


def goals(table):
    text = "| work | vendor's driver | to be | ours | held |\n| --- | --- | --- | --- | --- |\n"
    for t in table:
        held = {True: "yes", False: "**no**", None: ""}[t["held"]]
        text += f"| {t['work']} | {t['vendor']} | {t['target']} | {t['ours']} | {held} |\n"
    return text


def main():
    where, name = sys.argv[1:3]
    head, rows, churn = {}, {}, []
    with open(os.path.join(where, f"{name}.jsonl")) as f:
        for line in f:
            d = json.loads(line)
            if "date" in d:
                head = d
            elif d["work"] == "churn":
                churn.append(d)
            else:
                rows[d["work"], d["what"]] = d
    peer = []
    allocators = sys.argv[3] if len(sys.argv) > 3 else os.path.join(where, "results.jsonl")
    if os.path.exists(allocators):
        with open(allocators) as f:
            peer = [d for d in map(json.loads, f)
                    if d["test"] == "capped" and d["peer"] == "genalloc-best-fit"]
    table = []

    def unit(work, what):
        r = rows.get((work, what))
        return (r["getppid"], f"{r['getppid']:.1f} ({r['empty']:.2f} x)") if r else None

    def ratio(work, what):
        r = rows.get((work, what))
        return (r["empty"], f"{r['empty']:.2f} x ({r['getppid']:.1f} x getppid)") if r else None

    def single(work, what, form, scale=1.0, key="value"):
        r = rows.get((work, what))
        return (r[key] * scale, form.format(r[key] * scale)) if r else None

    def row(text, vendor, target, limit, got, lower=True):
        if got is None:
            return
        held = None if limit is None else (got[0] <= limit if lower else got[0] >= limit)
        table.append({"work": text, "vendor": vendor, "target": target, "ours": got[1],
                      "held": held})

    for text, work, what, vendor, target in GOALS:
        row(text, f"{vendor:,}" if vendor else "", target, target, unit(work, what))
    if churn:
        share = [100 * c["refused"] / 20000 for c in churn]
        first = [c["first_permille"] / 10 for c in churn if c["refused"]]
        mean = sum(share) / len(share)
        row("churn at 85 %: refused, mean of 16 seeds", f"{CHURN_PERCENT[0]} %",
            f"{CHURN_PERCENT[1]} %", CHURN_PERCENT[1],
            (mean, f"{mean:.2f} % ({min(share):.2f} to {max(share):.2f})"))
        if first:
            row("the first refusal, % used", "82.4 to 83.8 %", "", None,
                (0, f"{min(first):.1f} to {max(first):.1f} %"))
        filled = [c["filled_permille"] / 10 for c in churn]
        best = [p["filled_permille"] / 10 for p in peer]
        mean = sum(filled) / len(filled)
        row("filled up after it, first refusal", "",
            f"genalloc best fit: {sum(best) / len(best):.1f} %" if best else "genalloc best fit",
            sum(best) / len(best) if best else None,
            (mean, f"{mean:.1f} % ({min(filled):.1f} to {max(filled):.1f})"), False)
    row("close of a descriptor, ms", "23.8", "0.2", 0.2,
        single("close", "close, and detach", "{:.3f}", 1e-6, "ns"))
    row("close of one of two, ms", "", "0.2", 0.2,
        single("close", "close of one of two", "{:.3f}", 1e-6, "ns"))
    row("exit, 10^5 live allocations, ms", *EXIT_MS, EXIT_MS[1],
        single("exit", "100000 live allocations", "{:.1f}", 1e-6, "ns"))
    for size in (1, 4, 16, 64):
        for way in ("to", "from"):
            work = f"{size} MiB {way} the device"
            r = rows.get(("copy", f"{work}, processor time"))
            row(f"copy of {work}, against memcpy (its processor time)", "0.3", "0.9", 0.9,
                single("copy", work, f"{{:.2f}} ({r['value']:.2f} of it)" if r else "{:.2f}"), False)
    for way in ("to", "from"):
        row(f"copy of 4 KiB {way} the device, us", *COPY_4K_US, COPY_4K_US[1],
            single("copy", f"4 KiB {way} the device", "{:.1f}", 1e-3, "ns"))
    for size in (1, 16, 64):
        row(f"move of {size} MiB, against a copy to memory that is new", "", "0.8", 0.8,
            single("move", f"{size} MiB, against a copy to new memory", "{:.2f}"), False)
        row(f"move of {size} MiB, against a copy to memory that was written", "", "report", None,
            single("move", f"{size} MiB, against a copy to old memory", "{:.2f}"), False)
    for arch in ("trn1", "trn2"):
        row(f"kernel memory per device at rest, {arch}, KiB", REST_KIB[arch][0],
            REST_KIB[arch][1] or "report", REST_KIB[arch][1],
            single("memory", f"KiB per device at rest, {arch}", "{:.0f}"))
        row(f"host memory reserved, {arch}, bytes", "128 MiB", "0", 0,
            single("memory", f"host memory reserved by 64 devices, {arch}", "{:.0f}"))
    row("kernel memory per live allocation, bytes", "202", "160", 160,
        single("memory", "bytes per live allocation", "{:.0f}"))

    for size in (64, 4096, 65536):
        r = rows.get(("ring", f"descriptor of {size} bytes"))
        if r:
            row(f"ring: descriptor of {size} bytes", "", "report", None,
                (0, f"{r['empty']:.3f} x; {1e9 / r['ns']:,.0f} a second"))
    wake = rows.get(("wake-up", "doorbell, notification, process"))
    pong = rows.get(("wake-up", "ping-pong of two threads over eventfds"))
    if wake and pong:
        row("doorbell, notification, process awake", "", "report", None,
            (0, f"{wake['empty']:.1f} x; {wake['ns'] / pong['ns']:.2f} x a ping-pong of two threads"))
    row("open and attach", "", "report", None, ratio("close", "open and attach"))
    tree, files, one = (rows.get(k) for k in (("sysfs", "tree of 16 devices"),
                                              ("sysfs", "files of 16 devices"),
                                              ("sysfs", "one file of the kernel itself")))
    if tree and files and one:
        each = tree["ns"] / files["value"]
        row("sysfs: complete tree of 16 devices", "", "report", None,
            (0, f"{files['value']:.0f} files, {each / one['ns']:.2f} x a file of the kernel itself each"))
    for n in (1, 2, 4, 8, 16, 32, 64):
        a, f, e, o = (rows.get((f"{n} processes", w)) for w in
                      ("alloc 4 KiB", "free", "empty ioctl", "open and attach"))
        if a and f and e and o:
            row(f"{n} processes on 4 devices: alloc, free, open", "", "report", None,
                (0, f"{a['ns'] / e['ns']:.2f} x, {f['ns'] / e['ns']:.2f} x, {o['ns'] / e['ns']:.1f} x"))
    text = (f"# The driver, measured\n\n{head['date']}, kernel {head['kernel']}, {head['cpu']}\n\n"
            "Allocations and frees in getppid() of the same run; x: times an empty ioctl "
            "(COMPATIBLE_VERSION). Medians of single calls. The vendor's figures are constants, "
            "from Debian 6.1 under TCG, both drivers in the same boots.\n\n")
    base = [rows["baseline", w]["ns"] for w in ("getppid", "empty ioctl")]
    text += f"getppid {base[0]:.0f} ns, empty ioctl {base[1]:.0f} ns.\n\n"
    if ("card", "empty ioctl") in rows:
        text += beside(rows)
    else:
        text += goals(table)
    with open(os.path.join(where, f"{name}.md"), "w") as f:
        f.write(text)
    with open(os.path.join(where, f"{name}.json"), "w") as f:
        json.dump({"machine": head, "table": table, "churn": churn,
                   "rows": list(rows.values())}, f, indent=1)
    print(text)


if __name__ == "__main__":
    main()
