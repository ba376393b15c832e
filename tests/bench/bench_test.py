#!/usr/bin/env python3
"""The benchmark programs start on any machine and say what is missing; collect.py merges a run and refuses a broken one.

usage: bench_test.py FOLDER_OF_PROGRAMS
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAMS = pathlib.Path(sys.argv[1]).resolve()


class ProgramTest(unittest.TestCase):
    def rows(self, program, row):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out.json"
            done = subprocess.run([PROGRAMS / program, f"--benchmark_filter={row}", f"--benchmark_out={out}", "--benchmark_out_format=json",
                                   "--benchmark_context=commit=test"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            data = json.loads(out.read_text(encoding="utf-8"))
            self.assertEqual(data["context"]["commit"], "test")
            self.assertIn(program, data["context"]["command"])
            return data["benchmarks"]

    def check(self, program, row, counter):
        """One row: with its figures, or with the reason why it has none."""
        rows = self.rows(program, row)
        self.assertEqual(len(rows), 1)
        if rows[0].get("error_occurred"):
            self.assertRegex(rows[0]["error_message"], r"^[A-Z_]+: .{10,}")
        else:
            self.assertGreater(rows[0][counter], 0)

    def test_kernels_benchmark(self):
        self.check("kernels_benchmark", "kernel/add/", "gpu_us")

    def test_launch_benchmark(self):
        self.check("launch_benchmark", "launch/raw/launch/", "p50_us")

    def test_compile_benchmark(self):
        self.check("compile_benchmark", "rpc/bare", "p50_us")


class CompareTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compare(self, old, new, *flags):
        """old, new: lists of rows. The exit status and what was printed."""
        paths = [self.folder / name for name in ("old.json", "new.json")]
        for path, rows in zip(paths, (old, new)):
            path.write_text(json.dumps({"context": {}, "benchmarks": rows}), encoding="utf-8")
        done = subprocess.run([sys.executable, HERE / "compare.py", *paths, *flags], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    @staticmethod
    def kernel(case, gpu_us, floor_us=10.0):
        return {"name": f"kernel/{case}/iterations:25/manual_time", "gpu_us": gpu_us, "floor_us": floor_us, "real_time": gpu_us}

    def test_kernels_are_compared_by_their_floors(self):
        status, printed = self.compare([self.kernel("add/f32/8x8", 12.0), self.kernel("add/f32/9x9", 10.0)],
                                       [self.kernel("add/f32/8x8", 24.0, floor_us=20.0), self.kernel("add/f32/9x9", 10.4)])
        self.assertEqual(status, 0, printed)
        self.assertIn("1.000  kernel/add/f32/8x8: 1.2 → 1.2", printed)
        self.assertIn("1.020  geometric mean of 2 rows: kernel/add\n", printed)
        self.assertIn("1.020  geometric mean of all 2 rows", printed)

    def test_a_slide_fails(self):
        rows = [[{"name": "rpc/bare", "p50_us": p50, "real_time": 1}] for p50 in (100.0, 105.5)]
        status, printed = self.compare(*rows)
        self.assertEqual(status, 1)
        self.assertIn("worse: rpc/bare takes 1.055 of its time before", printed)
        self.assertEqual(self.compare(*rows, "--most=6")[0], 0)

    def test_errors_and_missing_rows_fail(self):
        fine, error = {"name": "rpc/bare", "real_time": 1.0}, {"name": "rpc/bare", "error_occurred": True, "error_message": "no"}
        other = {"name": "rpc/other", "real_time": 1.0}
        self.assertEqual(self.compare([fine, other], [error, other])[0], 1)
        self.assertEqual(self.compare([fine, other], [other])[0], 1)
        self.assertEqual(self.compare([error, other], [fine, other])[0], 0)
        self.assertEqual(self.compare([other], [fine, other])[0], 0)

    def test_what_is_no_run_is_said(self):
        self.assertEqual(self.compare([], [])[0], 2)
        (self.folder / "old.json").write_text("{", encoding="utf-8")
        done = subprocess.run([sys.executable, HERE / "compare.py", self.folder / "old.json", self.folder / "old.json"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("compare.py: ", done.stderr)


class CollectTest(unittest.TestCase):
    CONTEXT = {"date": "2026-01-01", "commit": "abc", "gpu": "NVIDIA H200", "driver": "580", "copy_gbps": "4100", "load_avg": [1]}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_dir, self.results = pathlib.Path(folder.name) / "run", pathlib.Path(folder.name) / "results"
        self.run_dir.mkdir()

    def write(self, program, rows, **context):
        data = {"context": {**self.CONTEXT, "command": f"/opt/bundle/{program} --out=/opt/out/x.json", **context}, "benchmarks": [{"name": r} for r in rows]}
        (self.run_dir / f"{program}.json").write_text(json.dumps(data), encoding="utf-8")

    def collect(self):
        done = subprocess.run([sys.executable, "-B", HERE / "collect.py", self.run_dir, "--results", self.results], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout + done.stderr

    def test_programs_of_one_file_are_merged(self):
        self.write("kernels_benchmark", ["kernel/add", "other"])
        self.write("compile_benchmark", ["rpc/bare"])
        self.write("launch_benchmark", ["launch/raw/launch"])
        self.write("ring_benchmark", ["launch/ring_roundtrip"])
        self.assertEqual(self.collect()[0], 0)
        launch = json.loads((self.results / "h200/launch.json").read_text(encoding="utf-8"))
        self.assertEqual([r["name"] for r in launch["benchmarks"]], ["launch/raw/launch", "launch/ring_roundtrip"])
        self.assertEqual(launch["context"]["command"], "launch_benchmark --out=x.json; ring_benchmark --out=x.json")
        self.assertNotIn("load_avg", launch["context"])
        kernels = json.loads((self.results / "h200/kernels.json").read_text(encoding="utf-8"))
        self.assertEqual([r["name"] for r in kernels["benchmarks"]], ["kernel/add"])

    def test_a_broken_run_changes_nothing(self):
        (self.results / "h200").mkdir(parents=True)
        kept = self.results / "h200/launch.json"
        kept.write_text("old", encoding="utf-8")
        self.write("launch_benchmark", ["launch/raw/launch"])
        self.write("ring_benchmark", ["launch/ring_roundtrip"], commit="another")
        code, output = self.collect()
        self.assertEqual(code, 1)
        self.assertIn("commit is another, elsewhere abc", output)
        self.assertIn("kernels_benchmark.json", output)
        self.assertEqual(kept.read_text(encoding="utf-8"), "old")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
