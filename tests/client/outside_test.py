"""outside_test.py SOURCE COMPILER: a project that is not ours builds the README's example as client/cc/README.md says, without a flag of
ours, and keeps warnings that we would not.

Only the example itself is compiled: building what it links to again would take minutes and show nothing new."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, COMPILER = pathlib.Path(sys.argv[1]), sys.argv[2]
WARNED_OF = "\nint Answer() {\n  int unused;\n  return 42;\n}\n"


class OutsideTest(unittest.TestCase):
    def run_in(self, folder, *command):
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_example_builds_in_a_project_of_others(self):
        readme = (SOURCE / "client/cc/README.md").read_text()
        project, = re.findall(r"```cmake\n(.*?)```\n", readme, re.DOTALL)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "CMakeLists.txt").write_text(project)
            (folder / "fusiond").symlink_to(SOURCE)
            (folder / "silu_gate.cc").write_text((SOURCE / "client/cc/examples/silu_gate.cc").read_text() + WARNED_OF)
            self.run_in(folder, "cmake", "-S", ".", "-B", "build", "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={COMPILER}",
                        "-DCMAKE_CXX_FLAGS=-Wall")
            output = self.run_in(folder, "ninja", "-C", "build", "CMakeFiles/silu_gate.dir/silu_gate.cc.o")
            self.assertIn("unused", output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
