#!/usr/bin/env python3
"""Merges the JSON files of one run into the results that the repository keeps; nothing else writes there.

usage: collect.py RUN_DIR [--results DIR]

RUN_DIR holds what run_gpu.sh left: PROGRAM.json of each benchmark program that ran. Each file of results is made anew from the programs
that belong to it; where one of them is missing or broken, that file stays as it is and the exit status is 1. All files of a run must name
the same commit, GPU and driver.
"""
import argparse
import json
import pathlib
import re
import sys

# Which programs make a file of results, and which of their rows belong there.
FILES = {
    "h200/kernels.json": {"kernels_benchmark": r"kernel/"},
    "h200/compile.json": {"compile_benchmark": r"(compile|rpc)/"},
    "h200/launch.json": {"launch_benchmark": r"launch/", "ring_benchmark": r"launch/"},
}
KEPT_CONTEXT = ("date", "commit", "command", "gpu", "driver", "cuda", "host", "copy_gbps", "num_cpus", "library_build_type")
SAME = ("commit", "gpu", "driver")


def read(path):
    """The run of one program, or the reason why there is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return data["context"], data["benchmarks"]
    except OSError as error:
        return f"{path.name}: {error.strerror}"
    except (ValueError, KeyError) as error:
        return f"{path.name}: not a benchmark's JSON ({error})"


def merge_contexts(contexts):
    """One context; commands are joined, and what must be one thing is checked to be."""
    merged = {}
    for name, context in contexts.items():
        for key in SAME:
            if key in context and merged.get(key, context[key]) != context[key]:
                raise ValueError(f"{name}: {key} is {context[key]}, elsewhere {merged[key]}")
        for key in KEPT_CONTEXT:
            if key in context and key != "command":
                merged.setdefault(key, context[key])
    # Folders of the host that ran it say nothing.
    commands = [re.sub(r"(^|=)/\S*/", r"\1", c["command"]) for c in contexts.values() if c.get("command")]
    merged["command"] = "; ".join(commands)
    missing = [key for key in SAME if not merged.get(key)]
    if missing:
        raise ValueError(f"the context lacks {', '.join(missing)}")
    return merged


def collect(run, programs):
    """The content of one file of results."""
    runs = {name: read(run / f"{name}.json") for name in programs}
    broken = [r for r in runs.values() if isinstance(r, str)]
    if broken:
        raise ValueError("; ".join(broken))
    rows = [row for name, (_, benchmarks) in runs.items() for row in benchmarks if re.match(programs[name], row["name"])]
    if not rows:
        raise ValueError("no rows")
    return {"context": merge_contexts({name: context for name, (context, _) in runs.items()}), "benchmarks": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path(__file__).parent / "results")
    args = parser.parse_args()
    status = 0
    for name, programs in FILES.items():
        try:
            content = collect(args.run, programs)
        except ValueError as error:
            print(f"{name}: left as it is: {error}")
            status = 1
            continue
        path = args.results / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        errors = [row["name"] for row in content["benchmarks"] if row.get("error_occurred")]
        print(f"{name}: {len(content['benchmarks'])} rows" + (f", {len(errors)} of them errors: {', '.join(errors)}" if errors else ""))
    return status


if __name__ == "__main__":
    sys.exit(main())
