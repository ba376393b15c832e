"""lib_test.py: who installs packages, and what is said where nobody can: deploy/lib.sh on a machine of stand-ins."""
import os
import pathlib
import pty
import shutil
import subprocess
import tempfile
import unittest

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
# A user who must give sudo a password; nothing is installed.
STAND_INS = {
    "id": "echo 1000",
    "dpkg-query": "exit 1",
    "apt-get": 'echo "apt-get $*" >>"$LOG"',
    "sudo": '[ "$1" != -n ] || exit 1; : </dev/tty || exit 1; echo "sudo" >>"$LOG"; exec "$@"',
}


class LibTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "deploy").mkdir()
        for name in ("lib.sh", "packages.txt"):
            shutil.copy(DEPLOY / name, self.root / "deploy")
        (self.root / "bin").mkdir()
        for name, text in STAND_INS.items():
            program = self.root / "bin" / name
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
        self.log = self.root / "log"
        self.environment = {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}", "LOG": str(self.log)}

    def install(self, **options):
        """(exit status, output) of install_packages."""
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", f". {self.root}/deploy/lib.sh; install_packages run; echo went on"],
                              env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
                              start_new_session=True, **options)
        return done.returncode, done.stdout

    def logged(self):
        return self.log.read_text() if self.log.exists() else ""

    def test_sudo_asks_on_the_terminal(self):
        master, terminal = pty.openpty()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, terminal)
        # The first terminal that the leader of a session opens becomes its own.
        status, output = self.install(preexec_fn=lambda: os.close(os.open(os.ttyname(terminal), os.O_RDWR)), stdin=subprocess.DEVNULL)
        self.assertEqual((status, output.splitlines()[-1]), (0, "went on"))
        self.assertIn("sudo\napt-get", self.logged())
        self.assertIn("install --no-install-recommends build-essential", self.logged())

    def test_without_a_terminal_the_line_is_printed(self):
        status, output = self.install(stdin=subprocess.DEVNULL)
        self.assertEqual((status, output.splitlines()[-1]), (0, "went on"))
        self.assertEqual(self.logged(), "")
        self.assertIn("sudo apt-get update && sudo apt-get install --no-install-recommends build-essential cmake", output)


if __name__ == "__main__":
    unittest.main()
