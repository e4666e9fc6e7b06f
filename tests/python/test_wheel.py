#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel that `make wheel` builds is complete: what it installs runs without the source directory, and with an older glibc."""
import email
import glob
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock
import zipfile

from support import DIGITS, ROOT, main

BUILD = os.environ["KELP_BUILD"]
CODE = """
import kelp, numpy, sys
image = numpy.load(sys.argv[1] + "/examples/requests/digits.npy")
digit, = kelp.InferenceSession(sys.argv[1] + "/examples/models/digits/1/model.onnx").run(["digit"], {"image": image})
with kelp.Server(sys.argv[1] + "/examples/models", control="explicit", models=["digits"]) as server:
    assert server.infer("digits", {"image": image})["digit"].tolist() == digit.tolist()
import kelp.runtime, kelp._kelp, os
assert os.path.dirname(kelp._kelp.library_path()) == os.path.join(os.path.dirname(kelp.__file__), "lib"), kelp._kelp.library_path()
print(digit.tolist(), kelp.__version__)
"""


def run(*words, **options):
    ended = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if ended.returncode:
        raise AssertionError(f"{words}\n{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}")
    return ended.stdout


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="kelp-wheel-")
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        # its build directory is kept, so that the next run compiles only what changed
        run(ROOT + "/scripts/wheel.sh", platform.machine(), "sdist", env=environment)
        cls.wheel, = glob.glob(f"{ROOT}/build/wheel/kelp_runtime-*_{platform.machine()}.whl")
        cls.site = cls.directory + "/site"
        run(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "-q", "--disable-pip-version-check", "--target", cls.site,
            cls.wheel, env=environment)
        cls.environment = {**environment, "PYTHONPATH": cls.site}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    def test_the_wheel_contains_what_it_needs(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            names = {info.filename: info.file_size for info in wheel.infolist()}
        for name in ("onnxruntime/__init__.py", "onnxruntime/capi/onnxruntime_pybind11_state.py", "shim/onnxruntime/__init__.py",
                     "shim/onnxruntime-1.31.1.egg-info/PKG-INFO", "shim/onnxruntime-1.31.1.egg-info/top_level.txt", "__init__.py",
                     "__init__.pyi", "py.typed", "onnxruntime/py.typed", "runtime.py", "backend.py", "bin/kelp", "lib/libkelp.so.0.1",
                     "lib/libtritonserver.so", "kernels/README", "include/kelp/backend.h", "include/kelp/layers.inc",
                     "include/kelp/kernel.hpp", "include/triton/runtime/backend.h", "include/triton/runtime/triton.h", "runtime.pyi",
                     "include/triton/core/tritonserver.h", "lib/libkelp_backend.a", "lib/cmake/kelp/kelp-config.cmake",
                     "lib/pkgconfig/kelp.pc", "backends/addsub/libtriton_addsub.so", "backends/addsub/config.pbtxt",
                     "lib/pkgconfig/tritonserver.pc", "lib/pkgconfig/kelp-backend.pc", "share/bash-completion/completions/kelp",
                     "share/zsh/site-functions/_kelp", "share/fish/vendor_completions.d/kelp.fish"):
            self.assertIn("kelp/" + name, names)
        for name in ("LICENSE", "THIRD-PARTY-NOTICES.txt"):
            self.assertTrue([path for path in names if ".dist-info/" in path and path.endswith("/" + name)], name)
        self.assertFalse([name for name in names if name.split("/")[0] not in ("kelp",) and ".dist-info/" not in name])
        for name in os.listdir(ROOT + "/backends"):
            if os.path.exists(f"{ROOT}/backends/{name}/config.pbtxt"):
                self.assertIn(f"kelp/backends/{name}/libtriton_{name}.so", names)
                self.assertIn(f"kelp/backends/{name}/config.pbtxt", names)
        self.assertLess(os.path.getsize(self.wheel), 8e6)
        self.assertLess(sum(names.values()), 20e6)
        # no library is searched in the build directory
        for path in self.binaries():
            with open(path, "rb") as file:
                self.assertNotIn(ROOT.encode() + b"/", file.read(), path)

    def binaries(self):
        """Returns the paths of the program and of all shared libraries."""
        libraries = glob.glob(self.site + "/kelp/**/*.so*", recursive=True)
        return [self.site + "/kelp/bin/kelp"] + [path for path in libraries if os.path.basename(path) != "libkelp.so"]  # a linker script

    def test_the_tag_is_true(self):
        """The wheel needs glibc 2.27 and no library that another system may lack."""
        self.assertRegex(self.wheel, rf"-cp310-abi3-manylinux_2_27_{platform.machine()}\.whl$")
        self.assertGreater(len(self.binaries()), 10)
        for path in self.binaries():
            needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path)))
            system = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
            self.assertLessEqual(needed, system | {"libkelp.so.0.1", "libtritonserver.so"}, path)
            versions = [tuple(map(int, found.split("."))) for found in re.findall(r"\bGLIBC_([\d.]+)", run("readelf", "-VW", path))]
            self.assertLessEqual(max(versions), (2, 27), path)

    def test_the_metadata_is_complete(self):
        path, = glob.glob(self.site + "/kelp_runtime-*.dist-info/METADATA")
        with open(path, encoding="utf-8") as file:
            metadata = email.message_from_file(file)
        self.assertEqual(metadata["License-Expression"], "Apache-2.0")
        self.assertEqual(metadata["Requires-Python"], ">=3.10")
        for minor in range(10, 14):
            self.assertIn(f"Programming Language :: Python :: 3.{minor}", metadata.get_all("Classifier"))
        with open(os.path.dirname(path) + "/licenses/THIRD-PARTY-NOTICES.txt", encoding="utf-8") as file:
            notices = file.read()
        for library in ("xxHash", "zlib", "libffi"):
            self.assertIn(f"\n{library} (https://", notices)

    def test_the_installed_program_runs(self):
        for words in ([self.site + "/bin/kelp"], [sys.executable, "-m", "kelp"]):
            self.assertRegex(run(*words, "--version", env=self.environment, cwd="/"), r"^kelp \d+\.\d+\.\d+\n$")
        self.assertIn("digit", run(self.site + "/bin/kelp", "run", DIGITS, "--random", env=self.environment))
        usage = subprocess.run([self.site + "/bin/tritonserver", "--help"], capture_output=True, text=True, env=self.environment, check=False)
        self.assertEqual(usage.returncode, 1, "as NVIDIA's program")
        self.assertIn("--model-repository", usage.stdout + usage.stderr)

    def test_a_program_runs_as_onnxruntime(self):
        code = ("import importlib.metadata, onnxruntime, sys; session = onnxruntime.InferenceSession(sys.argv[1]); "
                "print(session.get_outputs()[1].name, importlib.metadata.version('onnxruntime'), onnxruntime.__file__)")
        words = run(sys.executable, "-m", "kelp.as_onnxruntime", "-c", code, DIGITS, env=self.environment, cwd="/").split()
        self.assertEqual(words, ["digit", "1.31.1", self.site + "/kelp/onnxruntime/__init__.py"])

    def test_the_installed_package_works(self):
        self.assertRegex(run(sys.executable, "-c", CODE, ROOT, env=self.environment, cwd="/"), r"^\[.*\] \d+\.\d+\.\d+\n$")

    def test_the_installed_program_serves(self):
        """`kelp serve` finds the backends of the wheel: examples/models has a model for one of them."""
        spec = importlib.util.spec_from_file_location("e2e_support", ROOT + "/tests/e2e/support.py")
        e2e = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(e2e)
        e2e.KELP = self.site + "/bin/kelp"
        with unittest.mock.patch.dict(os.environ, self.environment), e2e.Server("--model-repository", ROOT + "/examples/models") as server:
            for name in os.listdir(ROOT + "/examples/models"):
                self.assertEqual(server.call("GET", f"/v2/models/{name}/ready")[0], 200, name)
            self.assertEqual(server.stop(), 0)

    def test_c_program(self):
        """Compiles and runs the C program of the README with the headers and libraries of the wheel."""
        with tempfile.TemporaryDirectory() as folder:
            run(sys.executable, ROOT + "/tests/support/shown.py", ROOT + "/README.md", "digits.c", folder + "/digits.c")
            include, libraries = run(sys.executable, "-c", "import kelp; print(kelp.get_include()); print(*kelp.get_library_dirs())",
                                     env=self.environment, cwd="/").splitlines()
            self.assertTrue(include.startswith(self.site), include)
            run("cc", "-std=c17", "-Wall", "-Wextra", "-Werror", folder + "/digits.c", "-o", folder + "/digits", "-I", include, "-L", libraries, "-lkelp",
                "-Wl,-rpath," + libraries)
            self.assertEqual(run(folder + "/digits", cwd=ROOT), "digit 1\n")
            # pkg-config finds them, wherever the package is installed
            flags = run("pkg-config", "--cflags", "--libs", "kelp", env={**self.environment, "PKG_CONFIG_PATH": libraries + "/pkgconfig"})
            self.assertEqual([os.path.realpath(word[2:]) for word in flags.split() if word[:2] in ("-I", "-L")],
                             [os.path.realpath(include), os.path.realpath(libraries)])
            ended = subprocess.run([folder + "/digits"], cwd=folder, capture_output=True, text=True)  # without the model
            self.assertIn("examples/models/digits/1/model.onnx", ended.stderr)
            self.assertEqual((ended.returncode, ended.stdout), (1, ""))

    def test_pages(self):
        """Runs the examples of three pages. test_distributions.py runs those of all pages."""
        os.symlink(self.site, self.directory + "/python")
        for page, ran in (("packaging", 2), ("python", 16), ("onnxruntime", 6)):
            said = run(sys.executable, ROOT + "/tests/support/shown.py", f"{ROOT}/docs/{page}.md", "--run", "--build", self.directory,
                       "--prefix", self.site + "/kelp", env=self.environment)
            self.assertRegex(said, f"{page}.md: {ran} blocks ran")

    def test_new_backend(self):
        """Makes, builds and tests a backend with what the wheel contains, as `kelp new backend` says."""
        program = self.site + "/bin/kelp"
        with tempfile.TemporaryDirectory() as folder:
            said = run(program, "new", "backend", "my_scale", env=self.environment, cwd=folder)
            self.assertIn(f"-DCMAKE_PREFIX_PATH={self.site}/kelp", said)
            environment = {**self.environment, "PATH": self.site + "/kelp/bin:" + os.environ["PATH"]}
            run("cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={self.site}/kelp", env=environment, cwd=folder + "/my_scale")
            run("cmake", "--build", "build", env=environment, cwd=folder + "/my_scale")
            run("ctest", "--test-dir", "build", "--output-on-failure", env=environment, cwd=folder + "/my_scale")

    def test_new_libraries(self):
        """Makes, builds and tests the other projects of `kelp new`."""
        for kind in ("kernels", "plugin", "provider"):
            with self.subTest(kind), tempfile.TemporaryDirectory() as folder:
                run(self.site + "/bin/kelp", "new", kind, "mine", env=self.environment, cwd=folder)
                project = folder + "/mine"
                run("cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={self.site}/kelp", env=self.environment, cwd=project)
                run("cmake", "--build", "build", env=self.environment, cwd=project)
                run("ctest", "--test-dir", "build", "--output-on-failure", env=self.environment, cwd=project)

    def test_suites(self):
        for name in ("session", "builder", "context", "refit", "layers", "docs", "wrong_arguments", "kernel_program"):
            run(sys.executable, os.path.join(ROOT, "tests", "python", f"test_{name}.py"), env={**self.environment, "KELP_BUILD": BUILD})

    def test_the_sdist_is_complete(self):
        """No file is missing to build the package from the sdist. test_distributions.py builds it."""
        sdist, = glob.glob(ROOT + "/build/wheel/kelp_runtime-*.tar.gz")
        self.assertLess(os.path.getsize(sdist), 8e6)
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(sdist) as archive:
                archive.extractall(folder, filter="data")
            source, = glob.glob(folder + "/kelp_runtime-*")
            for name in ("LICENSE", "THIRD-PARTY-NOTICES.txt", "PKG-INFO", "docs/python.md"):
                self.assertTrue(os.path.exists(f"{source}/{name}"), name)
            run("cmake", "-G", "Ninja", "-S", source, "-B", folder + "/build", "-DKELP_TESTS=OFF", "-DSKBUILD=ON", f"-DPython_EXECUTABLE={sys.executable}")
            run("ninja", "-C", folder + "/build", "-n")

    def test_the_version_is_that_of_the_project(self):
        version = run(sys.executable, "-c", "import kelp; print(kelp.__version__)", env=self.environment, cwd="/").strip()
        self.assertIn(f"kelp_runtime-{version}-", self.wheel)


if __name__ == "__main__":
    main()
