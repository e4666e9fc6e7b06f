#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The crate kelp-engine (bindings/rust/engine) against an installed Kelp, which its build finds with pkg-config.

    test_engine.py --prefix PREFIX --work DIRECTORY [--cargo CARGO] [unittest arguments]

Exits 77, with the reason, when cargo is missing or older than 1.82.
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import test_rust
from test_rust import HERE, OPTIONS, ROOT, read, replaced, shown, write

CRATE = os.path.join(ROOT, "bindings", "rust", "engine")
MODEL = os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx")
PREFIX = None
# Of the lines of the program that are not empty.
SEED_SHA256 = "9665b126c1874722eed8a3a6fa888be7d519ad03b39d99f48aec65cf1440de78"
PACKAGE = """
[package]
name = "{name}"
version = "0.0.0"
edition = "2021"
[dependencies]
kelp-engine = {{ path = "{crate}" }}
[workspace]
"""


def environment(**variables):
    """The environment in which a user of the prefix works."""
    return {"PKG_CONFIG_PATH": os.path.join(PREFIX, "lib", "pkgconfig"), "LD_LIBRARY_PATH": os.path.join(PREFIX, "lib"), **variables}


def cargo(*words, folder, **variables):
    return test_rust.cargo(*words, "--offline", folder=folder, **environment(**variables))


def run(program, *words, folder):
    ran = subprocess.run([program, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                         env={**os.environ, **environment()})
    return ran.returncode, ran.stdout, ran.stderr


def seed_weights(count, divisor):
    return (((np.arange(count) * 37 + 11) % 101).astype(np.float32) / np.float32(divisor) - np.float32(50 / divisor)).astype(np.float64)


def seed_output():
    """What tests/rust/seed_engine.rs computes."""
    x = ((np.arange(3 * 224 * 224) % 255) / 255).reshape(3, 14, 16, 14, 16)
    patches = x.transpose(1, 3, 0, 2, 4).reshape(196, 768)
    pooled = np.maximum(patches @ seed_weights(8 * 768, 400).reshape(8, 768).T, 0).mean(axis=0)
    scores = pooled @ seed_weights(80, 50).reshape(8, 10) + seed_weights(10, 100)
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


class Crate(unittest.TestCase):
    def test_format(self):
        if not shutil.which("cargo-fmt"):
            self.skipTest("no cargo fmt")
        code, text = test_rust.cargo("fmt", "--check", folder=CRATE)
        self.assertEqual(code, 0, text)

    def test_tests_and_examples_of_the_pages(self):
        code, text = cargo("test", "--locked", folder=CRATE)
        self.assertEqual(code, 0, text)
        self.assertNotIn("FAILED", text)
        self.assertGreaterEqual(sum(map(int, re.findall(r"(\d+) passed", text))), 43, text)
        self.assertNotIn("warning", text)

    def test_misuse_has_the_compiler_error_that_the_examples_state(self):
        """The stable rustdoc accepts every error of a compile_fail example."""
        code, text = cargo("test", "--locked", "--doc", folder=CRATE, RUSTC_BOOTSTRAP="1")
        self.assertEqual(code, 0, text)
        self.assertGreaterEqual(len(re.findall(r"compile fail \.\.\. ok", text)), 7, text)

    def test_a_build_without_kelp_states_what_is_missing(self):
        for variables, expected in (({"PKG_CONFIG_PATH": "", "PKG_CONFIG_LIBDIR": "/nonexistent"}, "Package kelp was not found"),
                                    ({"PKG_CONFIG": "/nonexistent/pkg-config"}, "cannot run '/nonexistent/pkg-config'")):
            code, text = cargo("build", "--locked", folder=CRATE, CARGO_TARGET_DIR=os.path.join(OPTIONS["--work"], "without"), **variables)
            self.assertNotEqual(code, 0)
            self.assertIn("pkg-config does not find Kelp 0.1 or newer", text)
            self.assertIn(expected, text)


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def build(self, name, program, manifest=None):
        package = os.path.join(OPTIONS["--work"], "packages", name)
        write(program, package, "src", "main.rs")
        write(manifest or PACKAGE.format(name=name, crate=CRATE), package, "Cargo.toml")
        code, text = cargo("build", folder=package)
        self.assertEqual(code, 0, text)
        self.assertNotIn("warning", text)
        return os.path.join(OPTIONS["--work"], "target", "debug", name)

    def test_seed(self):
        code, output, log = run(self.build("seed_engine", read(HERE, "seed_engine.rs")), folder=self.folder)
        self.assertEqual(code, 0, log)
        np.testing.assert_allclose(np.array(output.split(), np.float64), seed_output(), rtol=1e-4)
        # The logger receives messages of the build and of the load.
        self.assertRegex(log, "(?m)^I kelp: .*plan of .* built")
        self.assertRegex(log, "(?m)^I kelp: .*engine of provider 'cpu'")
        with open(os.path.join(self.folder, "model.engine"), "rb") as file:
            self.assertGreater(len(file.read()), 8 * 768 * 4)

    def test_lines_of_the_seed_are_unchanged(self):
        lines = re.search(r"^// Build phase\n.*?^}", read(HERE, "seed_engine.rs"), re.M | re.S).group().splitlines()[:-1]
        kept = [line for line in lines if line and not line.endswith("// added")]
        self.assertEqual(hashlib.sha256("\n".join(kept).encode()).hexdigest(), SEED_SHA256, kept)

    def test_page(self):
        manifest = replaced(shown("digits/Cargo.toml"), ("KELP/bindings/rust/engine", CRATE)) + "\n[workspace]\n"
        program = self.build("digits", shown("digits/src/main.rs"), manifest)
        os.symlink(os.path.join(ROOT, "examples"), os.path.join(self.folder, "examples"))
        code, output, log = run(program, folder=self.folder)
        self.assertEqual(code, 0, log)
        found = re.search(r"// digits/src/main.rs.*?^```text\n(.*?)^```", read(ROOT, "docs", "rust.md"), re.M | re.S)
        self.assertEqual(output, found.group(1))

    def test_examples(self):
        code, text = cargo("build", "--locked", "--examples", folder=CRATE)
        self.assertEqual(code, 0, text)
        examples = os.path.join(OPTIONS["--work"], "target", "debug", "examples")
        engine, file = os.path.join(self.folder, "digits.engine"), os.path.join(self.folder, "image")
        code, output, log = run(os.path.join(examples, "build_engine"), MODEL, engine, "image:1x1x8x8:8x1x8x8:64x1x8x8", folder=self.folder)
        self.assertEqual(code, 0, log)
        self.assertEqual(output, f"{engine}: {os.path.getsize(engine)} bytes\n")
        images = np.load(os.path.join(ROOT, "examples", "requests", "digits.npy"))
        images.tofile(file)
        shape = "x".join(map(str, images.shape))
        code, output, log = run(os.path.join(examples, "run_inference"), engine, f"image:{shape}:{file}", folder=self.folder)
        self.assertEqual(code, 0, log)
        self.assertIn("digit [3] 3 7 4\n", output)
        # The batch is larger than the profile's.
        code, _, log = run(os.path.join(examples, "run_inference"), engine, f"image:65x1x8x8:{file}", folder=self.folder)
        self.assertNotEqual(code, 0)
        self.assertIn("has 4160 elements: found 192", log)
        self.compare_with_onnxruntime(images, output)

    def compare_with_onnxruntime(self, images, output):
        try:
            import onnxruntime  # pylint: disable=import-outside-toplevel
        except ImportError:
            return
        session = onnxruntime.InferenceSession(MODEL)
        lines = output.splitlines()
        for info, expected in zip(session.get_outputs(), session.run(None, {"image": images})):
            line = next(line for line in lines if line.startswith(info.name + " "))
            np.testing.assert_allclose(np.array(line.split()[2:], np.float64), expected.ravel(), rtol=1e-4, atol=1e-6)


def main():
    global PREFIX
    at = sys.argv.index("--prefix")
    PREFIX = os.path.abspath(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    test_rust.take_options()
    test_rust.find_cargo()
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
