#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make wheel` builds works elsewhere: with every CPython from 3.10 on, on arm64, with glibc 2.31, and built from the sdist.

A part that this machine cannot run prints "skipped: reason". The packages come from the registry of pip, glibc from that of apt."""
import glob
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

from support import DIGITS, ROOT, main

MACHINE = platform.machine()
WHEELS = ROOT + "/build/wheel"
IMAGES = ROOT + "/examples/requests/digits.npy"
FIRST_RESULT = """
import sys, kelp, numpy
session = kelp.InferenceSession(sys.argv[1])
print(session.run(["digit"], {"image": numpy.load(sys.argv[2])})[0].tolist())
"""
SUITES = ("session", "server", "builder", "context", "kernel", "docs", "wrong_arguments", "progress")
ENVIRONMENT = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}


def run(*words, **options):
    ended = subprocess.run(words, capture_output=True, text=True, check=False, **{"env": ENVIRONMENT, **options})
    if ended.returncode:
        raise AssertionError(f"{words}\n{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}")
    return ended.stdout


def find_python(minor):
    """Returns the path of a CPython 3.minor that starts, or None. pyenv's versions are used without being activated."""
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    for path in (shutil.which(f"python3.{minor}"), *sorted(glob.glob(f"{pyenv}/versions/3.{minor}.*/bin/python3"))):
        if path and subprocess.run([path, "-c", "import ensurepip"], capture_output=True, check=False).returncode == 0:
            return path
    return None


class Distributions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run(ROOT + "/scripts/wheel.sh", MACHINE, "sdist")

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="kelp-distributions-")
        self.addCleanup(shutil.rmtree, self.directory)

    def skip(self, reason):
        print("skipped: " + reason, flush=True)
        self.skipTest(reason)

    def wheel(self, machine):
        path, = glob.glob(f"{WHEELS}/kelp_runtime-*_{machine}.whl")
        return path

    def environment(self, python):
        """Creates a clean virtual environment and returns its Python."""
        run(python, "-m", "venv", self.directory + "/venv")
        return self.directory + "/venv/bin/python"

    @staticmethod
    def busy():
        """Returns the CPU time of the programs that have run."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def install(self, python, *what):
        run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-input", *what)

    def try_python(self, minor):
        """Runs the test suites of the package, with the blocks of docs/python.md, on one version of Python."""
        found = find_python(minor)
        if found is None:
            self.skip(f"Python 3.{minor} is not installed")
        python = self.environment(found)
        begin, busy = time.monotonic(), self.busy()
        self.install(python, self.wheel(MACHINE))
        self.assertEqual(run(python, "-c", FIRST_RESULT, DIGITS, IMAGES, cwd="/"), "[3, 7, 4]\n")
        seconds, busy = time.monotonic() - begin, self.busy() - busy
        print(f"Python 3.{minor}: {seconds:.1f} s from pip install to the first result, {busy:.1f} s of a CPU", flush=True)
        self.assertLess(busy, 20)  # the time that has passed depends on what else this machine does
        self.install(python, "onnx", "onnxruntime", "ml_dtypes", "numba", "pillow", "cffi", "apache-tvm-ffi")
        for name in SUITES:
            run(python, f"{ROOT}/tests/python/test_{name}.py", env={**ENVIRONMENT, "KELP_BUILD": os.environ["KELP_BUILD"]})

    def test_python_3_10(self):
        self.try_python(10)

    def test_python_3_11(self):
        self.try_python(11)

    def test_python_3_12(self):
        self.try_python(12)

    def test_python_3_13(self):
        self.try_python(13)

    def test_sdist(self):
        """pip builds the package from the sdist."""
        sdist, = glob.glob(WHEELS + "/kelp_runtime-*.tar.gz")
        self.assertLess(os.path.getsize(sdist), 8e6)
        python = self.environment(sys.executable)
        self.install(python, sdist)
        self.assertEqual(run(python, "-c", FIRST_RESULT, DIGITS, IMAGES, cwd="/"), "[3, 7, 4]\n")
        self.assertIn("digit", run(self.directory + "/venv/bin/kelp", "run", DIGITS, "--random"))

    def unpack(self, machine):
        """Returns the program in the unpacked wheel."""
        with zipfile.ZipFile(self.wheel(machine)) as wheel:
            wheel.extractall(self.directory)
        program = self.directory + "/kelp/bin/kelp"
        os.chmod(program, 0o755)
        return program

    def check_program(self, *words):
        self.assertIn("[3 7 4]", run(*words, "run", DIGITS, "--input", "image=@" + IMAGES, "--output", "digit"))
        self.assertIn("kernels for", run(*words, "doctor"))

    def test_arm64(self):
        """The program and the libraries of the wheel for arm64 run in an emulator."""
        if MACHINE != "x86_64":
            self.skip("the wheel for arm64 is cross-compiled on x86-64 only")
        run(ROOT + "/scripts/wheel.sh", "aarch64")
        program = self.unpack("aarch64")
        self.check_program("qemu-aarch64", program)
        for library in glob.glob(self.directory + "/kelp/*.abi3.so"):
            self.assertIn("AArch64", run("readelf", "-h", library))

    def old_glibc(self, architecture):
        """Returns the root of Debian 11's glibc (2.31) for one of Debian's architectures."""
        apt = self.directory + "/apt"
        os.makedirs(apt + "/lists/partial")
        os.makedirs(apt + "/cache/archives/partial")
        with open(apt + "/sources.list", "w", encoding="utf-8") as file:
            file.write("deb http://deb.debian.org/debian bullseye main\n")
        options = [word for name, value in (
            ("Dir::Etc::sourcelist", apt + "/sources.list"), ("Dir::Etc::sourceparts", "/dev/null"), ("Dir::State::lists", apt + "/lists"),
            ("Dir::Cache", apt + "/cache"), ("APT::Architecture", architecture), ("APT::Architectures", architecture),
            ("APT::Sandbox::User", "root"), ("Acquire::Languages", "none")) for word in ("-o", f"{name}={value}")]
        try:
            run("apt-get", *options, "-q", "update")
            run("apt-get", *options, "-q", "download", f"libc6:{architecture}=2.31*", cwd=apt)
        except (AssertionError, FileNotFoundError) as error:
            print(error, flush=True)
            self.skip("apt cannot bring Debian 11's libc6")
        package, = glob.glob(apt + "/libc6_2.31*.deb")
        run("dpkg", "-x", package, self.directory + "/root")
        return self.directory + "/root"

    def test_glibc_2_31(self):
        """The program of the wheel runs with the oldest glibc that apt brings."""
        if MACHINE != "x86_64":
            self.skip("glibc 2.31 is tested on x86-64 only")
        libraries = self.old_glibc("amd64") + "/lib/x86_64-linux-gnu"
        self.check_program(libraries + "/ld-linux-x86-64.so.2", "--library-path", libraries, self.unpack(MACHINE))


if __name__ == "__main__":
    main()
