#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Who calls and includes whom, measured from what the compiler makes.

usage: layers.py [--dot DIRECTORY] GROUP=OBJECTS...

OBJECTS is a directory of objects that were compiled with -fcallgraph-info, with the
.ci files beside them. A file calls the files that define the functions that it calls,
and includes a header of the tree. Prints
the circles of files of each GROUP, largest first, and the arrows between folders; with
--dot also a graph of the folders for each group. Fails when there is a circle, or an
arrow from a folder of ORDER to a later one.
"""

import argparse
import collections
import glob
import os
import re
import sys

import networkx

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
NODE = re.compile(r'^node: { title: "([^"]*)" label: "([^"]*)"(.*)}$')
EDGE = re.compile(r'^edge: { sourcename: "([^"]*)" targetname: "([^"]*)"(?: label: "([^"]*)")?')
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)

# Folders that have an order, lowest first: each knows those before it.
ORDER = ["uapi/share", "uapi",
         "kmod/compat", "kmod/base", "kmod/mem/buddy", "kmod/mem", "kmod/dma", "kmod/sysfs",
         "kmod/core",
         "libneuron/include/neuron", "libneuron/include/nrt", "libneuron/common",
         "libneuron/src/device", "libneuron/src/memory", "libneuron/src/neff",
         "libneuron/src/isa", "libneuron/src/load", "libneuron/src/run",
         "libneuron/src/profile",
         "libneuron/nrt/base", "libneuron/nrt/trace", "libneuron/nrt/object",
         "libneuron/nrt/profile", "libneuron/nrt/cc", "libneuron/nrt/api",
         "libneuron/rtd"]


def read(directory):
    """Functions defined and called, by source: {source: (set, set)}.

    An object can be made of several sources, which one includes: a function is of the one
    where its label says that it is.
    """
    found = {}
    for path in glob.glob(os.path.join(directory, "**", "*.ci"), recursive=True):
        source = source_of(path, directory)
        if not source:
            continue
        parts = {os.path.basename(s): s for s in included(source) if s.endswith(".c")}
        found.setdefault(source, (set(), set()))
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                node, edge = NODE.match(line), EDGE.match(line)
                place = re.search(r"([^/]*):\d+:\d+$", node[2] if node else
                                  edge[3] or "" if edge else "")
                place = parts.get(place[1], source) if place else source
                defined, called = found.setdefault(place, (set(), set()))
                # What is only declared is an ellipse.
                if node and "ellipse" not in node[3]:
                    defined.add(node[1])
                elif edge:
                    called.add(edge[2])
    return found


def source_of(path, directory):
    """The source in the tree of an object's .ci file."""
    name = os.path.splitext(os.path.relpath(path, directory))[0] + ".c"
    while name and not os.path.exists(os.path.join(ROOT, name)):
        for top in ("kmod", "libneuron"):
            if os.path.exists(os.path.join(ROOT, top, name)):
                return os.path.join(top, name)
        name = name.partition("/")[2]
    return name


def included(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        names = INCLUDE.findall(file.read())
    for name in names:
        for base in (os.path.dirname(path), "libneuron/include"):
            there = os.path.normpath(os.path.join(base, name))
            if os.path.exists(os.path.join(ROOT, there)):
                yield there
                break


def graph_of(directory):
    units = read(directory)
    home = {name: source for source, (defined, _) in units.items() for name in defined
            if ":" not in name}
    graph = networkx.DiGraph()
    for source, (_, called) in units.items():
        graph.add_node(source)
        for name in called:
            if home.get(name, source) != source:
                graph.add_edge(source, home[name], why=name)
    todo, seen = list(units), set()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for header in included(path):
            todo.append(header)
            graph.add_edge(path, header, why="#include")
    return graph


def folders(graph):
    arrows = collections.Counter()
    for a, b in graph.edges:
        a, b = os.path.dirname(a), os.path.dirname(b)
        if a != b:
            arrows[a, b] += 1
    return arrows


def upwards(graph):
    """Arrows against the order, as (file, file)."""
    for a, b in sorted(graph.edges):
        folder_a, folder_b = os.path.dirname(a), os.path.dirname(b)
        if folder_a in ORDER and folder_b in ORDER and \
                ORDER.index(folder_a) < ORDER.index(folder_b):
            yield a, b


def draw(arrows, path):
    with open(path, "w", encoding="utf-8") as out:
        out.write("digraph {\n\tnode [shape=box]\n")
        for (a, b), n in sorted(arrows.items()):
            out.write(f'\t"{a}" -> "{b}" [label={n}]\n')
        out.write("}\n")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--dot")
    parser.add_argument("groups", nargs="+")
    args = parser.parse_args()
    wrong = 0
    for group in args.groups:
        name, _, directory = group.partition("=")
        graph = graph_of(directory)
        if not graph:
            print(f"not ok - {name}: no call graphs in {directory}")
            return 1
        parts = sorted((c for c in networkx.strongly_connected_components(graph) if len(c) > 1),
                       key=len, reverse=True)
        against = list(upwards(graph))
        wrong += len(parts) + len(against)
        print(f"{'not ok' if parts or against else 'ok'} - {name}: {len(graph)} files, "
              f"{len(parts)} circles, {len(against)} arrows upwards")
        for part in parts:
            print(f"# {len(part)} files: " + " ".join(sorted(part)))
        for a, b in against:
            print(f"# upwards: {a} -> {b} ({graph.edges[a, b]['why']})")
        for (a, b), n in sorted(folders(graph).items()):
            print(f"#   {a} -> {b}: {n}")
        if args.dot:
            draw(folders(graph), os.path.join(args.dot, f"{name}.dot"))
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
