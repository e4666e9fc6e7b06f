# SPDX-License-Identifier: Apache-2.0
"""The service of the package kelp under a real systemd, which systemd-nspawn boots in a fresh Debian 12.

    sudo python3 tests/packaging/test_systemd.py
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

import documented
import roots

PATIENCE_S = 60


def missing():
    """Returns why systemd cannot be booted, or None."""
    if shutil.which("systemd-nspawn") is None:
        return "systemd-nspawn is not installed"
    return roots.missing()


class Service(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.system = roots.System("bookworm")
        cls.addClassCleanup(cls.system.__exit__)
        for name in ("kelp", "libkelp0.1", "libkelp-server"):
            path = glob.glob(os.path.join(roots.ROOT, "build", "deb", f"{name}_*.deb"))[0]
            cls.system.copy(path, "/srv/deb/" + os.path.basename(path))
        cls.system.run("apt-get install -y --no-install-recommends systemd systemd-sysv dbus curl sudo /srv/deb/*.deb")
        cls.system.copy(os.path.join(roots.ROOT, "examples"), "/srv/clone/examples")
        cls.log = open(os.path.join(cls.system.path, "boot.log"), "wb")
        cls.nspawn = subprocess.Popen(["systemd-nspawn", "--register=no", "--keep-unit", "--private-network", "-D", cls.system.path, "--boot",
                                       "--console=pipe"], stdin=subprocess.DEVNULL, stdout=cls.log, stderr=cls.log)
        cls.addClassCleanup(cls.stop)
        deadline = time.monotonic() + PATIENCE_S
        while cls.inside("systemctl is-system-running", check=False).stdout.strip() not in ("running", "degraded"):
            if cls.nspawn.poll() is not None or time.monotonic() > deadline:
                raise unittest.SkipTest("systemd does not boot here")
            time.sleep(0.2)

    @classmethod
    def stop(cls):
        cls.nspawn.kill()
        cls.nspawn.wait()
        cls.log.close()

    @classmethod
    def inside(cls, script, check=True):
        """Runs a script of sh in the booted system."""
        children = subprocess.run(["pgrep", "-P", str(cls.nspawn.pid)], capture_output=True, text=True, check=False).stdout.split()
        if not children:
            return subprocess.CompletedProcess(script, 1, "", "not booted")
        done = subprocess.run(["nsenter", "--target", children[0], "--all", "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/srv", "/bin/sh",
                               "-euc", script], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, check=False)
        if check and done.returncode != 0:
            journal = cls.inside("journalctl -u kelp --no-pager | tail -n 30", check=False).stdout
            raise AssertionError(f"exit code {done.returncode} of {script}\n{done.stdout}{done.stderr}{journal}")
        return done

    def show(self, name, unit="kelp"):
        return self.inside(f"systemctl show --value -p {name} {unit}").stdout.strip()

    def wait_until(self, condition):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)

    def test_1_documented_commands(self):
        self.assertEqual(self.show("ActiveState"), "inactive", "the service does not start before there are models")
        text = self.inside("cd /srv/clone\n" + documented.blocks("deployment.md", "systemd")[0]).stdout
        self.assertIn("ready", text)
        self.assertEqual(self.show("ActiveState"), "active")
        self.assertEqual(self.show("StatusText"), "Serving 1 of 1 models")
        user = int(self.inside("stat -c %u /proc/$(systemctl show --value -p MainPID kelp)").stdout)
        self.assertTrue(61184 <= user <= 65519, f"{user} is not a dynamic user")

    def test_2_sandbox(self):
        pid = self.show("MainPID")
        status = self.inside(f"cat /proc/{pid}/status").stdout
        for line in (r"CapEff:\t0+$", r"NoNewPrivs:\t1$", r"Seccomp:\t2$"):
            self.assertRegex(status, re.compile("^" + line, re.M))
        text = self.inside("systemd-analyze security --no-pager kelp.service | tail -n 1").stdout
        self.assertLessEqual(float(re.search(r"kelp.service: ([\d.]+)", text).group(1)), 1.4)
        self.assertEqual(self.inside("curl -sS -o /dev/null -w '%{http_code}' localhost:8000/v2/models/digits/infer -d @/srv/clone/examples/requests/digits.json").stdout,
                         "200")

    def test_3_watchdog(self):
        """A process that does not respond is killed and started again."""
        self.inside("mkdir -p /run/systemd/system/kelp.service.d && printf '[Service]\\nWatchdogSec=1\\n' >/run/systemd/system/kelp.service.d/test.conf && "
                    "systemctl daemon-reload && systemctl restart kelp")
        pid = self.show("MainPID")
        time.sleep(2.5)
        self.assertEqual(self.show("MainPID"), pid, "the server responds to the watchdog")
        self.inside(f"kill -STOP {pid}")
        self.wait_until(lambda: self.show("MainPID") not in (pid, "0") and self.show("ActiveState") == "active")
        self.inside("kelp health")
        self.inside("rm /run/systemd/system/kelp.service.d/test.conf && systemctl daemon-reload && systemctl restart kelp")

    def test_4_socket(self):
        """Connections wait while the server restarts."""
        self.inside("systemctl stop kelp")
        self.inside(documented.block("deployment.md", "Socket activation"))
        self.inside("kelp health")
        self.assertEqual(self.inside("""
            (for i in $(seq 100); do curl -sS -o /dev/null -w '%{http_code}\\n' localhost:8000/v2/health/live || echo failed; done) >/tmp/codes &
            systemctl restart kelp
            wait
            sort -u /tmp/codes
        """).stdout, "200\n")
        self.inside("systemctl stop kelp && kelp health --timeout-ms 10000")
        self.assertEqual(self.show("ActiveState"), "active", "the first connection starts the server")

    def test_5_failed_start(self):
        self.inside("systemctl stop kelp.socket kelp && sed -i 's#/var/lib/kelp/models#/var/lib/absent#' /etc/kelp/kelp.env && systemctl reset-failed")
        self.assertNotEqual(self.inside("systemctl start kelp", check=False).returncode, 0)
        self.assertIn("/var/lib/absent", self.inside("journalctl -u kelp --no-pager").stdout)


if __name__ == "__main__":
    reason = missing()
    if reason is not None:
        print(reason)
        sys.exit(77)
    unittest.main(verbosity=2)
