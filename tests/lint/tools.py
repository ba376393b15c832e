"""Lints that run a tool: clang-format, the compiler, bash. Each takes a Tree and returns its findings."""
import concurrent.futures
import json
import os
import shlex
import shutil
import subprocess

from tree import CXX


def _run(command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def format_clean(tree):
    """clang-format 14 would change nothing."""
    tool = shutil.which("clang-format-14")
    if tool is None:
        return ["clang-format-14 is not installed"]
    files = tree.select(*CXX)
    batches = [files[i:i + 20] for i in range(0, len(files), 20)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda batch: _run([tool, "--dry-run", *batch], tree.root), batches)
        return [line for r in results for line in r.stderr.splitlines() if "[-Wclang-format-violations]" in line
                or "error:" in line]


def headers(tree, build):
    """A header without a .cc of its name compiles alone, with the flags of a source near it."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    for entry in commands:
        entry["name"] = os.path.relpath(entry["file"], tree.root)

    def check(header):
        nearest = max(commands, key=lambda e: len(os.path.commonprefix([e["name"], header])))
        flags, skip = [], False
        for word in shlex.split(nearest["command"]):
            if skip or word == "-c":
                skip = False
            elif word in ("-o", "-MF", "-MT", "-MQ"):
                skip = True
            elif word != nearest["file"] and not word.startswith("-M") and not word.endswith("ccache"):
                flags.append(word)
        result = _run([*flags, "-fsyntax-only", "-Wno-pragma-once-outside-header", "-Wno-unused-function",
                       "-x", "c++", os.path.join(tree.root, header)], nearest["directory"])
        errors = [line for line in result.stderr.splitlines() if "error:" in line]
        return [f"{header}:1: does not compile alone: {errors[0] if errors else result.stderr}"] if result.returncode else []

    present = set(tree.files)
    alone = [h for h in tree.select(".h") if h[:-len(".h")] + ".cc" not in present]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [finding for findings in pool.map(check, alone) for finding in findings]


def scripts(tree):
    """Every shell script parses, every Python file compiles."""
    findings = []
    for name in tree.files:
        text = tree.text(name) if name.endswith((".sh", ".py")) or name == ".ci/run" else ""
        if name.endswith(".py"):
            try:
                compile(text, name, "exec")
            except SyntaxError as error:
                findings.append(f"{name}:{error.lineno}: {error.msg}")
        elif text:
            findings += _run(["bash", "-n", name], tree.root).stderr.splitlines()
    return findings
