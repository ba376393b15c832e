"""readme_test.py SOURCE PROGRAMS…: what README.md and compiler/tools/README.md tell a newcomer to type does what they say."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, PROGRAMS = pathlib.Path(sys.argv[1]), [pathlib.Path(p) for p in sys.argv[2:]]
NVRTC = SOURCE / "build/nvrtc"  # where tests/run.sh and the demo fetch it to


def blocks(readme):
    """Its indented blocks: lists of commands."""
    text = (SOURCE / readme).read_text()
    return [re.findall(r"^    (.*)$", block, re.MULTILINE) for block in re.findall(r"(?:^    .*\n)+", text, re.MULTILINE)]


class ReadmeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "tests").symlink_to(SOURCE / "tests")
        programs = self.folder / "build/release/bin"
        programs.mkdir(parents=True)
        for program in PROGRAMS:
            (programs / program.name).symlink_to(program)
        (self.folder / "graph.fir").write_text((SOURCE / "tests/data/graphs/add.fir").read_text())

    def type(self, commands):
        """Runs them as one script of bash, up to the first that fails; what it printed."""
        script = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\nPATH=$PWD/build/release/bin:$PATH\n" + "\n".join(commands)
        script = script.replace("/tmp/fusiond", str(self.folder / "fusiond"))
        done = subprocess.run(["bash", "-e", "-c", script], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=300, check=False)
        self.assertEqual(done.returncode, 0, script + "\n" + done.stdout)
        return done.stdout

    def test_use_it(self):
        block, = [b for b in blocks("README.md") if b[0].startswith("export FUSIOND_SOCKETS=")]
        if NVRTC.exists():
            block = [re.sub(r"(bin/fusiond .*) &", rf"\1 --nvrtc-folder={NVRTC} --nvrtc-any-owner &", line) for line in block]
        output = self.type(block)
        for said in ("source      compiled", "output 0  f32[1024] =", "state       SERVING"):
            self.assertIn(said, output)

    def test_fusiond_opt(self):
        line, = [line for block in blocks("README.md") for line in block if "fusiond-opt" in line]
        self.assertIn("__global__", self.type([line]))
        block, = [b for b in blocks("compiler/tools/README.md") if b[0].startswith("fusiond-opt")]
        self.assertRegex(self.type(block), r"(?s)softmax|sum.*\n[0-9a-f]{64}\nvalid\n$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
