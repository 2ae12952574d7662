#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Every file that the modules make in sysfs has an entry in sysfs-docs/, and
every entry has a file.

The files come from the sources: the table of kmod/sysfs/tree.c, device
attributes, module parameters, module versions, debugfs files and tracepoints.
The last line counts.
"""
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DEVICE = "/sys/devices/virtual/neuron_device/neuron<N>"
CORE = DEVICE + "/neuron_core<C>"
HBM = DEVICE + "/hbm<M>"
FIELDS = ("Date", "KernelVersion", "Contact", "Description")


def read(path):
    with open(path, encoding="utf-8") as source:
        return source.read()


def strip(text):
    """C without comments."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def table_files(text):
    """Paths of the table in kmod/sysfs/tree.c."""
    start = text.find("neuron_sysfs_table[] = {")
    if start < 0:
        raise SystemExit("the table of kmod/sysfs/tree.c is not where it was")
    body = strip(text[start:text.index("\n};", start)])
    rows = re.findall(r"\b([A-Z_]+)\(\s*(\w+),\s*\"([^\"]+)\"", body)
    # A row of another shape must not go unnoticed.
    if len(rows) != body.count('"') // 2:
        raise SystemExit("kmod/sysfs/tree.c has rows that this script cannot read")
    for kind, scope, path in rows:
        base = {"DEV": DEVICE, "CORE": CORE, "HBM": HBM}[scope] + "/" + path
        if kind == "MEM":
            yield from (f"{base}/{name}" for name in ("total", "present", "peak"))
        elif kind == "COUNT":
            yield from (f"{base}/{name}" for name in ("total", "present"))
        elif kind in ("FILE_RO", "FILE_RW", "FILE_ROOT"):
            yield base
        else:
            raise SystemExit(f"kmod/sysfs/tree.c: unknown kind of row {kind}")


def other_files():
    """Attributes outside the table, module parameters, module versions."""
    for path in sorted(glob.glob(os.path.join(ROOT, "kmod", "**", "*.c"), recursive=True)):
        text = strip(read(path))
        folder = os.path.basename(os.path.dirname(path))
        module = f"neuron_{folder}" if folder in ("emu", "pci") else "neuron"
        for name in re.findall(r"\bDEVICE_ATTR(?:_RO|_RW|_WO|_ADMIN_RO|_ADMIN_RW)?\((\w+)", text):
            yield f"{DEVICE}/{name}"
        for call in re.findall(r"\bmodule_param(?:_named|_array|_string|_cb|_hw)?\(([^;]*)\);",
                               text):
            words = [w.strip() for w in call.split(",")]
            if words[-1] != "0":
                yield f"/sys/module/{module}/parameters/{words[0]}"
        if re.search(r"\bMODULE_VERSION\(", text):
            yield f"/sys/module/{module}/version"


def configfs_files():
    """Attributes of the software device's directories."""
    source = read(os.path.join(ROOT, "kmod", "emu", "configfs.c"))
    for name in re.findall(r"\b(?:CONFIGFS_ATTR_RO\(emu_item_, |EMU_ITEM_ATTR\()(\w+)\);", source):
        yield f"/sys/kernel/config/neuron_emu/<name>/{name}"


def debugfs_files():
    """Files of kmod/mem/debugfs.c; %u in a name is a number."""
    source = read(os.path.join(ROOT, "kmod", "mem", "debugfs.c"))
    for name in re.findall(r'snprintf\(name, sizeof\(name\), "(\w+)%u"', source):
        yield f"/sys/kernel/debug/neuron/neuron<N>/{name}<M>"
    for name in re.findall(r'neuron_fault_add\([^"]*"(\w+)"', source):
        yield f"/sys/kernel/debug/neuron/neuron<N>/inject_{name}"
    source = read(os.path.join(ROOT, "kmod", "emu", "faults.c"))
    for name in re.findall(r'\[EMU_FAULT_\w+\] = "(\w+)"', source):
        yield f"/sys/kernel/debug/neuron_emu/neuron<N>/inject_{name}"
    source = read(os.path.join(ROOT, "kmod", "emu", "debugfs.c"))
    for name, parent in re.findall(r'debugfs_create_\w+\("(\w+)", 0\d+, ([\w>-]+),', source):
        device = "" if parent == "emu_debugfs" else "neuron<N>/"
        yield f"/sys/kernel/debug/neuron_emu/{device}{name}"


def trace_events():
    """Tracepoints of kmod/base/trace.h."""
    text = strip(read(os.path.join(ROOT, "kmod", "base", "trace.h")))
    for name in re.findall(r"\bTRACE_EVENT\((\w+)|\bDEFINE_EVENT\(\w+, (\w+)", text):
        yield "/sys/kernel/tracing/events/neuron/" + (name[0] or name[1])


def parse(directory, problems):
    """Entries may start with several What: lines."""
    paths = set()
    pending = []
    for path in sorted(glob.glob(os.path.join(directory, "*"))):
        name = os.path.basename(path)
        state, text = [], []

        def finish():
            if not pending:
                return
            if tuple(state) != FIELDS:
                problems.append(f"{name}: {pending[0]}: fields are {state}, not {list(FIELDS)}")
            if not "".join(text).strip():
                problems.append(f"{name}: {pending[0]}: no description")
            pending.clear()

        for line in read(path).splitlines() + ["What: end"]:
            field = re.match(r"(\w+):[ \t]*(.*)", line)
            if field and field[1] == "What":
                if state:
                    finish()
                    state, text = [], []
                what = field[2].strip()
                if what == "end":
                    finish()
                elif what in paths:
                    problems.append(f"{name}: {what}: a second entry")
                else:
                    paths.add(what)
                    pending.append(what)
            elif field and pending:
                state.append(field[1])
                if field[1] != "Description" and not field[2].strip():
                    problems.append(f"{name}: {pending[0]}: {field[1]} is empty")
            elif line.strip() and not pending:
                problems.append(f"{name}: text outside of an entry: {line.strip()}")
            else:
                text.append(line)
        pending.clear()
    return paths


def compare(files, documented):
    """Files without an entry; entries without a file. Directories may have one."""
    missing = sorted(files - documented)
    stale = sorted(d for d in documented - files
                   if not any(f.startswith(d + "/") for f in files))
    return missing, stale


def main():
    passed = failed = 0

    def report(good, what, details=()):
        nonlocal passed, failed
        passed += bool(good)
        failed += not good
        print(("ok - " if good else "not ok - ") + what)
        for detail in details:
            print("#   " + detail)

    problems = []
    documented = parse(os.path.join(ROOT, "sysfs-docs"), problems)
    files = set(table_files(read(os.path.join(ROOT, "kmod", "sysfs", "tree.c"))))
    files |= set(other_files()) | set(debugfs_files()) | set(trace_events())
    files |= set(configfs_files())

    report(not problems, f"form of {len(documented)} entries", problems)
    missing, stale = compare(files, documented)
    report(not missing, f"{len(files)} files have an entry", missing)
    report(not stale, "each entry has a file", stale)

    # The comparison itself: a file more and a file less must be seen.
    one = next(iter(sorted(files)))
    report(compare(files | {DEVICE + "/surprise"}, documented)[0] ==
           sorted(missing + [DEVICE + "/surprise"]), "a file without an entry is noticed")
    report(one in compare(files - {one}, documented)[1], "an entry without a file is noticed")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
