"""systemd_boot_test.py FUSIOND FUSIONCTL: the service under a systemd that has booted, installed by the README's own commands.

The machine is a container over this one's files: what it writes goes to memory, and ends with it. Skips (77) where none can be booted: that takes root,
systemd-nspawn and overlayfs. Needs no NVRTC: graphs are compiled for the CPU device.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / "deploy/systemd/README.md"
GRAPH = "/checkout/tests/data/graphs/add_1k.fir"
OVERRIDE = "/etc/systemd/system/fusiond.service.d/override.conf"
# LeakSanitizer, where this build has it, needs ptrace, which the unit forbids.
ENVIRONMENT = "[Service]\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n"
# Its own namespace of mounts, so that nothing is left behind. The checkout may be on another file system than /; the cache refuses overlayfs.
BOOT = """set -e
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/machine
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/machine
mkdir -p /mnt/machine/checkout /mnt/machine/programs
mount -t tmpfs tmpfs /run
exec systemd-nspawn -q --register=no --keep-unit --private-network --tmpfs=/var/lib/fusiond -M fusiond-test -D /mnt/machine --console=pipe \\
  --bind-ro="$1:/checkout" --bind-ro="$2:/programs/fusiond" --bind-ro="$3:/programs/fusionctl" --boot systemd.unit=basic.target"""


def commands(block):
    """The README's indented block of that number, as a script."""
    blocks = re.findall(r"(?:^    .*\n)+", README.read_text(), re.MULTILINE)
    return re.sub(r"^    ", "", blocks[block], flags=re.MULTILINE)


class Machine:
    def __init__(self):
        # It dies with this process.
        self.nspawn = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "sh", "-c", BOOT, "sh", ROOT, FUSIOND, FUSIONCTL],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.init = None

    def boot(self):
        """Whether it runs within a minute."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.nspawn.poll() is None:
            found = subprocess.run(["pgrep", "-P", str(self.nspawn.pid), "-x", "systemd"], capture_output=True, text=True, check=False)
            if found.stdout:
                self.init = found.stdout.strip()
                state = self.run("systemctl is-system-running --wait", check=False).stdout.strip()
                if state in ("running", "degraded"):
                    return True
            time.sleep(0.1)
        return False

    def run(self, script, check=True):
        done = subprocess.run(
            ["nsenter", "-t", self.init, "-m", "-p", "-n", "-u", "-i", "-C", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
             "bash", "-ec", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=180)
        if check and done.returncode != 0:
            raise AssertionError(f"{script}: status {done.returncode}\n{done.stdout}\n{self.run('journalctl -u fusiond --no-pager', False).stdout}")
        return done

    def end(self):
        """Returns what nspawn said."""
        if self.nspawn.poll() is None:
            self.nspawn.kill()
        return self.nspawn.communicate()[0]


class SystemdBootTest(unittest.TestCase):
    """In the order of their names, on one machine."""

    def run_there(self, script, check=True):
        return MACHINE.run(script, check).stdout.strip()

    def property(self, name):
        return self.run_there(f"systemctl show -p {name} --value fusiond")

    def as_user(self, user, command):
        return MACHINE.run(f"runuser -u {user} -- {command}", check=False)

    def override(self, text):
        self.run_there(f"mkdir -p $(dirname {OVERRIDE}); printf '%s' '{ENVIRONMENT}{text}' >{OVERRIDE}; systemctl daemon-reload")

    def source(self):
        return re.search(r"^source +(\S+)", self.as_user("alice", f"fusionctl compile {GRAPH} --target=cpu").stdout, re.MULTILINE).group(1)

    def wait_for_restart(self, restarts):
        self.run_there(f"until [ $(systemctl show -p NRestarts --value fusiond) = {restarts} ] && systemctl -q is-active fusiond; do sleep 0.1; done")

    def test_1_readme_installs_it(self):
        self.override("")
        self.run_there("useradd alice; useradd bob; mkdir -p /srv/built/build/release; cd /srv/built; ln -s /checkout/deploy .; ln -s /programs build/release/bin;"
                       + commands(0))
        status = self.run_there(commands(2).replace("SOMEBODY", "alice"))
        self.assertRegex(status, r"state +SERVING")
        self.assertEqual((self.property("Type"), self.property("ActiveState")), ("notify", "active"))
        self.assertEqual(self.run_there("systemd-analyze verify --man=no fusiond.service"), "")

    def test_2_its_group_may_use_it_and_nobody_else(self):
        ran = self.as_user("alice", f"fusionctl run {GRAPH} --target=cpu --check")
        self.assertEqual(ran.returncode, 0, ran.stdout)
        refused = self.as_user("bob", "fusionctl status")
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn("PERMISSION_DENIED", refused.stdout)

    def test_3_reload_keeps_the_process(self):
        before = self.property("MainPID")
        self.run_there("systemctl reload fusiond")
        self.run_there("until journalctl -u fusiond -o cat | grep -q 'looking for GPUs and NVRTC again'; do sleep 0.1; done")
        self.assertEqual(self.property("MainPID"), before)

    def test_4_a_killed_worker_is_a_warning_and_no_more(self):
        before = self.property("MainPID")
        self.run_there(f"pkill -KILL -P {before} -f role=worker")
        self.run_there("until journalctl -u fusiond -p warning -o cat | grep -q '^worker ended: .*KILL'; do sleep 0.1; done")
        self.assertEqual(self.property("MainPID"), before)
        self.assertNotIn("worker started", self.run_there("journalctl -u fusiond -p warning -o cat"))
        # Also where it is memory that ends; a control group of version 2 would be needed to try.
        self.assertEqual(self.property("OOMPolicy"), "continue")

    def test_5_killed_it_comes_back_with_its_cache(self):
        self.source()
        self.run_there("kill -KILL $(systemctl show -p MainPID --value fusiond)")
        self.wait_for_restart(1)
        self.assertEqual(self.source(), "disk")

    def test_6_hung_it_comes_back_with_its_cache(self):
        self.override("WatchdogSec=10\n")
        self.run_there("systemctl restart fusiond; kill -STOP $(systemctl show -p MainPID --value fusiond)")
        self.wait_for_restart(1)
        self.assertIn("Watchdog timeout", self.run_there("journalctl -u fusiond -o cat"))
        self.assertEqual(self.source(), "disk")

    def test_7_stop_ends_it_by_itself_and_keeps_the_cache(self):
        self.run_there("systemctl stop fusiond")
        self.assertEqual((self.property("Result"), self.property("ExecMainStatus")), ("success", "0"))
        self.run_there("[ ! -e /run/fusiond ] && [ -e /var/lib/fusiond/cache ] && ! pgrep -x fusiond")
        self.run_there("systemctl start fusiond")
        self.assertEqual(self.source(), "disk")

    def test_8_systemd_holds_the_sockets(self):
        self.run_there("cd /srv/built;" + commands(4))
        self.assertEqual(self.run_there("systemd-analyze verify --man=no fusiond.service fusiond-control.socket fusiond-channel.socket"), "")
        self.run_there("systemctl stop fusiond")
        self.assertEqual((self.property("Result"), self.property("ExecMainStatus")), ("success", "0"))
        self.run_there("[ -S /run/fusiond/control.sock ] && [ -S /run/fusiond/channel.sock ] && ! pgrep -x fusiond")
        self.assertIn("PERMISSION_DENIED", self.as_user("bob", "fusionctl status").stdout)
        self.assertEqual(self.property("ActiveState"), "inactive")
        self.assertEqual(self.source(), "disk")  # which has started it
        self.assertEqual(self.property("ActiveState"), "active")
        ran = self.as_user("alice", f"fusionctl run {GRAPH} --target=cpu --check")
        self.assertEqual(ran.returncode, 0, ran.stdout)

    def test_9_wrong_usage_is_not_tried_again(self):
        self.override("ExecStart=\nExecStart=/usr/bin/fusiond --no-such-flag\n")
        self.assertNotEqual(MACHINE.run("systemctl restart fusiond", check=False).returncode, 0)
        self.assertEqual((self.property("ActiveState"), self.property("ExecMainStatus"), self.property("NRestarts")), ("failed", "2", "0"))


if __name__ == "__main__":
    FUSIOND, FUSIONCTL = sys.argv[1:]
    del sys.argv[1:]
    if os.geteuid() != 0 or shutil.which("systemd-nspawn") is None:
        print("skipped: takes root and systemd-nspawn")
        sys.exit(77)
    MACHINE = Machine()
    try:
        if not MACHINE.boot():
            print("skipped: no container boots here:", MACHINE.end())
            sys.exit(77)
        ended = unittest.main(exit=False, failfast=True)
    finally:
        MACHINE.end()
    sys.exit(not ended.result.wasSuccessful())
