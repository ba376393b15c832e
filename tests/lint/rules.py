"""Lints that read text. Each takes a Tree and returns its findings as "path:line: what is wrong"."""
import fnmatch
import os
import re

from tree import CXX

TOP_LEVEL = {"CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE",
             "proto", "server", "client", "compiler", "runtime", "tests", "deploy"}


def top_level(tree):
    """Nothing stands at the top but what the source map names, and dotfiles."""
    entries = sorted({f.split("/")[0] for f in tree.files})
    return [f"{e}: not an agreed top-level entry" for e in entries
            if e not in TOP_LEVEL and not e.startswith(".")]


class IncludeTable:
    """include_table.txt, with each target's permissions closed over what its permissions may include."""

    def __init__(self, text):
        self.patterns, self.direct, self.vendors = [], {"base": set()}, []
        for line in text.splitlines():
            words = line.split("#")[0].split()
            if words and words[0] == "vendor":
                self.vendors += [(prefix, words[1]) for prefix in words[2:]]
            elif words and words[0] == "target":
                split = words.index(":")
                self.patterns += [(pattern, words[1]) for pattern in words[2:split]]
                self.direct[words[1]] = set(words[split + 1:])
        known = set(self.direct) | {name for _, name in self.vendors} | {"*"}
        unknown = set().union(*self.direct.values()) - known
        if unknown:
            raise ValueError(f"include_table.txt names {sorted(unknown)}, which nothing defines")

    def target_of(self, path):
        return next((t for pattern, t in self.patterns if fnmatch.fnmatchcase(path, pattern)), None)

    def vendor_of(self, path):
        return next((v for prefix, v in self.vendors if path.startswith(prefix)), None)

    def allowed(self, target):
        seen, queue = set(), [target, "base"]
        while queue:
            name = queue.pop()
            if name not in seen:
                seen.add(name)
                queue += self.direct.get(name, ())
        return seen


INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(tree, table_text=None):
    """Every include is rooted and allowed by include_table.txt."""
    table = IncludeTable(table_text or tree.text("tests/lint/include_table.txt"))
    findings = []
    for name in tree.select(*CXX):
        source = table.target_of(name)
        if source is None:
            findings.append(f"{name}:1: no line of include_table.txt covers this file")
            continue
        allowed = table.allowed(source)
        for number, line in tree.lines(name):
            match = INCLUDE.match(line)
            if not match:
                continue
            kind, path = match.groups()
            wanted = table.target_of(path) or table.vendor_of(path)
            if wanted is None and kind == '"':
                findings.append(f'{name}:{number}: "{path}" is not rooted at the top of the tree')
            elif wanted is not None and wanted not in allowed and "*" not in allowed:
                findings.append(f"{name}:{number}: {source} may not include {wanted} ({path})")
    return findings


# Hashes every file there is, built or not; builds nothing.
GLOBS_ALLOWED = {"compiler/version.cmake"}


def sources(tree):
    """Each source is listed in a CMake file of its folder or above; each CMakeLists.txt is reached; nothing globs."""
    findings, lists, words = [], [], {}
    for name in tree.files:
        if os.path.basename(name) == "CMakeLists.txt" or name.endswith(".cmake"):
            text = "\n".join(line.split("#")[0] for _, line in tree.lines(name))
            lists.append(name)
            words.setdefault(os.path.dirname(name), set()).update(re.split(r'[\s()"]+', text))
            globs = re.search(r"\bfile\s*\(\s*GLOB", text, re.IGNORECASE) or "aux_source_directory" in text
            if globs and name not in GLOBS_ALLOWED:
                findings.append(f"{name}:1: globs; list the sources")

    def listed(path):
        folder = os.path.dirname(path)
        while True:
            if {path, os.path.relpath(path, folder or ".")} & words.get(folder, set()):
                return True
            if not folder:
                return False
            folder = os.path.dirname(folder)

    included = {m.group(2) for name in tree.select(*CXX) for _, line in tree.lines(name) if (m := INCLUDE.match(line))}
    for name in tree.select(".cc", ".cuh", ".proto"):
        if not listed(name) and not (name.endswith(".cuh") and name in included):
            findings.append(f"{name}:1: listed in no CMake file")
    for name in lists:
        folder = os.path.dirname(name)
        if folder and os.path.basename(name) == "CMakeLists.txt" and not listed(folder):
            findings.append(f"{name}:1: no add_subdirectory reaches this folder")
    return findings


RAW_LOCK = re.compile(r"\babsl::(Mutex|MutexLock|CondVar|ReaderMutexLock|WriterMutexLock)\b|\bpthread_mutex_t\b"
                      r"|\bstd::(\w*mutex|condition_variable\w*|lock_guard|unique_lock|scoped_lock|shared_lock)\b")


def locks(tree):
    """Locks are base::Mutex, which ThreadSanitizer and -Wthread-safety both understand."""
    return [f"{name}:{number}: use base::Mutex (runtime/base/mutex.h)"
            for name in tree.select(".h", ".cc") if not name.startswith("runtime/base/")
            for number, line in tree.lines(name) if RAW_LOCK.search(line.split("//")[0])]


# Split so that this file does not hold the words it looks for.
WORDS = [
    (re.compile(r"/(wo" r"rk|fa" r"rm|ro" r"ot|ho" r"me)/"), "a path of one machine"),
    (re.compile(r"\.\./sha" r"red\b"), "a path outside the repository"),
    (re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b"), "a mark of unfinished work"),
    (re.compile(r"\bDIS" r"ABLED_|\bnot implemented" r" yet\b"), "a mark of unfinished work"),
]


def words(tree):
    """Nothing names a machine's folders or work left undone."""
    findings = []
    for name in tree.files:
        if "\0" in (text := tree.text(name)) or name == ".gitignore":
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            findings += [f"{name}:{number}: {why}: {m.group(0)}" for word, why in WORDS if (m := word.search(line))]
    return findings


def own_header_first(tree):
    """x.cc includes x.h before anything else, which proves that x.h compiles alone."""
    findings, present = [], set(tree.files)
    for name in tree.select(".cc"):
        header = name[:-len(".cc")] + ".h"
        if header not in present:
            continue
        first = next((m.group(2) for _, line in tree.lines(name) if (m := INCLUDE.match(line))), None)
        if first != header:
            findings.append(f'{name}:1: the first include must be "{header}", not {first}')
    return findings
