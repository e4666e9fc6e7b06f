# SPDX-License-Identifier: Apache-2.0
"""Fresh Debian systems in directories, made by mmdebstrap from this machine's mirror. Needs root."""
import os
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KEPT = os.path.join(ROOT, "build", "roots")
SUITES = {"bookworm": "12", "trixie": "13"}


def missing():
    """Returns why systems cannot be made, or None."""
    if os.geteuid() != 0:
        return "making a Debian system in a directory needs root"
    for program in ("mmdebstrap", "unshare", "dpkg-deb"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return None


def mirror():
    sites = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Origin: Debian", "Label: Debian"],
                           capture_output=True, text=True, check=True).stdout.split()
    if not sites:
        raise AssertionError("apt knows no mirror of Debian")
    return sites[0]


def archive(suite):
    """Returns an archive of a minimal system with apt, which later tests use again."""
    path = os.path.join(KEPT, f"{suite}.tar")
    if not os.path.exists(path):
        os.makedirs(KEPT, exist_ok=True)
        subprocess.run(["mmdebstrap", "--mode=root", "--variant=apt", "--include=ca-certificates", suite, path + ".new.tar", mirror()],
                       capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
        os.rename(path + ".new.tar", path)
    return path


class System:
    """A system in a directory, which is removed in the end."""

    def __init__(self, suite):
        self.path = os.path.join(KEPT, f"{suite}-{os.getpid()}")
        os.makedirs(self.path)
        subprocess.run(["tar", "-xf", archive(suite), "-C", self.path], check=True)
        for name in ("resolv.conf", "hosts"):
            if os.path.exists(f"/etc/{name}"):
                shutil.copy(f"/etc/{name}", os.path.join(self.path, "etc", name))
        # Apt's settings of this machine, such as a proxy.
        for name in os.listdir("/etc/apt/apt.conf.d"):
            shutil.copy(os.path.join("/etc/apt/apt.conf.d", name), os.path.join(self.path, "etc/apt/apt.conf.d", name))
        self.run("apt-get update")

    def run(self, script, check=True, timeout=900):
        """Runs a script of sh as root of the system, with /proc and /dev. Returns its output."""
        outer = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" /usr/bin/env -i ' \
                'PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive /bin/sh -euc "$1"'
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", outer, self.path, script],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, timeout=timeout, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"exit code {done.returncode} of {script}\n{done.stdout[-6000:]}")
        return done.stdout

    def copy(self, source, target):
        """Copies a file or a directory into the system."""
        target = os.path.join(self.path, target.lstrip("/"))
        if os.path.isdir(source):
            shutil.copytree(source, target)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)
