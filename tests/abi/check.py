#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Check uapi/ against the table of interface facts and the dispatcher.

usage: check.py            everything below; the last line counts
       check.py --update   make abi_asserts.h anew from the tables

Environment: KDIRS    kernel build directories to compile the assertions for
                      (default: the ones in the cache of the test rig and the
                      headers of the running kernel, as far as they exist)
             NEURON_CACHE   the cache of the test rig
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import abi

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
UAPI = os.path.join(ROOT, "uapi")
TABLE = os.path.join(HERE, "abi-values.txt")
ASSERTS = os.path.join(HERE, "abi_asserts.h")

STRICT = ["-pedantic", "-Wall", "-Wextra", "-Wundef", "-Wshadow", "-Werror"]
C = [("gcc", "c", std) for std in ("c11", "c17")] + \
    [("clang", "c", std) for std in ("c11", "c17")]
CXX = [("g++", "c++", std) for std in ("c++11", "c++17", "c++20")] + \
      [("clang++", "c++", std) for std in ("c++11", "c++17", "c++20")]

passed = failed = 0


def report(good, what, detail=""):
    global passed, failed
    passed += bool(good)
    failed += not good
    print(("ok - " if good else "not ok - ") + what, flush=True)
    if not good:
        for line in detail.strip().splitlines()[:20]:
            print("#   " + line)


def run(*args, **kwargs):
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, **kwargs)
    return done.returncode, done.stdout


def compilers():
    """Those of C and CXX there are; gcc and g++ must be, the others may be."""
    missing = set()
    for tool, lang, std in C + CXX:
        if shutil.which(tool) or tool in ("gcc", "g++"):
            yield tool, lang, std
        elif tool not in missing:
            missing.add(tool)
            print(f"# skipped: {tool} is not installed")


def check_table(found, tmp):
    text = open(ASSERTS, encoding="ascii").read()
    report(text == abi.generate(TABLE), "abi_asserts.h is what abi.py makes of the table",
           "run: make -C tests/abi update")

    facts = abi.count(TABLE)
    exe = os.path.join(tmp, "abi_check")
    for tool, lang, std in found:
        rc, out = run(tool, "-x", lang, f"-std={std}", *STRICT, "-I", UAPI, "-I", HERE,
                      os.path.join(HERE, "abi_check.c"), "-o", exe)
        if rc == 0:
            rc, out = run(exe)
            out = f"{rc} datastore address macros are wrong" if rc else out
        report(rc == 0, f"{facts} facts hold ({tool} -std={std})", out)


def check_negative(tmp):
    """Change every number of the table: each must be noticed, by itself."""
    recs = [r for _, r in abi.records(TABLE) if r[0] != "enum"]
    addresses = sum(r[0] == "addr" for r in recs)
    table = os.path.join(tmp, "mutated.txt")
    shutil.copy(TABLE, table)
    for which, rec in enumerate(recs):
        text = abi.mutate(table, which)[1]
        with open(table, "w", encoding="ascii") as out:
            out.write(text)
    with open(os.path.join(tmp, "abi_asserts.h"), "w", encoding="ascii") as out:
        out.write(abi.generate(table))
    # A copy, so that it includes the assertions next to it.
    source = shutil.copy(os.path.join(HERE, "abi_check.c"), tmp)
    for tool, lang, std in (("gcc", "c", "c11"), ("g++", "c++", "c++11")):
        _, out = run(tool, "-x", lang, f"-std={std}", "-fmax-errors=0", "-fsyntax-only",
                     "-fno-diagnostics-show-caret", "-I", UAPI, "-I", tmp, source)
        errors = out.count("error: static assertion failed")
        want = len(recs) - addresses
        report(errors == want and out.count("error:") == want,
               f"{tool} notices each of {want} wrong facts", f"{errors} noticed\n{out}")

    # The address macros are checked when the program runs.
    with open(os.path.join(tmp, "abi_asserts.h"), encoding="ascii") as text:
        lines = [l for l in text if not l.startswith(("NEURON_ABI", "\t   \""))]
    with open(os.path.join(tmp, "abi_asserts.h"), "w", encoding="ascii") as out:
        out.writelines(lines)
    exe = os.path.join(tmp, "negative")
    rc, out = run("gcc", "-I", UAPI, "-I", tmp, source, "-o", exe)
    if rc == 0:
        rc, _ = run(exe)
    report(rc == addresses, f"each of {addresses} wrong addresses is noticed", f"{rc}\n{out}")


def check_headers(found, tmp):
    headers = sorted(os.path.relpath(h, UAPI)
                     for h in glob.glob(os.path.join(UAPI, "**", "*.h"), recursive=True))
    source = os.path.join(tmp, "alone")
    for header in headers:
        first = open(os.path.join(UAPI, header), encoding="ascii").readline().strip()
        report(first == "/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */",
               f"{header}: licence line", first)
        with open(source, "w", encoding="ascii") as out:
            out.write(f'#include "{header}"\n' * 2)
        for tool, lang, std in found:
            rc, out = run(tool, "-x", lang, f"-std={std}", *STRICT, "-fsyntax-only",
                          "-I", UAPI, source)
            report(rc == 0, f"{header}: stands alone ({tool} -std={std})", out)
        rc, out = run("gcc", "-x", "c", "-std=c90", "-Wall", "-Wextra", "-Werror",
                      "-fsyntax-only", "-I", UAPI, source)
        report(rc == 0, f"{header}: stands alone (gcc -std=c90, as the kernel asks)", out)
        if os.path.basename(header) in ("neuron_native.h", "neuron_isa.h"):
            rc, out = run("gcc", "-x", "c", "-std=c11", "-Wpadded", "-Werror",
                          "-fsyntax-only", "-I", UAPI, source)
            report(rc == 0, f"{header}: no hidden padding", out)
    with open(source, "w", encoding="ascii") as out:
        out.writelines(f'#include "{h}"\n' for h in reversed(headers))
    for tool, lang, std in found:
        rc, out = run(tool, "-x", lang, f"-std={std}", *STRICT, "-fsyntax-only",
                      "-I", UAPI, source)
        report(rc == 0, f"all headers together ({tool} -std={std})", out)


def check_native():
    """What makes the native door extensible and the same for 32 and 64 bits."""
    text = open(os.path.join(UAPI, "neuron_native.h"), encoding="ascii").read()
    entries = re.findall(r"@entry_size: in, sizeof\(struct (\w+)\)", text)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    structs = re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, flags=re.S | re.M)
    report(len(structs) > 3, "neuron_native.h: structures found", str(structs))
    for name, body in structs:
        report(body.split()[:2] == ["__u32", "size;"] or name in entries,
               f"{name}: starts with its size, or the call has it", body)
        odd = [line.strip() for line in body.splitlines() if line.strip() and
               not re.match(r"\s*(__[us](8|16|32|64) \w+(\[\w+\])?;|char \w+\[\w+\];|"
                            r"struct \{|\} \w+(\[\w+\])?;)$", line)]
        report(not odd, f"{name}: fixed-width members only", "\n".join(odd))


def check_forms(tmp):
    """An initialiser that names one form of an instruction sets all of it."""
    text = open(os.path.join(UAPI, "neuron_isa.h"), encoding="ascii").read()
    forms = re.findall(r"^\t\t\} (\w+);", text, flags=re.M)
    source = os.path.join(tmp, "forms.c")
    with open(source, "w", encoding="ascii") as out:
        out.write('#include "neuron_isa.h"\n')
        out.writelines(f"_Static_assert(sizeof(((struct neuron_isa_inst *)0)->u.{form}) == 56, "
                       f'"{form}");\n' for form in forms)
    rc, out = run("gcc", "-std=c11", "-fsyntax-only", "-I", UAPI, source)
    report(rc == 0 and len(forms) > 4, f"neuron_isa.h: {len(forms)} forms as long as the union", out)


def check_readme():
    """The tables of uapi/README.md say what the dispatcher has."""
    code = open(os.path.join(ROOT, "kmod", "core", "ioctl.c"), encoding="ascii").read()
    code = code[code.index("neuron_ioctls[] = {"):]
    code = code[:code.index("\n};")]
    rows = {}
    for native, name, rest in re.findall(r"\bROW(?:_RAW|_UNDO|(_NATIVE))?\(\s*(\w+),(.*?)\)\s*,\s*\n",
                                         code + "\n", flags=re.S):
        state = ("no-op" if "neuron_do_nop" in rest else
                 "no" if "neuron_do_eopnotsupp" in rest else "yes")
        rows[(bool(native), name)] = (state, "W" if re.search(r"\bANY\b", rest) else "")
    report(len(rows) == len(re.findall(r"\bROW(?:_RAW|_UNDO|_NATIVE)?\(", code)),
           "each row of the dispatcher is understood")

    numbers = {(False, rec[1][len("NEURON_IOCTL_"):]): rec[4]
               for _, rec in abi.records(TABLE) if rec[0] == "cmd"}
    native = open(os.path.join(UAPI, "neuron_native.h"), encoding="ascii").read()
    numbers.update(((True, name), nr) for name, nr in re.findall(
        r"#define NEURON_NATIVE_(\w+)\s+_IO\(NEURON_NATIVE_BASE, (\d+)\)", native))

    door, seen, wrong = False, set(), []
    for line in open(os.path.join(UAPI, "README.md"), encoding="utf-8"):
        if line.startswith("## "):
            door = line.startswith("## Native door")
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if len(cells) < 5 or not cells[0].isdigit():
            continue
        nr, name, state, who = cells[:4]
        key = (door, name)
        seen.add(key)
        if numbers.get(key) != nr:
            wrong.append(f"{name}: number {nr}, not {numbers.get(key)}")
        if (state, who) != rows.get(key, ("no", "")):
            wrong.append(f"{name}: README says {state} {who}, code {rows.get(key, 'no')}")
    wrong += [f"{name} is not in the README" for _, name in sorted(set(numbers) - seen)]
    wrong += [f"{name} is in the dispatcher only" for _, name in sorted(set(rows) - seen)]
    report(not wrong, f"uapi/README.md agrees with the dispatcher on {len(seen)} commands",
           "\n".join(wrong))


# Rows of the vendor's driver's defects (10.1 to 10.3 of the interface facts).
VENDOR_ROWS = {"A": 24, "B": 13, "C": 30}


def check_vendor_rows():
    """Every row is in the name of a test: "vendor A1: ..."."""
    found = set()
    for path in glob.glob(os.path.join(ROOT, "tests", "vm", "guest", "*.[ch]")):
        for name in re.findall(r'"((?:[^"\\]|\\.)*)"', open(path, encoding="ascii").read()):
            found.update(re.findall(r"\bvendor ([ABC]\d+)\b", name))
    want = {f"{letter}{n}" for letter, last in VENDOR_ROWS.items() for n in range(1, last + 1)}
    report(want <= found, f"{len(want)} defects of the vendor's driver have tests",
           "none for " + " ".join(sorted(want - found)))
    report(found <= want, "and no test names another one",
           " ".join(sorted(found - want)))


def kernels():
    if "KDIRS" in os.environ:
        return os.environ["KDIRS"].split()
    cache = os.environ.get("NEURON_CACHE") or os.path.expanduser("~/.cache/neuron-driver")
    found = {}
    for kdir in sorted(glob.glob(os.path.join(cache, "kernels", "*", "kdir"))) + \
            [f"/lib/modules/{os.uname().release}/build"]:
        ready = os.path.exists(os.path.join(kdir, "Makefile")) and \
            os.path.exists(os.path.join(kdir, "include", "generated", "autoconf.h"))
        # What a kernel is prepared for: User Mode Linux needs another ARCH.
        if ready and "CONFIG_UML 1" not in open(
                os.path.join(kdir, "include", "generated", "autoconf.h")).read():
            found.setdefault(os.path.realpath(kdir), kdir)
    return sorted(found)


def missing_compiler(kdir):
    """The compiler that a kernel names and this machine has not."""
    wanted = re.compile(r"^(?:CC = .*\b(gcc-\d+)|export CROSS_COMPILE := (\S+)|export LLVM := 1)$",
                        re.MULTILINE)
    for name in (".kernelvariables", "Makefile"):
        path = os.path.join(kdir, name)
        found = os.path.exists(path) and wanted.search(open(path, encoding="ascii").read())
        if found:
            compiler = found[1] or (found[2] + "gcc" if found[2] else "clang")
            return None if shutil.which(compiler) else compiler
    return None


def check_kernels(tmp):
    kdirs = kernels()
    if not kdirs:
        print("# skipped: no kernel headers (tests/vm/kernels.sh gets some)")
    for kdir in kdirs:
        missing = missing_compiler(kdir)
        if missing:
            print(f"# skipped: {os.path.basename(os.path.realpath(kdir))} wants {missing}")
            continue
        work = tempfile.mkdtemp(dir=tmp)
        shutil.copy(os.path.join(HERE, "abi_kernel.c"), work)
        with open(os.path.join(work, "Kbuild"), "w", encoding="ascii") as out:
            out.write("obj-m := abi_kernel.o\n"
                      f"ccflags-y := -Werror -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare "
                      f"-Wno-missing-field-initializers -I{UAPI} -I{HERE}\n")
        rc, out = run("make", "-C", kdir, f"M={work}", "abi_kernel.o")
        report(rc == 0, f"facts hold in the kernel ({os.path.basename(kdir)})", out)


def main(argv):
    if argv[1:] == ["--update"]:
        with open(ASSERTS, "w", encoding="ascii") as out:
            out.write(abi.generate(TABLE))
        return 0
    if argv[1:]:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as tmp:
        found = list(compilers())
        check_table(found, tmp)
        check_negative(tmp)
        check_headers(found, tmp)
        check_native()
        check_forms(tmp)
        check_readme()
        check_vendor_rows()
        check_kernels(tmp)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
