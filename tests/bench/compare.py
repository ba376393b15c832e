#!/usr/bin/env python3
"""Compares two runs of the benchmarks, row by row and case by case.

usage: compare.py OLD NEW [--most PERCENT]

OLD and NEW are result files, or folders whose files are compared by name. A row's ratio is NEW / OLD of its time: of a GPU kernel the time
over the floor that the same run measured, so that two hosts can be compared; of anything else the median (p50_us), else real_time. Of each
case, a row's name up to its dtype, and of all rows the geometric mean is printed.

Exit status: 0, or 1 if a row is slower by more than PERCENT (5), is an error now and was none, or is gone; 2 if a file cannot be read.
"""
import argparse
import json
import math
import pathlib
import re
import sys

# What Google Benchmark appends to a row's name.
SUFFIX = re.compile(r"/(iterations:\d+|manual_time|real_time|threads:\d+)")
DTYPE = re.compile(r"/(f16|bf16|f32|f64|i32|i64|bool)(/|$)")


def rows_of(path):
    """Name → time, or None for an error row."""
    rows = {}
    for row in json.loads(path.read_text(encoding="utf-8"))["benchmarks"]:
        rows[SUFFIX.sub("", row["name"])] = None if row.get("error_occurred") else time_of(row)
    return rows


def time_of(row):
    if row.get("gpu_us") and row.get("floor_us"):
        return row["gpu_us"] / row["floor_us"]
    return row.get("p50_us") or row["real_time"]


def files_of(old, new):
    """Pairs of files to compare; what only one side has is compared with nothing."""
    if old.is_file() and new.is_file():
        return [(old, new)]
    names = sorted({p.relative_to(side) for side in (old, new) for p in side.rglob("*.json")})
    return [(old / name, new / name) for name in names]


def geomean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def case_of(name):
    return name[: found.start()] if (found := DTYPE.search(name)) else name


def compare(old, new, most):
    """Prints the comparison; the names of rows that slid, broke or went."""
    worse, cases = [], {}
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if name not in old:
            print(f"       new  {name}")
        elif name not in new:
            print(f"      gone  {name}")
            worse.append(f"{name} is gone")
        elif after is None:
            print(f"     error  {name}")
            if before is not None:
                worse.append(f"{name} is an error")
        elif before is None:
            print(f"    mended  {name}")
        else:
            ratio = after / before
            cases.setdefault(case_of(name), []).append(ratio)
            slid = ratio > 1 + most / 100
            print(f"{ratio:10.3f}{' !' if slid else '  '}{name}: {before:.4g} → {after:.4g}")
            if slid:
                worse.append(f"{name} takes {ratio:.3f} of its time before")
    for case, ratios in cases.items():
        if len(ratios) > 1:
            print(f"{geomean(ratios):10.3f}  geometric mean of {len(ratios)} rows: {case}")
    if cases:
        ratios = [ratio for each in cases.values() for ratio in each]
        print(f"{geomean(ratios):10.3f}  geometric mean of all {len(ratios)} rows")
    return worse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--most", type=float, default=5, metavar="PERCENT", help="slower by more than this is a slide")
    args = parser.parse_args()
    old, new = {}, {}
    try:
        for before, after in files_of(args.old, args.new):
            for path, rows in ((before, old), (after, new)):
                if path.exists():
                    rows.update(rows_of(path))
        if not old or not new:
            raise ValueError(f"{args.new if old else args.old}: no rows")
    except (OSError, ValueError, KeyError) as error:
        print(f"compare.py: {error!r}" if isinstance(error, KeyError) else f"compare.py: {error}", file=sys.stderr)
        return 2
    worse = compare(old, new, args.most)
    for line in worse:
        print(f"worse: {line}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
