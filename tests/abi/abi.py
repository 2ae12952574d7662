#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Turn the table of interface facts into compile-time assertions.

usage: abi.py TABLE > abi_asserts.h
       abi.py --count TABLE
       abi.py --mutate N TABLE > TABLE2    change the Nth fact (for the negative test)
"""
import re
import sys

HEAD = """\
/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Made from tests/abi/abi-values.txt by tests/abi/abi.py; "make -C tests/abi
 * update" makes it anew. Include after uapi/neuron_ioctl.h, in C11 or C++11, in
 * user space or in the kernel.
 */
#ifndef NEURON_ABI_ASSERTS_H
#define NEURON_ABI_ASSERTS_H

#ifdef __KERNEL__
#include <linux/stddef.h>
#else
#include <stddef.h>
#endif

#ifdef __cplusplus
#define NEURON_ABI(cond, what) static_assert(cond, what)
#define NEURON_ABI_ALIGN(type) alignof(type)
#define NEURON_ABI_TYPE(type, field, expect)
#else
#define NEURON_ABI(cond, what) _Static_assert(cond, what)
#define NEURON_ABI_ALIGN(type) _Alignof(type)
#define NEURON_ABI_TYPE(type, field, expect) \\
	_Static_assert(__builtin_types_compatible_p(__typeof__(((type *)0)->field), expect), \\
		       #type "." #field " is not " #expect)
#endif

"""

TAIL = """
#undef NEURON_ABI
#undef NEURON_ABI_ALIGN
#undef NEURON_ABI_TYPE

#endif /* NEURON_ABI_ASSERTS_H */
"""

DIRS = {"none": 0, "write": 1, "read": 2, "rw": 3}
ARITY = {"cmd": 6, "const": 3, "addr": 4, "struct": 4, "enum": 2, "val": 3}


def records(path):
    """Yield (line number, words) for each fact; a field keeps its type in one word."""
    with open(path, encoding="ascii") as table:
        for number, line in enumerate(table, 1):
            line = line.split("#", 1)[0].strip()
            if not line:
                continue
            words = line.split(None, 4) if line.startswith("field") else line.split()
            want = 5 if words[0] == "field" else ARITY.get(words[0])
            if len(words) != want:
                raise SystemExit(f"{path}:{number}: cannot read {line!r}")
            yield number, words


def literal(value):
    """C spelling of a number of the table that never compares signed with unsigned."""
    number = int(value, 0)
    return f"{number}U" if number > 0x7FFFFFFF else str(number)


def emit(path, out):
    facts = 0
    struct = None

    def check(cond, what):
        nonlocal facts
        facts += 1
        line = f'NEURON_ABI({cond}, "{what}");'
        if len(line) > 98:
            line = f'NEURON_ABI({cond},\n\t   "{what}");'
        out.append(line)

    for _, rec in records(path):
        kind, name = rec[0], rec[1]
        if kind == "cmd":
            value, direction, number, size = rec[2:]
            want = DIRS[direction] << 30 | int(size) << 16 | 0x4E << 8 | int(number)
            if want != int(value, 16):
                raise SystemExit(f"{name}: the parts of the number do not make {value}")
            check(f"{name} == {value}U", f"{name} is not {value}")
        elif kind in ("const", "val"):
            check(f"{name} == {literal(rec[2])}", f"{name} is not {rec[2]}")
        elif kind == "struct":
            struct = name.replace(":", " ")
            out.append("")
            check(f"sizeof({struct}) == {rec[2]}", f"size of {struct} is not {rec[2]}")
            check(f"NEURON_ABI_ALIGN({struct}) == {rec[3]}",
                  f"alignment of {struct} is not {rec[3]}")
        elif kind == "field":
            offset, size, ctype = rec[2:]
            check(f"offsetof({struct}, {name}) == {offset}",
                  f"{struct}.{name} is not at {offset}")
            if size != "flex":
                check(f"sizeof((({struct} *)0)->{name}) == {size}",
                      f"{struct}.{name} has not {size} bytes")
            facts += 1
            out.append(f"NEURON_ABI_TYPE({struct}, {name}, {ctype});")
    return facts


def emit_addr(path, out):
    """The address macros need an object, so they are a function, not assertions."""
    facts = 0
    out += ["", "/* Number of datastore address macros that give a wrong address. */",
            "static inline int neuron_abi_bad_addresses(char *base)", "{",
            "\tint bad = 0;", ""]
    for _, rec in records(path):
        if rec[0] != "addr":
            continue
        facts += 1
        args = "base" if rec[2] == "-" else f"base, {rec[2]}"
        out.append(f"\tbad += (char *){rec[1]}({args}) - base != {rec[3]};")
    out += ["\treturn bad;", "}"]
    return facts


def generate(path):
    out = []
    emit(path, out)
    emit_addr(path, out)
    return HEAD + "\n".join(out).strip("\n") + "\n" + TAIL


def count(path):
    return emit(path, []) + emit_addr(path, [])


def mutate(path, which):
    """Return the table with one number of its Nth record changed."""
    lines = open(path, encoding="ascii").read().splitlines()
    recs = [(n, r) for n, r in records(path) if r[0] != "enum"]
    number, rec = recs[which % len(recs)]
    column = {"cmd": 4, "const": 2, "addr": 3, "struct": 2, "field": 2, "val": 2}[rec[0]]
    words = lines[number - 1].split(None, 4 if rec[0] == "field" else -1)
    words[column] = str(int(words[column], 0) + 1)
    if rec[0] == "cmd":		# keep number and parts in agreement
        words[2] = hex(int(words[2], 16) + 1)
    lines[number - 1] = " ".join(words)
    return rec, "\n".join(lines) + "\n"


def main(argv):
    if len(argv) == 2:
        sys.stdout.write(generate(argv[1]))
    elif len(argv) == 3 and argv[1] == "--count":
        print(count(argv[2]))
    elif len(argv) == 4 and argv[1] == "--mutate":
        sys.stdout.write(mutate(argv[3], int(argv[2]))[1])
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv)
