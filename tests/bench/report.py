#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tables, plots and verdicts from the results of the benchmark.

usage: report.py DIRECTORY		reads results.jsonl and machine.txt, writes table.md,
					summary.json, refusals.svg and latency.svg
       report.py --goals FILE		only judge our own results (host run), for "make check"
"""

import collections
import json
import os
import sys

OURS = "neuron_buddy"
MOVABLE = OURS + "-movable"
HALF_MOVABLE = OURS + "-half-movable"
GPU = "gpu_buddy-contiguous"
SCATTERED = "gpu_buddy-scattered"
FIRST = "genalloc-first-fit"
BEST = "genalloc-best-fit"
COLOURS = {OURS: "#c0392b", GPU: "#2471a3", SCATTERED: "#85c1e9", FIRST: "#1e8449",
           BEST: "#7dcea0", "drm_mm-best": "#8e44ad", "first-fit": "#117a65",
           "best-fit": "#a9dfbf"}
TRACES = ["ml-mix", "log-uniform", "pow2", "ml-mix-2m-aligned", "4k-16m", "4k-64k"]
PACKING = ["bands", "mixes", "huge"]
LATENCY = ["mean", "p50", "p99", "p999", "max"]


def load(path):
    """(peer, test, trace, occupancy) -> averages over the seeds."""
    groups = collections.OrderedDict()
    with open(path) as f:
        for line in f:
            d = json.loads(line)
            groups.setdefault((d["peer"], d["test"], d["trace"], d["occupancy"]), []).append(d)
    out = collections.OrderedDict()
    for key, runs in groups.items():
        average = {"runs": len(runs)}
        for name, value in runs[0].items():
            if name in ("alloc", "free"):
                good = [r[name] for r in runs if r[name]]
                if good:
                    average[name] = {c: (max if c == "max" else lambda v: sum(v) / len(v))
                                  ([g[c] for g in good]) for c in LATENCY}
            elif isinstance(value, int) and name not in ("seed", "occupancy"):
                average[name] = sum(r[name] for r in runs) / len(runs)
        if average.get("attempts"):
            average["refused_percent"] = 100 * sum(r["refused"] for r in runs) / \
                sum(r["attempts"] for r in runs)
        if average.get("loads"):
            average["forced_per_load"] = sum(r["forced"] for r in runs) / \
                sum(r["loads"] for r in runs)
        out[key] = average
    return out


def peers_of(data):
    return list(collections.OrderedDict((k[0], 1) for k in data))


def left(data, test, peer):
    """True if PEER did not come to the end of TEST."""
    return any(k[:2] == (peer, test) and "left" in r for k, r in data.items())


def regrets(data, test, peer):
    """Of each cell: points that PEER refuses more than the best of the others."""
    out = []
    whole = [q for q in peers_of(data) if not left(data, test, q)]
    for (p, t, trace, occ), r in data.items():
        if p != peer or t != test or p not in whole:
            continue
        others = [data[q, t, trace, occ]["refused_percent"] for q in whole
                  if q not in (peer, OURS) and (q, t, trace, occ) in data]
        if others:
            out.append((r["refused_percent"] - min(others), r["refused_percent"],
                        f"{trace} at {occ} %"))
    return sorted(out)


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def percentile95(values):
    return values[min(len(values) - 1, len(values) * 95 // 100)]


def packing(data):
    """How tightly each peer packs, and what it loses to the best of the others."""
    out = ("\n## Packing\n\nOne size (per mille of what could be placed, the worst of all sizes and "
           "alignments), then refused %, mean over the cells; regret: points more than the best "
           "contiguous peer of the cell, mean / 95th percentile / worst. first-fit and best-fit "
           "are genalloc's policies, to the address. Too slow: more than a minute for one churn, after "
           "which the test was left.\n\n")
    out += row(["allocator", "one size", "worst at"] +
               [x for t in PACKING for x in (t, "regret")]) + row(["---"] * 9)
    for p in peers_of(data):
        fill = [(k[2], r) for k, r in data.items() if k[:2] == (p, "fill-one")]
        cells = [p] + ([f"{fill[0][1]['worst_permille']:.0f}", fill[0][0]] if fill else ["–"] * 2)
        for test in PACKING:
            r = regrets(data, test, p)
            cells += ([f"{mean(x[1] for x in r):.2f}",
                      f"{mean(x[0] for x in r):+.2f} / {percentile95(r)[0]:+.2f} / "
                      f"{r[-1][0]:+.2f}"] if r else
                      ["too slow", "–"] if left(data, test, p) else ["–"] * 2)
        if cells.count("–") < 8:
            out += row(cells)
    worst = [x for t in PACKING for x in regrets(data, t, OURS)[-3:][::-1]]
    return out + "\nOurs loses most at: " + "; ".join(
        f"{where} ({lost:+.2f}, {refused:.2f} %)" for lost, refused, where in worst) + ".\n"


def packing_goals(data, goal):
    fill = [(k[2], r) for k, r in data.items() if k[:2] == (OURS, "fill-one")]
    if fill:
        r = fill[0][1]
        goal("G16", "one size fills a zone to 99.5 % of what could be placed, with each alignment, "
             "and after churn", f"worst {r['worst_permille'] / 10:.1f} % ({fill[0][0]}); "
             f"{r['below']:.0f} of {r['runs']:.0f} sizes and alignments below", not r["below"])
    limits = {"bands": ("G17", "narrow bands", 0.1, 0.5, 2), "mixes": ("G18", "drawn mixes", 0.1, 0.5, 2),
              "huge": ("G19", "huge sizes", 0.3, None, None)}
    for test, (name, text, most, most95, worst) in limits.items():
        r = regrets(data, test, OURS)
        if not r:
            continue
        got = mean(x[0] for x in r), percentile95(r)[0], r[-1][0]
        held = got[0] <= most and (worst is None or (got[1] <= most95 and got[2] <= worst))
        text += f": regret at most {most}" + ("" if worst is None else f" / {most95} / {worst}")
        if test != "bands":
            text += ", ahead of each peer on average"
            ours = mean(x[1] for x in r)
            held = held and all(ours < mean(x[1] for x in regrets(data, test, p))
                                for p in peers_of(data) if p != OURS and regrets(data, test, p))
        goal(name, text, f"{got[0]:+.2f} / {got[1]:+.2f} / {got[2]:+.2f} of {len(r)} cells "
             f"(worst: {r[-1][2]})", held)


def row(cells):
    return "| " + " | ".join(str(c) for c in cells) + " |\n"


def ns(value):
    return f"{value:.0f}"


def latency(r, what):
    return "/".join(ns(r[what][c]) for c in LATENCY) if r.get(what) else "–"


def table(data, machine):
    peers = peers_of(data)
    out = "# Allocators of contiguous device memory\n\n```\n" + machine + "```\n\n"
    out += ("24 GiB zone, 4 KiB granule. Latencies in ns: mean/p50/p99/p99.9/max; each call "
            "is the best of three identical runs, runs of more than a second are not "
            "repeated. \"Refused\": a request that would fit by its size was refused.\n\n")
    for trace in TRACES:
        keys = [k for k in data if k[1] == "churn" and k[2] == trace]
        if not keys:
            continue
        out += f"## {trace}\n\n"
        out += row(["allocator", "occupancy", "live", "alloc", "free", "refused %",
                    "metadata KiB/GiB"]) + row(["---"] * 7)
        for k in sorted(keys, key=lambda k: (k[3], peers.index(k[0]))):
            r = data[k]
            out += row([k[0], f"{k[3]} %", ns(r["live"]), latency(r, "alloc"),
                        latency(r, "free"), f"{r.get('refused_percent', 0):.2f}",
                        f"{r['metadata_per_gib'] / 1024:.1f}"])
        out += "\n"
    out += "## Model loads and unloads\n\n"
    out += row(["allocator", "occupancy", "alloc", "free", "forced evictions per load",
                "metadata KiB/GiB"]) + row(["---"] * 6)
    keys = [k for k in data if k[1] == "models"]
    for k in sorted(keys, key=lambda k: (k[3], peers.index(k[0]))):
        r = data[k]
        out += row([k[0], f"{k[3]} %", latency(r, "alloc"), latency(r, "free"),
                    f"{r['forced_per_load']:.4f}", f"{r['metadata_per_gib'] / 1024:.1f}"])
    keys = [k for k in data if k[1] == "recorded"]
    if keys:
        out += ("\n## Recorded loads\n\nWhat our loader asked for (traces/). \"Needs\": the "
                "smallest zone in which no more is refused than when it was recorded, in percent "
                "of what is live at most; steps of 0.5.\n\n")
        out += row(["trace", "allocator", "requests", "live", "MiB at most", "alloc", "free",
                    "refused (then)", "needs %", "metadata KiB/GiB"]) + row(["---"] * 10)
        for k in sorted(keys, key=lambda k: (k[2], peers.index(k[0]))):
            r = data[k]
            needs = r["needs_permille"] / 10
            out += row([k[2], k[0], ns(r["attempts"]), ns(r["live"]), ns(r["peak_mib"]),
                        latency(r, "alloc"), latency(r, "free"), f"{r['refused']:.0f} ({r['refused_then']:.0f})",
                        f"{needs:.1f}" if needs < 120 else "120 and more",
                        f"{r['metadata_per_gib'] / 1024:.1f}" if r["metadata_per_gib"] else "–"])
    out += ("\n## Other\n\nFirst refusal: how full the zone is at the first refusal after "
            "churn at 85 %. Fill: 8 KiB objects at 64 KiB alignment into 4 GiB. Refill and "
            "reverse: every other one of them freed, filled up with 64 KiB blocks, then all "
            "freed in reverse order.\n\n")
    out += row(["allocator", "first refusal 64 KiB..256 MiB", "same 1 MiB..2 GiB", "fill ms",
                "refill ms", "64 KiB blocks placed", "reverse ms", "create µs",
                "empty KiB/GiB"]) + row(["---"] * 9)
    notes = []
    for p in peers:
        def get(test, trace, name, occ, scale=1.0, form="{:.1f}"):
            r = data.get((p, test, trace, occ))
            return form.format(r[name] / scale) if r else "–"
        fill, board = (data.get((p, test, trace, 0)) for test, trace in
                       (("aligned-fill", "8k@64k"), ("checkerboard", "64k-refill")))
        if fill and fill["done"] < fill["wanted"]:
            notes.append(f"{p}: the fill was stopped after a minute, {fill['done']:.0f} of "
                         f"{fill['wanted']:.0f} were placed")
        if board and board["filled"] < 65536:
            notes.append(f"{p}: the checkerboard is of {board['filled']:.0f} objects instead of "
                         "65536, which took a minute")
        out += row([p, get("first-failure", "64k-256m", "used_permille", 85, 10, "{:.1f} %"),
                    get("first-failure", "1m-2g", "used_permille", 85, 10, "{:.1f} %"),
                    get("aligned-fill", "8k@64k", "us", 0, 1000),
                    get("checkerboard", "64k-refill", "refill_us", 0, 1000),
                    get("checkerboard", "64k-refill", "done", 0, 1, "{:.0f}"),
                    get("checkerboard", "64k-refill", "reverse_us", 0, 1000),
                    get("create", "none", "us", 0, 1, "{:.0f}"),
                    get("create", "none", "metadata_per_gib", 0, 1024)])
    out += "".join(f"\n{n}." for n in notes) + ("\n" if notes else "")
    capped = [p for p in peers if (p, "capped", "64k-256m", 85) in data]
    if capped:
        out += ("\nOne HBM of a trn1 (16 GiB) held at 85 %, 64 KiB..256 MiB, 20,000 requests, "
                "then filled up; eight seeds. \"make bench\" does the same through the "
                "driver.\n\n" +
                row(["allocator", "refused %", "filled up at the first refusal"]) +
                row(["---"] * 3))
        for p in capped:
            r = data[p, "capped", "64k-256m", 85]
            out += row([p, f"{r['refused_percent']:.2f}", f"{r['filled_permille'] / 10:.1f} %"])
    if any(k[1] in PACKING for k in data):
        out += packing(data)
    storms = [k for k in data if k[1] == "storm"]
    if storms:
        out += "\n" + row(["storm", "zone filled with", "alloc", "free"]) + row(["---"] * 4)
        for k in storms:
            out += row([k[0], k[2], latency(data[k], "alloc"), latency(data[k], "free")])
    return out


def goals(data, alone):
    """Goals of the design: (id, text, measured, held). Ratios need the peers."""
    def churn(peer, trace, occ):
        return data.get((peer, "churn", trace, occ))
    out = []

    def goal(name, text, value, held):
        out.append((name, text, value, bool(held)))

    us = churn(OURS, "ml-mix", 90)
    if us and not alone:
        gpu, first = churn(GPU, "ml-mix", 90), churn(FIRST, "ml-mix", 90)
        took = us["alloc"]["mean"]
        if gpu and first:
            goal("G1", "mean allocation, ML mix at 90 %: at most 1/4 of GPU buddy, 1/30 of "
                 "genalloc first fit, 200 ns",
                 f"1/{gpu['alloc']['mean'] / took:.1f}, 1/{first['alloc']['mean'] / took:.0f}, "
                 f"{took:.0f} ns", gpu["alloc"]["mean"] >= 4 * took and
                 first["alloc"]["mean"] >= 30 * took and took <= 200)
    if us and not alone:
        goal("G2", "p99 / p99.9 of the same: 500 ns / 2 µs",
             f"{us['alloc']['p99']:.0f} / {us['alloc']['p999']:.0f} ns",
             us["alloc"]["p99"] <= 500 and us["alloc"]["p999"] <= 2000)
        goal("G3", "free, mean / p99: 100 / 250 ns",
             f"{us['free']['mean']:.0f} / {us['free']['p99']:.0f} ns",
             us["free"]["mean"] <= 100 and us["free"]["p99"] <= 250)
    storms = [r for k, r in data.items() if k[0] == OURS and k[1] == "storm"]
    if storms and not alone:
        top = max(r[what]["max"] for r in storms for what in ("alloc", "free"))
        goal("G4", "longest call, zone prepared by an adversary: 250 µs",
             f"{top / 1000:.1f} µs", top <= 250000)
    refused = [churn(OURS, "ml-mix", o) for o in (80, 85, 90)]
    if all(refused):
        got = [r["refused_percent"] for r in refused]
        goal("G5", "refused, ML mix at 80 / 85 / 90 %: 1.2 / 2.0 / 3.0 %",
             " / ".join(f"{g:.2f}" for g in got) + " %",
             got[0] <= 1.2 and got[1] <= 2.0 and got[2] <= 3.0)
    moving = [churn(MOVABLE, "ml-mix", 90), churn(HALF_MOVABLE, "ml-mix", 90)]
    if all(moving):
        # Only the second half of the allocations is counted, but what is copied for all.
        goal("moving", "refused, ML mix at 90 %, all movable / half: 0.3 % / report; "
             "copied for an allocation: report",
             " / ".join(f"{m['refused_percent']:.2f} %" for m in moving) + "; " +
             " / ".join(f"{m['copied'] / m['attempts'] / 2**21:.1f} MiB" for m in moving),
             moving[0]["refused_percent"] <= 0.3)
    forced = [data.get((OURS, "models", "models", o)) for o in (90, 97)]
    if all(forced):
        got = [r["forced_per_load"] for r in forced]
        goal("G6", "forced evictions per model load at 90 / 97 %: 0.005",
             " / ".join(f"{g:.4f}" for g in got), max(got) <= 0.005)
    worst = None
    for (peer, test, trace, occ), r in data.items():
        mine = churn(OURS, trace, occ)
        if test == "churn" and mine and "refused_percent" in r and "refused_percent" in mine and \
           (peer == FIRST or (peer == GPU and trace == "pow2" and occ == 90)):
            gap = mine["refused_percent"] - r["refused_percent"]
            if worst is None or gap > worst[0]:
                worst = (gap, f"{trace} {occ} % against {peer}")
    if worst:
        goal("G7", "never 0.3 points worse than genalloc first fit, nor than GPU buddy on pow2 90 %",
             f"worst {worst[0]:+.2f} points ({worst[1]})", worst[0] <= 0.3)
    meta = [(r["metadata_per_gib"] / 1024, k) for k, r in data.items()
            if k[0] == OURS and k[1] != "storm" and "metadata_per_gib" in r]
    create = data.get((OURS, "create", "none", 0))
    if meta and create:
        top = max(meta)
        goal("G10", "metadata: 96 KiB per GiB on every trace; a zone is made in 10 ms",
             f"{top[0]:.1f} KiB ({top[1][2]}), {create['us'] / 1000:.2f} ms",
             top[0] <= 96 and create["us"] <= 10000)
    r = data.get((OURS, "aligned-fill", "8k@64k", 0))
    if r and not alone:
        goal("G11", "8 KiB objects at 64 KiB alignment fill 4 GiB in 20 ms",
             f"{r['us'] / 1000:.1f} ms", r["us"] <= 20000 and r["done"] == r["wanted"])
    r = data.get((OURS, "checkerboard", "64k-refill", 0))
    if r and not alone:
        goal("G12", "checkerboard: refill and reverse free, 10 ms each",
             f"{r['refill_us'] / 1000:.1f} / {r['reverse_us'] / 1000:.1f} ms",
             max(r["refill_us"], r["reverse_us"]) <= 10000 and r["done"] == r["wanted"])
    packing_goals(data, goal)
    r = data.get((OURS, "million", "4k", 0))
    if r and not alone:
        goal("G20", "a million blocks of 4 KiB live, one comes and one goes: 90 and 80 ns",
             f"alloc {r['alloc']['mean']:.0f}, free {r['free']['mean']:.0f} ns",
             r["alloc"]["mean"] <= 90 and r["free"]["mean"] <= 80)
    twins = [r["same"] for k, r in data.items() if k[1] == "twin"]
    if twins:
        goal("twin", "first-fit and best-fit give out what genalloc does", f"{len(twins)} pairs",
             all(twins))
    recorded = [(k, r) for k, r in data.items() if k[:2] == (OURS, "recorded")]
    if recorded:
        refused = sum(r["refused"] for _, r in recorded)
        broken = sum(r["broken"] for _, r in recorded)
        then = sum(r["refused_then"] for _, r in recorded)
        goal("recorded", "recorded loads: no more refused than when they were recorded, books "
             "right at every look",
             f"{refused:.0f} of {sum(r['attempts'] for _, r in recorded):.0f} refused, then "
             f"{then:.0f}; {broken:.0f} times wrong; {len(recorded)} traces",
             all(r["refused"] <= r["refused_then"] for _, r in recorded) and not broken)
    for trace in ("64k-256m", "1m-2g"):
        a, b = (data.get((p, "first-failure", trace, 85)) for p in (OURS, BEST))
        if a and b:
            goal("later", f"first refusal after churn, {trace}: later than genalloc best fit",
                 f"{a['used_permille'] / 10:.1f} % against {b['used_permille'] / 10:.1f} %",
                 a["used_permille"] > b["used_permille"])
    for trace, occ in (("4k-16m", 50), ("4k-64k", 80)):
        a, b = churn(OURS, trace, occ), churn(SCATTERED, trace, occ)
        if a and b:
            goal("faster", f"contiguous, faster than GPU buddy's scattered blocks: {trace} {occ} %",
                 f"alloc {a['alloc']['mean']:.0f} against {b['alloc']['mean']:.0f} ns, free "
                 f"{a['free']['mean']:.0f} against {b['free']['mean']:.0f} ns",
                 a["alloc"]["mean"] <= b["alloc"]["mean"] and
                 a["free"]["mean"] <= b["free"]["mean"])
    return out


def main():
    if sys.argv[1] == "--goals":
        bad = 0
        judged = goals(load(sys.argv[2]), True)
        for name, text, value, held in judged:
            print(f"{'ok' if held else 'not ok'} - {name} {text}: {value}")
            bad += not held
        print(f"{len(judged) - bad} passed, {bad} failed")
        return bad > 0 or not judged
    where = sys.argv[1]
    data = load(os.path.join(where, "results.jsonl"))
    with open(os.path.join(where, "machine.txt")) as f:
        machine = f.read()
    text = table(data, machine) + "\n## Goals\n\n" + row(["goal", "", "measured", "held"]) + \
        row(["---"] * 4)
    judged = goals(data, False)
    for name, what, value, held in judged:
        text += row([name, what, value, "yes" if held else "**no**"])
    with open(os.path.join(where, "table.md"), "w") as f:
        f.write(text)
    with open(os.path.join(where, "summary.json"), "w") as f:
        json.dump({"machine": machine,
                   "goals": [dict(zip(("goal", "text", "measured", "held"), g)) for g in judged],
                   "results": [dict(zip(("peer", "test", "trace", "occupancy"), k), **r)
                               for k, r in data.items()]}, f, indent=1)
    # Not needed to judge.
    from plots import plots
    plots(where, data, machine, TRACES, COLOURS, OURS)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
