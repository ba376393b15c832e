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
    "uname": "echo x86_64",
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

    def install(self, nvrtc="/usr/lib/libnvrtc.so.13", **options):
        """(exit status, output) of what demo.sh and run.sh do before they build, on a machine with that NVRTC and without pip."""
        script = f"""
. {self.root}/deploy/lib.sh
nvrtc_of_this_machine() {{ [ -n "{nvrtc}" ] && echo "{nvrtc}"; }}
has_pip() {{ return 1; }}
install_packages run
install_nvrtc
echo went on"""
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script],
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

    def test_without_a_terminal_one_line_is_printed_that_installs_all(self):
        status, output = self.install(nvrtc="", stdin=subprocess.DEVNULL)
        self.assertEqual((status, output.splitlines()[-1]), (0, "went on"))
        self.assertEqual(self.logged(), "")
        self.assertNotIn("installing", output)
        line, = [line for line in output.splitlines() if "apt-get" in line]
        self.assertTrue(line.startswith("sudo apt-get update && sudo apt-get install --no-install-recommends build-essential "), line)
        packages = line.split()[7:]
        self.assertEqual(sorted(set(packages)), sorted(packages))
        self.assertLessEqual({"cmake", "libgrpc++-dev", "python3", "python3-pip"}, set(packages))
        self.run_as_said(line)
        self.assertIn("python3-pip", self.logged())

    def run_as_said(self, line):
        """The line does what it says once sudo asks for nothing."""
        (self.root / "bin" / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
        subprocess.run(["bash", "-c", line], env=self.environment, check=True)

    def test_without_sudo_the_line_is_for_root(self):
        (self.root / "bin" / "sudo").unlink()
        programs = self.root / "programs"  # of this machine, less its sudo
        programs.mkdir()
        for name in ("bash", "dirname", "awk", "sort", "grep", "mkdir", "env", "cat", "tail"):
            (programs / name).symlink_to(shutil.which(name))
        self.environment["PATH"] = f"{self.root}/bin:{programs}"
        _, output = self.install(stdin=subprocess.DEVNULL)
        line, = [line for line in output.splitlines() if "apt-get" in line]
        self.assertTrue(line.startswith("apt-get update && apt-get install --no-install-recommends build-essential "), line)
        self.assertNotIn("python3", line)

    def test_where_an_nvrtc_is_nothing_is_installed_to_fetch_one(self):
        _, output = self.install(stdin=subprocess.DEVNULL)
        self.assertNotIn("python3-pip", output)


if __name__ == "__main__":
    unittest.main()
