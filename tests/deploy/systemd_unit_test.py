"""systemd_unit_test.py FUSIOND: what systemd says about our units, and the program about the unit's command line. Skips (77) without systemd-analyze."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

UNIT = pathlib.Path(__file__).resolve().parents[2] / "deploy/systemd/fusiond.service"
MAX_EXPOSURE = 2.0  # of 10; what is open is argued in the unit


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


class SystemdUnitTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # As installed, but with this build's program.
        self.unit = pathlib.Path(folder.name) / UNIT.name
        self.unit.write_text(re.sub(r"/usr/bin/fusiond\b", PROGRAM, UNIT.read_text()))
        self.sockets = [shutil.copy(socket, folder.name) for socket in sorted(UNIT.parent.glob("*.socket"))]

    def test_verify_finds_nothing(self):
        self.assertEqual(len(self.sockets), 2)
        done = run("systemd-analyze", "verify", "--man=no", self.unit, *self.sockets)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_exposure_is_low(self):
        done = run("systemd-analyze", "security", "--offline=true", self.unit)
        self.assertEqual(done.returncode, 0, done.stderr)
        exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
        self.assertLessEqual(float(exposure.group(1)), MAX_EXPOSURE)

    def test_command_line_is_ours(self):
        command = re.search(r"^ExecStart=(.*)$", self.unit.read_text(), re.MULTILINE).group(1).split()
        done = run(*command, "--check-config")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    if shutil.which("systemd-analyze") is None:
        print("skipped: there is no systemd-analyze here")
        sys.exit(77)
    unittest.main()
