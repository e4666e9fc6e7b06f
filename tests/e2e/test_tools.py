#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands that measure, compare and watch: `kelp bench`, `kelp run --compare`, inputs from files, and `kelp top`.

    test_tools.py --kelp PATH [unittest arguments]
"""
import csv
import glob
import io
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree
import zipfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from PIL import Image

import support
from support import ROOT, kelp

DIGITS = os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx")
DIGITS_NPY = os.path.join(ROOT, "examples", "requests", "digits.npy")
PICTURES = os.path.join(ROOT, "examples", "pictures")


class Temporary(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="kelp-tools-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        return os.path.join(self.directory, name)

    def run_kelp(self, *words, code=0, **options):
        ended = kelp(*words, **options)
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        return ended

    def refuse(self, code, message, *words):
        self.assertIn(message, self.run_kelp(*words, code=code).stderr)


def passthrough(path, dtype, shape):
    """Writes a model whose output is its input."""
    info = helper.make_tensor_value_info("x", dtype, shape)
    out = helper.make_tensor_value_info("y", dtype, shape)
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [info], [out])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


class Bench(Temporary):
    def test_concurrency_gives_a_row_each_with_throughput_and_percentiles(self):
        ended = self.run_kelp("bench", DIGITS, "--threads", "1,2", "--concurrency", "1,3", "--seconds", "0", "--json")
        rows = json.loads(ended.stdout)["results"]
        self.assertEqual([(row["threads"], row["concurrency"]) for row in rows], [(1, 1), (1, 3), (2, 1), (2, 3)])
        for row in rows:
            self.assertGreaterEqual(row["runs"], 10)
            order = [row[f"{name}_ns"] for name in ("min", "median", "p90", "p95", "p99", "p99_9", "max")]
            self.assertEqual(order, sorted(order))
            self.assertGreater(order[0], 0)
            self.assertAlmostEqual(row["per_second"], row["runs"] * 1e9 / row["elapsed_ns"], delta=row["per_second"] * 1e-6)
        self.assertIn("per second", self.run_kelp("bench", DIGITS, "--threads", "1", "--seconds", "0").stdout)

    def test_csv_has_the_members_of_json(self):
        words = ("bench", DIGITS, "--threads", "1,2", "--seconds", "0")
        rows = list(csv.DictReader(io.StringIO(self.run_kelp(*words, "--csv").stdout)))
        self.assertEqual([row["threads"] for row in rows], ["1", "2"])
        self.assertEqual(list(rows[0]), list(json.loads(self.run_kelp(*words, "--json").stdout)["results"][0]))

    def test_plots_show_every_row(self):
        ended = self.run_kelp("bench", DIGITS, "--threads", "1", "--concurrency", "1,2", "--seconds", "0", "--plot", "--svg", self.path("a.svg"))
        self.assertEqual(len(re.findall(r"(?m)^1 thread, concurrency [12]: [\d.]+ per second$", ended.stdout)), 2)
        self.assertEqual(len(re.findall(r"(?m)^  median +\d", ended.stdout)), 2)
        self.assertRegex(ended.stdout, r"(?m)^  99 % +\d.* █{50}$")  # the end of the scale
        drawing = xml.etree.ElementTree.parse(self.path("a.svg")).getroot()
        name = "{http://www.w3.org/2000/svg}"
        self.assertEqual(len(drawing.findall(name + "polyline")), 2)
        texts = [text.text for text in drawing.iter(name + "text")]
        self.assertIn("1 thread, concurrency 2", texts)
        percents = [int(text[:-2]) for text in texts if text.endswith(" %")]
        self.assertEqual(percents, sorted(percents, reverse=True))
        self.assertEqual((percents[0], percents[-1]), (100, 0))

    def test_traces_have_an_event_for_each_node(self):
        self.run_kelp("bench", DIGITS, "--threads", "1", "--seconds", "0", "--trace", self.path("bench.json"))
        self.run_kelp("run", DIGITS, "--random", "--trace", self.path("run.json"))
        for name in ("bench.json", "run.json"):
            with open(self.path(name), encoding="utf-8") as file:
                session, *nodes = json.load(file)
            self.assertEqual((session["name"], session["ph"], session["ts"]), ("model_run", "X", 0))
            self.assertIn("conv1_kernel_time", [node["name"] for node in nodes])
            for before, after in zip(nodes, nodes[1:]):
                self.assertLessEqual(before["ts"], after["ts"])
            for node in nodes:
                self.assertLessEqual(node["ts"] + node["dur"], session["dur"] + 1)
        self.assertRegex(self.run_kelp("run", DIGITS, "--random", "--profile-nodes").stderr, r"(?m)^ConvAct +\w+ +\d.* conv1$")

    def test_a_server_is_measured_by_its_url(self):
        with support.Server("--model-repository", os.path.join(ROOT, "examples", "models")) as server:
            url = f"http://{server.url}/v2/models"
            ended = self.run_kelp("bench", f"{url}/digits/", "--concurrency", "1,4", "--seconds", "0.1", "--shape", "image=3x1x8x8", "--json")
            rows = json.loads(ended.stdout)["results"]
            self.assertEqual([(row["concurrency"], row["failures"]) for row in rows], [(1, 0), (4, 0)])
            statistics = json.loads(server.call("GET", "/v2/models/digits/stats")[2])["model_stats"][0]
            self.assertEqual(statistics["inference_stats"]["success"]["count"], sum(row["runs"] for row in rows) + 1 + 4)
            self.assertRegex(self.run_kelp("bench", f"{url}/addsub/versions/1", "--seconds", "0").stdout, r"^concurrency +median")
            self.refuse(1, "'ten' is not found", "bench", f"{url}/ten", "--seconds", "0")
            self.refuse(1, "is not the URL of a model", "bench", f"http://{server.url}/", "--seconds", "0")
            self.refuse(1, "it has 'image'", "bench", f"{url}/digits", "--input", "picture=1")
            self.refuse(1, "expected 'NAME: VALUE'", "bench", f"{url}/digits", "--header", "token")
        self.refuse(1, "no response from", "bench", f"{url}/digits", "--seconds", "0")

    def test_a_token_is_sent(self):
        with open(self.path("token"), "w", encoding="utf-8") as file:
            file.write("secret\n")
        with support.Server("--model-repository", os.path.join(ROOT, "examples", "models"), "--auth-token-file", self.path("token")) as server:
            url = f"http://{server.url}/v2/models/digits"
            self.refuse(1, "status 401", "bench", url, "--seconds", "0")
            self.run_kelp("bench", url, "--seconds", "0", "--header", "Authorization: Bearer secret")

    def test_wrong_options_are_rejected(self):
        self.refuse(2, "expected at most 16 numbers from 1 to 1024", "bench", DIGITS, "--concurrency", "0")
        self.refuse(2, "exclude each other", "bench", DIGITS, "--csv", "--json")
        self.refuse(2, "exclude each other", "bench", DIGITS, "--in-flight", "2", "--concurrency", "2")
        self.refuse(2, "option '--profile' requires a model file", "bench", "http://localhost:1/v2/models/x", "--profile")
        self.refuse(2, "option '--threads' requires a model file", "bench", "http://localhost:1/v2/models/x", "--threads", "2")
        self.refuse(1, "cannot write the plot", "bench", DIGITS, "--threads", "1", "--seconds", "0", "--svg", "/no/such/a.svg")


class Compare(Temporary):
    def setUp(self):
        super().setUp()
        [library, *_] = glob.glob(os.path.join(os.path.dirname(onnxruntime.__file__), "capi", "libonnxruntime.so*"))
        self.environment = {**os.environ, "KELP_ONNXRUNTIME_LIBRARY": library}

    def compare(self, *words, code=0):
        return self.run_kelp("run", *words, "--compare", code=code, env=self.environment)

    def test_equal_outputs_give_exit_code_0(self):
        ended = self.compare(DIGITS, "--input", f"image=@{DIGITS_NPY}")
        self.assertRegex(ended.stdout, r"(?m)^probabilities +float32 .* 0 of 30 +equal$")
        self.assertRegex(ended.stdout, r"(?m)^digit +int64 +0 +0 +0 of 3 +equal$")
        self.assertEqual(ended.stderr, "")

    def test_the_first_node_that_differs_is_named(self):
        ended = self.compare(DIGITS, "--input", f"image=@{DIGITS_NPY}", "--precision", "bf16", "--rtol", "1e-5", "--atol", "1e-6", code=1)
        self.assertRegex(ended.stdout, r"(?m)^probabilities .* different$")
        self.assertRegex(ended.stdout, r"(?m)^first differing node: 'conv2' \(Conv\), output '.*': max abs .*, \d+ of \d+ elements differ$")
        self.assertIn("1 of 2 outputs differ from those of ONNX Runtime", ended.stderr)
        found = json.loads(self.compare(DIGITS, "--random", "--precision", "bf16", "--rtol", "1e-5", "--atol", "1e-6", "--json", code=1).stdout)
        self.assertEqual(found["outputs"], [])
        self.assertFalse(found["comparison"]["equal"])
        self.assertEqual(found["comparison"]["first_differing_node"]["node"], "conv2")

    def test_outputs_are_also_written(self):
        self.compare(DIGITS, "--random", "--output-dir", self.path("out"))
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["digit.npy", "probabilities.npy"])

    def test_a_random_value_differs_at_its_node(self):
        nodes = [helper.make_node("RandomUniformLike", ["x"], ["noise"], name="noise", seed=1.0), helper.make_node("Add", ["x", "noise"], ["y"], name="add")]
        value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy"]
        graph = helper.make_graph(nodes, "g", value[:1], value[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), self.path("noise.onnx"))
        ended = self.compare(self.path("noise.onnx"), "--input", "x=1,2,3", code=1)
        self.assertIn("first differing node: 'noise' (RandomUniformLike), output 'noise'", ended.stdout)

    def test_what_prevents_a_comparison_is_said(self):
        missing = {**os.environ, "KELP_ONNXRUNTIME_LIBRARY": "/nowhere/libonnxruntime.so"}
        ended = self.run_kelp("run", DIGITS, "--random", "--compare", code=1, env=missing)
        self.assertIn("cannot run the model on ONNX Runtime", ended.stderr)
        self.assertIn("/nowhere/libonnxruntime.so", ended.stderr)
        self.run_kelp("build", DIGITS, "-o", self.path("digits.plan"))
        self.assertIn("requires an ONNX model", self.compare(self.path("digits.plan"), "--random", code=1).stderr)


class Files(Temporary):
    def test_npz_files_give_one_input_or_all(self):
        images = np.load(DIGITS_NPY)
        plain = self.run_kelp("run", DIGITS, "--input", f"image=@{DIGITS_NPY}", "--json").stdout
        np.savez(self.path("stored.npz"), image=images)
        np.savez_compressed(self.path("packed.npz"), image=images)
        np.savez_compressed(self.path("two.npz"), image=images, other=images)
        for word in ("@stored.npz", "@packed.npz", "image=@packed.npz", "image=@two.npz"):
            with self.subTest(word):
                self.assertEqual(self.run_kelp("run", DIGITS, "--json", "--input", word, cwd=self.directory).stdout, plain)
        self.refuse(1, "has an array 'other', but the model has no such input", "run", DIGITS, "--input", "@" + self.path("two.npz"))
        self.refuse(1, "is specified twice", "run", DIGITS, "--input", "@" + self.path("stored.npz"), "--input", f"image=@{DIGITS_NPY}")
        np.savez(self.path("others.npz"), a=images, b=images)
        self.refuse(1, "none is named 'image'", "run", DIGITS, "--input", "image=@" + self.path("others.npz"))

    def test_damaged_npz_files_are_rejected(self):
        np.savez_compressed(self.path("a.npz"), image=np.load(DIGITS_NPY))
        with open(self.path("a.npz"), "rb") as file:
            whole = file.read()
        with zipfile.ZipFile(self.path("bz.npz"), "w", zipfile.ZIP_BZIP2) as archive:
            archive.write(DIGITS_NPY, "image.npy")
        data = zipfile.ZipFile(self.path("a.npz")).getinfo("image.npy")
        middle = data.header_offset + 30 + len("image.npy") + 20 + data.compress_size // 2
        for name, content, message in (("short.npz", whole[:-30], "truncated"),
                                       ("flipped.npz", whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1:], "damaged")):
            with open(self.path(name), "wb") as file:
                file.write(content)
            self.refuse(1, message, "run", DIGITS, "--input", "@" + self.path(name))
        self.refuse(1, "another compression method", "run", DIGITS, "--input", "@" + self.path("bz.npz"))

    def image(self, model, file, *words):
        self.run_kelp("run", self.path(model), "--input", "x=@" + self.path(file), "--output", "y=@" + self.path("y.npy"), *words)
        return np.load(self.path("y.npy"))

    def test_images_are_decoded_resized_and_normalized(self):
        pixels = np.random.default_rng(1).integers(0, 256, (40, 60, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(self.path("a.png"))
        passthrough(self.path("nchw.onnx"), TensorProto.FLOAT, ["n", 3, "h", "w"])
        passthrough(self.path("nhwc.onnx"), TensorProto.UINT8, [1, "h", "w", 3])
        passthrough(self.path("fixed.onnx"), TensorProto.FLOAT, [1, 3, 20, 20])
        np.testing.assert_allclose(self.image("nchw.onnx", "a.png"), pixels.transpose(2, 0, 1)[None] / np.float32(255), rtol=1e-6)
        np.testing.assert_array_equal(self.image("nhwc.onnx", "a.png"), pixels[None])
        np.testing.assert_array_equal(self.image("nhwc.onnx", "a.png", "--image-color", "bgr"), pixels[None, :, :, ::-1])
        # Pillow's bilinear filter also widens with the scale.
        small = np.asarray(Image.fromarray(pixels).resize((20, 20), Image.BILINEAR), dtype=np.float32)
        np.testing.assert_allclose(self.image("fixed.onnx", "a.png", "--image-scale", "1")[0].transpose(1, 2, 0), small, atol=1.5)
        center = np.asarray(Image.fromarray(pixels).resize((30, 20), Image.BILINEAR), dtype=np.float32)[:, 5:25]
        np.testing.assert_allclose(self.image("fixed.onnx", "a.png", "--image-scale", "1", "--image-fit", "crop")[0].transpose(1, 2, 0), center, atol=1.5)
        mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
        found = self.image("nchw.onnx", "a.png", "--image-mean", "0.485,0.456,0.406", "--image-std", "0.229,0.224,0.225")
        np.testing.assert_allclose(found[0].transpose(1, 2, 0), (pixels / 255 - mean) / deviation, rtol=1e-4, atol=1e-5)
        self.assertEqual(self.image("nchw.onnx", "a.png", "--image-size", "10x16").shape, (1, 3, 10, 16))

    def test_jpeg_and_gray_images(self):
        Image.linear_gradient("L").resize((16, 16)).save(self.path("a.jpg"), quality=95)
        passthrough(self.path("gray.onnx"), TensorProto.FLOAT, [1, 1, 16, 16])
        expected = np.asarray(Image.open(self.path("a.jpg")), dtype=np.float32) / 255
        np.testing.assert_allclose(self.image("gray.onnx", "a.jpg")[0, 0], expected, atol=0.01)
        with open(self.path("a.pgm"), "w", encoding="ascii") as file:
            file.write("P2 2 2 255\n0 255 51 102\n")
        passthrough(self.path("small.onnx"), TensorProto.FLOAT, [1, 1, 2, 2])
        np.testing.assert_allclose(self.image("small.onnx", "a.pgm").ravel(), [0, 1, 0.2, 0.4], atol=1e-6)
        passthrough(self.path("bytes.onnx"), TensorProto.UINT8, ["n"])
        with open(self.path("a.jpg"), "rb") as file:
            self.assertEqual(self.image("bytes.onnx", "a.jpg").tobytes(), file.read())
        ended = self.run_kelp("run", DIGITS, "--input", f"image=@{PICTURES}/digit_7.png", "--output", "digit", "--json")
        self.assertEqual(json.loads(ended.stdout)["outputs"][0]["data"], [7])

    def test_wrong_images_and_options_are_rejected(self):
        passthrough(self.path("flat.onnx"), TensorProto.FLOAT, ["n", "m"])
        picture = f"@{PICTURES}/digit_7.png"
        self.refuse(1, "an image has 3 or 4", "run", self.path("flat.onnx"), "--input", f"x={picture}")
        for option, value, message in (("size", "8", "expected HEIGHTxWIDTH"), ("mean", "1,2", "one for each channel"), ("scale", "1/0", "a fraction")):
            self.refuse(1, message, "run", DIGITS, "--input", f"image={picture}", f"--image-{option}", value)
        self.refuse(2, "expected stretch|crop", "run", DIGITS, "--input", f"image={picture}", "--image-fit", "pad")
        with open(self.path("cut.png"), "wb") as out, open(f"{PICTURES}/digit_7.png", "rb") as file:
            out.write(file.read()[:60])
        self.refuse(1, "cannot decode the image", "run", DIGITS, "--input", "image=@" + self.path("cut.png"))
        for name, content in (("P9.pnm", "P9 1 1"), ("P0.pnm", "P0 1 1"), ("P2x.pnm", "P2x 1 1"), ("P2", "P2")):
            with open(self.path(name), "w", encoding="ascii") as file:
                file.write(content)
            self.refuse(1, "is not a valid .npy file", "run", DIGITS, "--input", "image=@" + self.path(name))


class Top(Temporary):
    def setUp(self):
        super().setUp()
        self.server = support.Server("--model-repository", os.path.join(ROOT, "examples", "models"))
        self.addCleanup(self.server.__exit__)
        self.url = f"http://{self.server.url}"

    def test_without_a_terminal_the_view_is_printed_once(self):
        with subprocess.Popen([support.KELP, "bench", f"{self.url}/v2/models/digits", "--seconds", "3"], stdout=subprocess.DEVNULL) as load:
            time.sleep(0.5)
            ended = self.run_kelp("top", self.url + "/", "--interval", "1")
            load.wait()
        lines = ended.stdout.splitlines()
        self.assertIn(f"at {self.url}: 2 models", lines[0])
        self.assertRegex(lines[2], r"^MODEL +VERSION +STATE +REQ/S")
        self.assertRegex(lines[3], r"^addsub +1 +READY +0\.0 +0\.0 +0\.0 +- ")
        digits = lines[4].split()
        self.assertEqual(digits[:3], ["digits", "1", "READY"])
        self.assertGreater(float(digits[3]), 0)
        self.assertNotIn("\x1b", ended.stdout)

    def test_failures_are_messages(self):
        self.refuse(1, "expected a URL", "top", "localhost:8000")
        self.refuse(2, "expected 0.1 to 3600", "top", self.url, "--interval", "0")
        self.server.stop()
        self.refuse(1, "no response from", "top", self.url, "--interval", "0.1")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.path("tmux"), *map(str, words)], capture_output=True, text=True, check=False)

    def screen(self, text):
        """Waits until the screen contains a text, and returns its lines."""
        shown = ""
        deadline = time.monotonic() + support.PATIENCE_S
        while time.monotonic() < deadline:
            shown = self.tmux("capture-pane", "-p").stdout
            if text in shown:
                return shown.splitlines()
            time.sleep(0.1)
        raise AssertionError(f"the screen has no '{text}':\n{shown}")

    def test_the_view_of_a_terminal_follows_keys_size_and_server(self):
        self.assertIsNotNone(shutil.which("tmux"), "tmux is missing; scripts/deps.sh test installs it")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", 90, "-y", 10, f"'{support.KELP}' top {self.url} --interval 0.2; echo ended $?; cat")
        self.addCleanup(self.tmux, "kill-server")
        lines = self.screen("q quit  s sort (name)  space pause")
        self.assertTrue(lines[3].startswith("addsub"), lines)
        self.tmux("send-keys", "s")
        self.screen("sort (requests)")
        self.tmux("send-keys", "Space")
        self.screen("space continue")
        self.tmux("send-keys", "Space", "Down")
        self.assertTrue(self.screen("space pause")[3].startswith("digits"))
        self.tmux("resize-window", "-x", 40, "-y", 5)
        lines = self.screen("q quit")
        self.assertLessEqual(max(map(len, lines)), 40)
        self.server.stop()
        self.screen("no response from")
        self.tmux("send-keys", "q")
        self.screen("ended 0")


if __name__ == "__main__":
    support.main()
