#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Mutation test of kmod/mem/buddy.c: do the tests notice when it is wrong?

Each mutant has one small change: an operator, a constant, a negated condition, a
statement left out. The unit tests with a short property test run on it; a mutant
that passes them all survives. Debian has no mutator for C that fits, hence this one;
it changes tokens of code lines only.

usage: test_buddy_mutate.py [--sample N] [--seed S] [--jobs J] [--list] [--keep DIR]

Without --sample every mutant is run, which takes hours.
Mutants that do not compile, and those that compile to the same object code as the
original, are not counted.
"""

import argparse
import concurrent.futures
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
SOURCE = os.path.join(ROOT, "kmod/mem/buddy.c")

# token -> replacements; applied to each occurrence on its own
OPERATORS = [
    (r"(?<![<>=!+\-*/&|^])<(?![<=])", ["<=", ">="]),
    (r"(?<![<>\-=])>(?![>=])", [">=", "<="]),
    (r"<=", ["<", ">"]),
    (r"(?<!>)>=(?!=)", [">", "<"]),
    (r"==", ["!="]),
    (r"!=", ["=="]),
    (r"&&", ["||"]),
    (r"\|\|", ["&&"]),
    (r"(?<![+\w])\+(?![+=])|(?<= )\+(?= )", ["-"]),
    (r"(?<= )-(?= )", ["+"]),
    (r"\+=", ["-="]),
    (r"-=", ["+="]),
    (r"<<(?!=)", [">>"]),
    (r"(?<!>)>>(?!=)", ["<<"]),
    (r"(?<= )&(?= )", ["|"]),
    (r"(?<= )\|(?= )", ["&"]),
    (r"(?<=[(= ])~(?=[\w(])", [""]),
    (r"\btrue\b", ["false"]),
    (r"\bfalse\b", ["true"]),
    (r"\b0\b(?![xX])", ["1"]),
    (r"\b1\b", ["0", "2"]),
    (r"\bmin\(", ["max("]),
    (r"\bmax\(", ["min("]),
    (r"\bif \((?!!)", ["if (!(bool)"]),
]
# whole statements: calls and assignments on a line of their own
STATEMENT = re.compile(r"^\t+(?!return|goto|break|continue|case|default|u8|u16|u32|u64|bool|int|"
                       r"struct|const|static|unsigned|char)[\w*].*;$")


def code_lines(text):
    """Numbers of the lines with code: no comments, preprocessor, declarations."""
    comment = False
    inside = False
    for number, line in enumerate(text):
        bare = line.strip()
        if comment:
            comment = "*/" not in bare
            continue
        if bare.startswith("/*"):
            comment = "*/" not in bare
            continue
        if line.startswith("{"):
            inside = True
        elif line.startswith("}"):
            inside = False
        elif inside and bare and not bare.startswith(("#", "//", "*")):
            yield number


def mutants(text):
    # The check is a test itself: mutants of it only weaken other tests.
    end = next(i for i, line in enumerate(text) if "--- self-check" in line)
    for number in code_lines(text):
        if number >= end:
            break
        line = text[number]
        code = line.split("/*")[0]
        for pattern, replacements in OPERATORS:
            for match in re.finditer(pattern, code):
                for new in replacements:
                    old = line[:match.start()] + new + line[match.end():]
                    if new.endswith("(bool)"):
                        # negate the whole condition only if it ends on this line
                        depth, i = 0, match.end() - 1
                        for i in range(match.end() - 1, len(code)):
                            depth += {"(": 1, ")": -1}.get(code[i], 0)
                            if depth == 0:
                                break
                        if depth:
                            continue
                        old = (line[:match.end() - 1] + "(!(" + line[match.end():i] + "))" +
                               line[i + 1:])
                    yield number, old
        if STATEMENT.match(line):
            yield number, "\t;\n"


def build(work, sanitize):
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if sanitize else []
    return subprocess.run(["gcc", "-std=gnu11", "-O1", "-w", *flags, "-DPROPERTY_STEPS=60000",
                           "tests/lib/test_buddy.c", "-o", "test", "-lcmocka"],
                          cwd=work, capture_output=True).returncode == 0


def object_hash(work):
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-w", "-g0", "-c", "kmod/mem/buddy.c", "-o", "o"],
                   cwd=work, capture_output=True)
    try:
        with open(os.path.join(work, "o"), "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()
    except OSError:
        return None


def prepare(work):
    for name in ("kmod/mem/buddy.c", "kmod/mem/buddy.h", "kmod/mem/buddy_shim.h",
                 "tests/lib/test_buddy.c", "tests/lib/buddy_model.h"):
        os.makedirs(os.path.dirname(os.path.join(work, name)), exist_ok=True)
        shutil.copy(os.path.join(ROOT, name), os.path.join(work, name))


def run(text, mutant, original):
    """killed, survived, same or broken."""
    number, line = mutant
    work = tempfile.mkdtemp(prefix="mutant")
    try:
        prepare(work)
        changed = list(text)
        changed[number] = line if line.endswith("\n") else line + "\n"
        with open(os.path.join(work, "kmod/mem/buddy.c"), "w") as f:
            f.writelines(changed)
        got = object_hash(work)
        if got is None or not build(work, False):
            return "broken"
        if got == original:
            return "same"
        try:
            result = subprocess.run(["./test"], cwd=work, capture_output=True, timeout=30,
                                    preexec_fn=lambda: os.nice(5))
            return "survived" if result.returncode == 0 else "killed"
        except subprocess.TimeoutExpired:
            return "killed"
    finally:
        shutil.rmtree(work)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()

    with open(SOURCE) as f:
        text = f.readlines()
    every = sorted(set(mutants(text)))
    total = len(every)
    if args.sample and args.sample < total:
        every = sorted(random.Random(args.seed).sample(every, args.sample))
    if args.list:
        for number, line in every:
            print(f"{number + 1}: {line.strip()}")
        return 0

    work = tempfile.mkdtemp(prefix="mutant")
    prepare(work)
    original = object_hash(work)
    if not build(work, False) or subprocess.run(["./test"], cwd=work,
                                                capture_output=True).returncode:
        print("the unchanged file does not pass")
        return 1
    shutil.rmtree(work)

    count = {"killed": 0, "survived": 0, "same": 0, "broken": 0}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for mutant, result in zip(every, pool.map(lambda m: run(text, m, original), every)):
            count[result] += 1
            if result == "survived":
                print(f"survived: line {mutant[0] + 1}\n  - {text[mutant[0]].strip()}\n"
                      f"  + {mutant[1].strip()}", flush=True)
    tried = count["killed"] + count["survived"]
    score = 100 * count["killed"] / tried if tried else 0
    print(f"{len(every)} of {total} mutants: {count['broken']} do not compile, {count['same']} "
          f"change nothing, {count['killed']} killed, {count['survived']} survived")
    print(f"mutation score {score:.1f} %")
    bad = score < 85
    print(f"{1 - bad} passed, {int(bad)} failed")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
