#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Mutation test: do the tests notice when the code is wrong?

Each mutant has one small change: an operator, a constant, a negated condition, a
statement left out. A mutant that passes the tests below survives and is printed.
Debian has no mutator for C, hence this one; it changes tokens of code lines only.

    kmod/mem, kmod/dma         in User Mode Linux: the KUnit suites and those guest tests
                               that need neither the library nor another processor
    kmod/mem/buddy             its unit and property tests on the host before that
    libneuron, NEFF reader     host tests that are made of it
    and loader

usage: mutate.py [--seconds S] [--count C] [--seed N] [--jobs J] [--list] [FILE...]

Files take turns, so that each has its share; without FILE all of the above. It ends
after S seconds, or when C mutants of each group have been tried. Mutants that do not
compile, or compile to the same object, do not count, nor do changes that mean the same:
memory allocated for one element more, "<=" for "<" where the smaller of two values is
chosen. Fails when fewer than 85 %% of
the mutants of kmod/mem, of kmod/dma or of the loader are noticed.
"""

import argparse
import concurrent.futures
import glob
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
WANTED = 85
PATTERNS = ["kmod/mem/*.c", "kmod/mem/buddy/*.c", "kmod/dma/*.c", "libneuron/src/neff/*.c",
            "libneuron/src/isa/*.c", "libneuron/src/load/*.c"]
# The allocator's check is a test itself, and no part of the module: mutants of it only weaken
# other tests.
TESTS = {"kmod/mem/buddy/check.c"}
# What runs in User Mode Linux, short ones first; what noticed a mutant of a file is the
# first one for the next mutant of it.
GUEST = ["tests/vm/kunit.sh"] + [f"tests/vm/guest/{name}.c" for name in (
    "driver", "mmap", "limits", "scrub", "death", "grow", "dmabuf", "dma_compute", "async",
    "zerocopy", "refusals", "fdinfo", "regs", "inf1", "process", "eventfd", "compat", "removal",
    "vendor_bugs", "caps", "charge", "crwl", "notify",
    "host_memory", "datastore", "faults", "rings", "reset", "card_like", "configfs",
    "ioctl_hostile")]
# Not for these files: they take longest, and what they are about is elsewhere.
WITHOUT = [(r"kmod/dma/.*", {"caps", "charge", "crwl", "limits"}),
           (r"kmod/mem/.*", {"crwl", "dma_compute", "inf1"})]
UNLOAD = "tests/vm/guest/zz-unload.sh"
HOST = [(r"kmod/mem/buddy/.*", ["buddy"]),
        (r"kmod/mem/compact.c", ["compact"]),
        (r"libneuron/src/neff/.*", ["neff", "neff_pack", "lib_model"]),
        (r"libneuron/src/neff/network\.c", ["lib_group"]),
        (r"libneuron/src/(isa|neff/error\.c).*", ["isa"]),
        (r"libneuron/src/isa/.*", ["transfer", "lib_model", "lib_faults"]),
        (r"libneuron/src/load/.*", ["lib_model", "lib_faults", "report"])]

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
# More memory than is needed: nobody can tell. One element less is tried all the same.
ALLOCATION = re.compile(r"\b\w*alloc\w*\((2, sizeof|.*\+ 2\b)")
# The smaller or the larger of two values: at equality both are it.
CHOICE = re.compile(r"([\w.>\[\]-]+) [<>]=? ([\w.>\[\]-]+) \? (\1 : \2|\2 : \1)(?![\w.>\[(-])")
CLAMP = re.compile(r"\bif \(([\w.>\[\]-]+) [<>]=? ([\w.>\[\]-]+)\)$")
# whole statements: calls and assignments on a line of their own
STATEMENT = re.compile(r"^\t+(?!return|goto|break|continue|case|default|u8|u16|u32|u64|bool|int|"
                       r"struct|const|static|unsigned|char|size_t|lockdep_|WARN_|assert)[\w*].*;$")


def code_lines(text):
    """Numbers of the lines with code: no comments, preprocessor, declarations."""
    comment = inside = False
    for number, line in enumerate(text):
        bare = line.strip()
        if comment or bare.startswith("/*"):
            comment = "*/" not in bare
            continue
        if line.startswith("{"):
            inside = True
        elif line.startswith("}"):
            inside = False
        elif inside and bare and not bare.startswith(("#", "//", "*")):
            yield number


def negated(line, code, match):
    """The line with the whole condition negated, if it ends on this line."""
    depth = 0
    for i in range(match.end() - 1, len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return line[:match.end() - 1] + "(!(" + line[match.end():i] + "))" + line[i + 1:]
    return None


def equivalent(text, number, changed):
    """Is it known of this kind of change that it means the same?"""
    line = text[number]
    if ALLOCATION.search(changed) and not ALLOCATION.search(line):
        return True
    # Only the case of equality is changed: "<" and "<=", or ">" and ">=".
    if re.sub(r"([<>])=?(?= )", r"\1", line) != re.sub(r"([<>])=?(?= )", r"\1", changed):
        return False
    if CHOICE.search(line):
        return True
    match = CLAMP.search(line.rstrip())
    return bool(match) and number + 1 < len(text) and \
        text[number + 1].strip() in (f"{match[1]} = {match[2]};", f"{match[2]} = {match[1]};")


def mutants(text):
    """(line number, changed line) of all that might be noticed."""
    for number, changed in changes(text):
        if not equivalent(text, number, changed):
            yield number, changed


def changes(text):
    for number in code_lines(text):
        line = text[number]
        code = re.split(r"/\*|\"", line)[0]
        for pattern, replacements in OPERATORS:
            for match in re.finditer(pattern, code):
                for new in replacements:
                    if new.endswith("(bool)"):
                        changed = negated(line, code, match)
                    else:
                        changed = line[:match.start()] + new + line[match.end():]
                    if changed:
                        yield number, changed
        if STATEMENT.match(line):
            yield number, "\t;\n"


def run(command, cwd, timeout):
    """True if it succeeds in time. What it started ends with it."""
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        out, _ = process.communicate(timeout=timeout)
        return process.returncode == 0, out.decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return False, ""


class Worker:
    """A copy of the tree, in which one mutant is tried at a time."""

    def __init__(self, number):
        self.dir = tempfile.mkdtemp(prefix="mutate")
        self.log = f"mutate-{os.getpid()}-{number}"
        files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                               capture_output=True, text=True, check=True).stdout.split("\n")
        for name in files:
            if name and os.path.exists(os.path.join(ROOT, name)):
                os.makedirs(os.path.dirname(os.path.join(self.dir, name)), exist_ok=True)
                shutil.copy2(os.path.join(ROOT, name), os.path.join(self.dir, name))
        self.guest = None
        self.order = {}
        self.seconds = 0
        self.before = {}
        self.passed = set()
        self.built = None

    def close(self):
        shutil.rmtree(self.dir)
        if self.built:
            shutil.rmtree(os.path.dirname(self.built))

    def modules(self):
        """Build for User Mode Linux; the directory of the modules, or None."""
        good, out = run(["tests/vm/modules.sh", "uml", "WERROR=0", "NEURON_TESTS=1"],
                        self.dir, 900)
        if not good:
            return None
        self.built = out.strip().split("\n")[-1]
        return self.built

    def boot(self, directory, tests, timeout):
        """What failed first, or None."""
        load = os.path.join(self.dir, "load.sh")
        tests = [load] + tests + [UNLOAD]
        command = ["tests/vm/run.sh", "uml", "--modules", directory, "--mem", "768", "--log",
                   self.log, "--timeout", str(timeout), "--test-timeout", str(timeout // 4),
                   "--append", "rig.first=1 neuron.check_users=1"]
        for test in tests:
            command += ["--test", test]
        if run(command, self.dir, timeout + 300)[0]:
            return None
        cache = os.environ.get("NEURON_CACHE", os.path.expanduser("~/.cache/neuron-driver"))
        with open(os.path.join(cache, "logs", self.log, "verdict.log"), encoding="utf-8") as f:
            ran = [line.split() for line in f if line.startswith("test ")]
        # Without a bad verdict it is the one that did not come to its end.
        passed = [words for words in ran if words[2] == "0" and words[4] == "0"]
        return tests[len(passed)] if len(passed) < len(tests) else "the kernel log"

    def guest_tests(self):
        """Compile them once, and measure them on unchanged code, which they must pass."""
        if self.guest is not None:
            return
        directory = self.modules()
        if not directory:
            sys.exit("the unchanged modules do not build")
        load = os.path.join(self.dir, "load.sh")
        with open(load, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nmodprobe neuron_emu && echo ok\n")
        self.guest = []
        for name in GUEST:
            if name.endswith(".c"):
                program = os.path.join(self.dir, os.path.basename(name)[:-2])
                good, out = run(["gcc", "-O1", "-g", "-std=gnu11", "-pthread", "-Iuapi", "-Iuapi/share",
                                 "-Ilibneuron/include", "-o", program, name, "-lm"], self.dir, 100)
                if not good:
                    sys.exit(out)
                name = program
            self.guest.append(name)
        start = time.monotonic()
        failed = self.boot(directory, self.guest, 900)
        if failed:
            sys.exit(f"{failed}: unchanged modules do not pass in User Mode Linux")
        self.seconds = time.monotonic() - start
        print(f"# {self.seconds:.0f} s for unchanged modules", flush=True)

    def notices(self, name, directory):
        """The guest test that notices a mutant of a file, or None."""
        without = {test for pattern, tests in WITHOUT if re.fullmatch(pattern, name)
                   for test in tests}
        order = self.order.setdefault(name, [test for test in self.guest
                                             if os.path.basename(test) not in without])
        # Most mutants end with the first few, and a guest with few tests is made quickly.
        timeout = int(3 * self.seconds) + 60
        failed = self.boot(directory, order[:3], timeout) or \
            self.boot(directory, order[3:], timeout)
        if failed in order:
            order.remove(failed)
            order.insert(0, failed)
        return failed

    def object_hash(self, name, directory):
        """Of the code that a file compiles to."""
        path = os.path.join(self.dir, "object.o")
        if directory:
            source = os.path.join(directory, os.path.relpath(name, "kmod"))[:-2] + ".o"
            subprocess.run(["objcopy", "-g", source, path], check=True)
        else:
            good, _ = run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-DNEURON_VERSION=\"1\"", "-O2", "-w",
                           "-g0", "-Iuapi", "-Iuapi/share", "-Ilibneuron/include",
                           "-Ikmod", "-c", name, "-o", path], self.dir, 120)
            if not good:
                return None
        with open(path, "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()

    def host(self, names):
        for name in names:
            good, _ = run(["make", "-s", "-C", "tests/lib", "TIMEOUT=120", name], self.dir, 400)
            if not good:
                return name
        return None

    def prepare(self, name, directory):
        """The hash of unchanged code, which must pass what its mutants are to fail."""
        for pattern, names in HOST:
            if re.fullmatch(pattern, name) and not self.passed.issuperset(names):
                if self.host(names):
                    sys.exit(f"{name}: the unchanged file does not pass {' '.join(names)}")
                self.passed.update(names)
        self.before[name] = self.object_hash(name, directory)

    def test(self, name):
        """killed, survived, same or broken, and by what; None for unchanged code."""
        directory = None
        if name.startswith("kmod"):
            self.guest_tests()
            directory = self.modules()
            if not directory:
                return "broken", ""
        if name not in self.before:
            self.prepare(name, directory)
            return None
        found = self.object_hash(name, directory)
        if found is None:
            return "broken", ""
        if found == self.before[name]:
            return "same", ""
        failed = None
        for pattern, names in HOST:
            if not failed and re.fullmatch(pattern, name):
                failed = self.host(names)
        if directory and not failed:
            failed = self.notices(name, directory)
        return ("killed", os.path.basename(failed)) if failed else ("survived", "")

    def mutate(self, name, text, mutant):
        changed = list(text)
        changed[mutant[0]] = mutant[1]
        path = os.path.join(self.dir, name)
        if name not in self.before:
            self.test(name)
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.writelines(changed)
            return self.test(name)
        finally:
            with open(path, "w", encoding="utf-8") as f:
                f.writelines(text)


def in_turn(files, seed):
    """(file, text, mutant), the files taking turns."""
    chance = random.Random(seed)
    every = {}
    for name in files:
        with open(os.path.join(ROOT, name), encoding="utf-8") as f:
            text = f.readlines()
        found = sorted(set(mutants(text)))
        chance.shuffle(found)
        if found:
            every[name] = (text, found)
    for turn in range(max((len(m) for _, m in every.values()), default=0)):
        for name, (text, found) in every.items():
            if turn < len(found):
                yield name, text, found[turn]


def group(name):
    return "the loader" if name.startswith("libneuron") else "/".join(name.split("/")[:2])


def report(counts):
    """Print the scores; False if one is too low."""
    bad = False
    groups = {}
    print(f"# {'file':32} killed survived broken same  score")
    for name, count in sorted(counts.items()):
        tried = count["killed"] + count["survived"]
        total = groups.setdefault(group(name), [0, 0])
        total[0] += count["killed"]
        total[1] += tried
        score = f"{100 * count['killed'] / tried:5.1f}" if tried else "    -"
        print(f"# {name:32} {count['killed']:6} {count['survived']:8} {count['broken']:6} "
              f"{count['same']:4}  {score}")
    for name, (killed, tried) in groups.items():
        score = 100 * killed / tried if tried else 0
        good = score >= WANTED
        bad |= not good
        print(f"{'ok' if good else 'not ok'} - {name}: {killed} of {tried} mutants noticed, {score:.1f} %")
    return not bad


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seconds", type=int, default=1800)
    parser.add_argument("--count", type=int, default=1000000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()

    os.chdir(ROOT)
    files = args.files or sorted({f for pattern in PATTERNS for f in glob.glob(pattern)})
    files = [f for f in files if f not in TESTS]
    queue = in_turn(files, args.seed)
    if args.list:
        for name, _, (number, line) in queue:
            print(f"{name}:{number + 1}: {line.strip()}")
        return 0

    deadline = time.monotonic() + args.seconds
    counts = {}
    lock = threading.Lock()

    def enough(name):
        return sum(count["killed"] + count["survived"] for other, count in counts.items()
                   if group(other) == group(name)) >= args.count

    def work(number):
        worker = Worker(number)
        try:
            while time.monotonic() < deadline:
                with lock:
                    name, text, mutant = next(queue, (None, None, None))
                if not name:
                    break
                if enough(name):
                    continue
                result, by = worker.mutate(name, text, mutant)
                counts.setdefault(name, dict.fromkeys(("killed", "survived", "same", "broken"), 0))
                counts[name][result] += 1
                where = f"{name}:{mutant[0] + 1}"
                if result == "killed":
                    print(f"# {by} notices {where}: {mutant[1].strip()}", flush=True)
                elif result == "survived":
                    print(f"survived: {where}\n  - {text[mutant[0]].strip()}\n"
                          f"  + {mutant[1].strip()}", flush=True)
        finally:
            worker.close()

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for future in [pool.submit(work, n) for n in range(args.jobs)]:
            future.result()
    return 0 if report(counts) else 1


if __name__ == "__main__":
    sys.exit(main())
