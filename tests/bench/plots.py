# SPDX-License-Identifier: GPL-2.0-only
"""Plots of the benchmark of allocators: a panel for each workload, a line for each peer."""

import os

import matplotlib

matplotlib.use("Agg")
# Text stays text, and the same results make the same file.
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "neuron", "font.size": 9,
                            "axes.grid": True, "grid.color": "#e5e5e5"})

from matplotlib import pyplot, ticker  # noqa: E402


def draw(path, title, panels, xlabel, ylabel, scales, style):
    """PANELS: {workload: {peer: [(x, y), ...]}}; SCALES of x and y; STYLE of a peer's line."""
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(3.4 * columns, 2.7 * rows + 1.1),
                                   sharex=True, sharey=True, squeeze=False,
                                   layout="constrained")
    lines = {}
    for at, (workload, peers) in zip(axes.flat, panels.items()):
        at.set_title(workload, fontsize=10)
        at.set_xscale(scales[0])
        # A refusal of none has a place on the axis, too.
        at.set_yscale(scales[1], **({"linthresh": 0.1} if scales[1] == "symlog" else {}))
        at.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        at.minorticks_off()
        if scales[0] == "linear":
            at.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
        for peer, points in peers.items():
            lines[peer], = at.plot(*zip(*sorted(points)), label=peer, **style(peer))
    for at in axes.flat[len(panels):]:
        at.set_visible(False)
    for at in axes[-1]:
        at.set_xlabel(xlabel)
    for at in axes[:, 0]:
        at.set_ylabel(ylabel)
    figure.suptitle(title, fontsize=10)
    # Room for the legend: constrained layout does not know that of a figure before 3.7.
    below = 0.25 * -(-len(lines) // 3) / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, below, 1, 1 - below))
    figure.legend(lines.values(), lines.keys(), loc="lower center", ncols=3, frameon=False)
    # Without what the library adds of itself: its version and the addresses of its schemes.
    figure.savefig(path, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    pyplot.close(figure)


def by_workload(data, test, traces, point):
    """The panels that have something to show."""
    panels = {}
    for (peer, what, trace, occupancy), r in data.items():
        if what == test and trace in traces and point(occupancy, r):
            panels.setdefault(trace, {}).setdefault(peer, []).append(point(occupancy, r))
    return {trace: panels[trace] for trace in traces if trace in panels}


def plots(where, data, machine, traces, colours, ours):
    """refusals.svg and latency.svg."""
    def style(peer):
        first = peer == ours
        return {"color": colours.get(peer, "#555555"), "marker": "o", "markersize": 3,
                "linewidth": 2.2 if first else 1.2, "zorder": 3 if first else 2}

    said = dict(line.split(":", 1) for line in machine.splitlines() if ":" in line)
    under = "\n" + ", ".join(said[k].strip() for k in ("date", "kernel", "cpu") if k in said)
    refused = by_workload(data, "churn", traces,
                          lambda occ, r: (occ, r["refused_percent"]) if r.get("attempts") else None)
    times = by_workload(data, "churn", traces,
                        lambda occ, r: (r["live"], r["alloc"]["mean"]) if r.get("alloc") else None)
    if refused:
        draw(os.path.join(where, "refusals.svg"), "Requests that are refused" + under, refused,
             "occupancy, %", "refused, %", ("linear", "symlog"), style)
    if times:
        draw(os.path.join(where, "latency.svg"), "Mean time of an allocation" + under, times,
             "live allocations", "ns", ("log", "log"), style)
