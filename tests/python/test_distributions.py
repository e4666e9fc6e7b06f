#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make wheel` builds works elsewhere: with every CPython from 3.10 on, on arm64, with glibc 2.31, and built from the sdist.

Each CPython runs the test suites of the package and the blocks of the documentation, in a fresh environment with the wheel.

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
SUITES = ("session", "onnxruntime", "server", "builder", "context", "kernel", "docs", "wrong_arguments", "progress")
# Pages whose blocks run with the program, the headers and the libraries of the wheel, but for those that are marked with a reason.
PAGES = [ROOT + "/README.md", ROOT + "/examples/README.md", *sorted(glob.glob(ROOT + "/docs/*.md"))]
ARM64_PAGES = ("python", "onnxruntime")
# In the emulator, without libraries that Debian or PyPI lack there or that are too slow
ARM64_SUITES = ("docs", "server", "refit", "wrong_arguments")
# Debian 12's CPython for arm64, and the libraries that it and numpy use
ARM64_PYTHON = ("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libc6", "libgcc-s1", "libstdc++6", "libexpat1", "libffi8", "libssl3",
                "libbz2-1.0", "liblzma5", "libsqlite3-0", "libuuid1", "zlib1g")
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
        print("\nskipped: " + reason, flush=True)  # on a line of its own, after the name of the test
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
        """Runs the test suites of the package and the blocks of the documentation on one version of Python."""
        found = find_python(minor)
        if found is None:
            self.skip(f"Python 3.{minor} is not installed")
        python = self.environment(found)
        begin, busy = time.monotonic(), self.busy()
        self.install(python, self.wheel(MACHINE))
        self.assertEqual(run(python, "-c", FIRST_RESULT, DIGITS, IMAGES, cwd="/"), "[3, 7, 4]\n")
        seconds, busy = time.monotonic() - begin, self.busy() - busy
        print(f"\nPython 3.{minor}: {seconds:.1f} s from pip install to the first result, {busy:.1f} s of a CPU", flush=True)
        self.assertLess(busy, 20)  # the time that has passed depends on what else this machine does
        self.install(python, "onnx", "onnxruntime", "ml_dtypes", "numba", "pillow", "cffi", "apache-tvm-ffi", "tritonclient[http,grpc]")
        for name in SUITES:
            run(python, f"{ROOT}/tests/python/test_{name}.py", env={**ENVIRONMENT, "KELP_BUILD": os.environ["KELP_BUILD"]})
        package = run(python, "-c", "import kelp, os; print(os.path.dirname(kelp.__file__))", cwd="/").strip()
        os.symlink(os.path.dirname(package), self.directory + "/python")
        for page in PAGES:
            self.show(python, page, package)

    def show(self, python, page, package, **environment):
        """Runs the blocks of a page."""
        print(run(python, ROOT + "/tests/support/shown.py", page, "--run", "--build", self.directory, "--prefix", package,
                  env={**ENVIRONMENT, **environment}).splitlines()[-1], flush=True)

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

    def test_arm64_python(self):
        """The Python package of the wheel for arm64 passes tests on Debian's CPython for arm64, in an emulator."""
        if MACHINE != "x86_64":
            self.skip("the wheel for arm64 is tested natively")
        if shutil.which("qemu-aarch64") is None:
            self.skip("qemu-aarch64 is not installed")
        run(ROOT + "/scripts/wheel.sh", "aarch64")
        root, site = self.debian("bookworm", "arm64", ARM64_PYTHON), self.directory + "/site"
        platforms = [word for minor in range(17, 37) for word in ("--platform", f"manylinux_2_{minor}_aarch64")]
        self.install(sys.executable, "--target", site, "--only-binary=:all:", "--implementation", "cp", "--python-version", "3.11", *platforms,
                     self.wheel("aarch64"), "numpy", "onnx", "ml_dtypes")
        bin_directory = self.directory + "/bin"
        os.mkdir(bin_directory)
        emulator = f"exec qemu-aarch64 -L {root}"
        self.script(bin_directory + "/cc", 'exec aarch64-linux-gnu-gcc "$@"')
        self.script(bin_directory + "/python", f'{emulator} -0 "$0" {root}/usr/bin/python3.11 "$@"')
        # the tests start the program, which the kernel cannot
        program = site + "/kelp/bin/kelp"
        os.rename(program, program + "-arm64")
        os.chmod(program + "-arm64", 0o755)
        self.script(program, f'{emulator} "$0-arm64" "$@"')
        build, suites = ROOT + "/build/arm64", ARM64_SUITES
        if os.path.isdir(build + "/tests/plugins/libraries"):
            suites += ("context",)
        else:
            print("\nskipped: build/arm64, which contains the plug-in of test_context.py, is not built", flush=True)
        python = bin_directory + "/python"
        environment = {**ENVIRONMENT, "PYTHONPATH": site, "KELP_BUILD": build, "PATH": bin_directory + os.pathsep + ENVIRONMENT["PATH"]}
        self.assertEqual(run(python, "-c", "import platform; print(platform.machine(), platform.python_implementation())", env=environment), "aarch64 CPython\n")
        self.assertEqual(run(python, "-c", FIRST_RESULT, DIGITS, IMAGES, cwd="/", env=environment), "[3, 7, 4]\n")
        self.assertRegex(run(python, "-m", "kelp", "--version", env=environment), r"^kelp \d+\.\d+\.\d+\n$")
        for name in suites:
            run(python, f"{ROOT}/tests/python/test_{name}.py", env=environment)
        os.symlink(site, self.directory + "/python")
        for page in ARM64_PAGES:
            self.show(python, f"{ROOT}/docs/{page}.md", site + "/kelp", **environment)

    @staticmethod
    def script(path, line):
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + line + "\n")
        os.chmod(path, 0o755)

    def debian(self, release, architecture, packages):
        """Returns a directory with the contents of packages of a release of Debian."""
        apt = self.directory + "/apt"
        os.makedirs(apt + "/lists/partial")
        os.makedirs(apt + "/cache/archives/partial")
        open(apt + "/status", "w", encoding="utf-8").close()  # without the packages of this machine
        with open(apt + "/sources.list", "w", encoding="utf-8") as file:
            file.write(f"deb http://deb.debian.org/debian {release} main\n")
        options = [word for name, value in (
            ("Dir::Etc::sourcelist", apt + "/sources.list"), ("Dir::Etc::sourceparts", "/dev/null"), ("Dir::State::lists", apt + "/lists"),
            ("Dir::State::status", apt + "/status"), ("Dir::Cache", apt + "/cache"), ("APT::Architecture", architecture), ("APT::Architectures", architecture),
            ("APT::Sandbox::User", "root"), ("Acquire::Languages", "none")) for word in ("-o", f"{name}={value}")]
        try:
            run("apt-get", *options, "-q", "update")
            run("apt-get", *options, "-q", "download", *(package.replace("=", f":{architecture}=", 1) if "=" in package else f"{package}:{architecture}"
                                                         for package in packages), cwd=apt)
        except (AssertionError, FileNotFoundError) as error:
            print(error, flush=True)
            self.skip(f"apt cannot bring packages of Debian {release} for {architecture}")
        for package in glob.glob(apt + "/*.deb"):
            run("dpkg", "-x", package, self.directory + "/root")
        return self.directory + "/root"

    def test_glibc_2_31(self):
        """The program of the wheel runs with the oldest glibc that apt can download."""
        if MACHINE != "x86_64":
            self.skip("glibc 2.31 is tested on x86-64 only")
        libraries = self.debian("bullseye", "amd64", ["libc6=2.31*"]) + "/lib/x86_64-linux-gnu"
        self.check_program(libraries + "/ld-linux-x86-64.so.2", "--library-path", libraries, self.unpack(MACHINE))


if __name__ == "__main__":
    main()
