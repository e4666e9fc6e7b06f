#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the commands run, inspect, bench and help of `kelp`. `kelp run` must compute what ONNX Runtime computes for tests/data/models.

    test_cli.py --kelp PATH [unittest arguments]
"""
import glob
import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

import numpy as np
import onnxruntime

import support
from support import MODELS, ROOT, kelp

DIGITS = os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx")
DIGITS_NPY = os.path.join(ROOT, "examples", "requests", "digits.npy")


def index(kind):
    with open(os.path.join(MODELS, "index.tsv"), encoding="utf-8") as file:
        rows = [line.split("\t") for line in file if line.strip() and not line.startswith("#")]
    return [row[0] for row in rows if row[1].strip() == kind]


def cases(directory):
    """Returns the directories with input_*.npy and expected_*.npy of a model."""
    if glob.glob(os.path.join(directory, "expected_*.npy")):
        yield directory
    for inner in sorted(glob.glob(os.path.join(directory, "*", ""))):
        yield from cases(inner.rstrip("/"))


def arrays(directory, prefix):
    found = {}
    for path in sorted(glob.glob(os.path.join(directory, f"{prefix}_*.npy"))):
        found[os.path.basename(path)[len(prefix) + 1:-4]] = path
    return found


def repeated(option, values):
    """Returns the part of a command line that gives an option each of the values."""
    return [word for value in values for word in (option, value)]


class Run(unittest.TestCase):
    def compare(self, found, expected):
        self.assertEqual(found.shape, expected.shape)
        if expected.dtype.kind in "US" or found.dtype.kind in "USO":
            self.assertEqual([as_text(x) for x in found.ravel()], [as_text(x) for x in expected.ravel()])
            return
        self.assertEqual(found.dtype, expected.dtype)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)

    def test_run_computes_what_onnx_runtime_computes(self):
        models = index("good")
        self.assertTrue(models)
        for model in models:
            directories = list(cases(os.path.join(MODELS, model[:-len(".onnx")])))
            self.assertTrue(directories, f"{model} has no expected outputs")
            for directory in directories:
                with self.subTest(model=model, case=os.path.basename(directory)), tempfile.TemporaryDirectory() as out:
                    words = []
                    for name, path in arrays(directory, "input").items():
                        words += ["--input", f"{name}=@{path}"]
                    ended = kelp("run", os.path.join(MODELS, model), *words, "--output-dir", out)
                    self.assertEqual(ended.returncode, 0, ended.stderr)
                    for name, path in arrays(directory, "expected").items():
                        self.compare(np.load(os.path.join(out, f"{name}.npy")), np.load(path))

    def test_run_classifies_digits_as_onnx_runtime(self):
        images = np.load(DIGITS_NPY)
        peer = onnxruntime.InferenceSession(DIGITS, providers=["CPUExecutionProvider"])
        expected = dict(zip(("probabilities", "digit"), peer.run(["probabilities", "digit"], {"image": images})))
        for threads in (1, 2):
            ended = kelp("run", DIGITS, "--input", f"image=@{DIGITS_NPY}", "--json", "--threads", threads)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            for output in json.loads(ended.stdout)["outputs"]:
                value = np.array(output["data"]).reshape(output["shape"])
                np.testing.assert_allclose(value, expected[output["name"]], rtol=1e-3, atol=1e-5)

    def test_fortran_order_is_transposed(self):
        images = np.load(DIGITS_NPY)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "f.npy")
            np.save(path, np.asfortranarray(images))
            plain = kelp("run", DIGITS, "--input", f"image=@{DIGITS_NPY}", "--json")
            fortran = kelp("run", DIGITS, "--input", f"image=@{path}", "--json")
            self.assertEqual(plain.returncode, 0, plain.stderr)
            self.assertEqual(fortran.stdout, plain.stdout)

    def test_outputs_are_printed_readably(self):
        ended = kelp("run", DIGITS, "--input", f"image=@{DIGITS_NPY}", "--output", "digit")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"^digit  int64 \[3\]\n \[\d \d \d\]\n$")

    def test_random_inputs_can_be_repeated_and_profiled(self):
        ended = kelp("run", DIGITS, "--random", "--shape", "image=2x1x8x8", "--repeat", 3, "--profile", "--output", "digit")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("int64 [2]", ended.stdout)
        self.assertRegex(ended.stderr, r"(?m)^kelp: 3 runs in [\d.]+ [um]?s, [\d.]+ [um]?s each$")
        whole, unit = re.search(r"3 runs in ([\d.]+) ([um]?s),", ended.stderr).groups()
        self.assertLess(float(whole) * {"us": 1e-6, "ms": 1e-3, "s": 1}[unit], support.PATIENCE_S)
        self.assertIn("operator", ended.stderr)

    def refuse(self, code, message, *words):
        ended = kelp(*words)
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        self.assertIn(message, ended.stderr)
        self.assertEqual(ended.stdout, "")

    def test_wrong_arguments_are_rejected(self):
        self.refuse(1, "missing input 'image' (float32 [-1,1,8,8])", "run", DIGITS)
        self.refuse(1, "it has 'image'", "run", DIGITS, "--input", "picture=1")
        self.refuse(1, "it has 'probabilities'", "run", DIGITS, "--random", "--output", "letter")
        self.refuse(1, "/no/such.npy", "run", DIGITS, "--input", "image=@/no/such.npy")
        self.refuse(1, "/no/such.onnx", "run", "/no/such.onnx")
        self.refuse(1, "does not start with", "run", DIGITS, "--input", f"image=@{DIGITS}")
        self.refuse(1, "invalid value 1: 'a'", "run", DIGITS, "--shape", "image=1x1x1x1", "--input", "image=a")
        self.refuse(2, "did you mean '--input'", "run", DIGITS, "--inputs", "image=1")
        self.refuse(2, "missing argument", "run")
        self.refuse(2, "did you mean 'serve'", "server")
        self.refuse(2, "did you mean 'serve'", "SERVE")
        self.refuse(2, "unknown option '--" + "x" * 300, "run", "--" + "x" * 300)
        self.refuse(2, "option '--random': expected true or false, found 'maybe'", "run", DIGITS, "--random=maybe")
        self.refuse(2, "unexpected argument 'another'", "run", DIGITS, "another")
        self.refuse(2, "did you mean '--model-repository'", "serve", "--model-repo", "x")
        self.refuse(2, "expected none|explicit|poll", "serve", "--model-control-mode", "all")
        self.refuse(2, "needs a value", "serve", "--http-port")
        self.refuse(2, "expected 0 to 65535", "serve", "--http-port", "70000")

    def test_an_input_of_wrong_type_or_shape_is_rejected(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "x.npy")
            np.save(path, np.zeros((1, 1, 8, 8)))
            self.refuse(1, "image", "run", DIGITS, "--input", f"image=@{path}")
            np.save(path, np.zeros((1, 2, 8, 8), dtype=np.float32))
            self.refuse(1, "image", "run", DIGITS, "--input", f"image=@{path}")

    def test_list_outputs_are_printed_and_written_and_list_inputs_rejected(self):
        ended = kelp("run", os.path.join(MODELS, "gives_lists.onnx"), "--input", "x=1,2,3,4")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        for words in ("parts  sequence of 2", "parts[0]  float32 [2]", "parts[1]  float32 [2]"):
            self.assertIn(words, ended.stdout)
        self.assertIn("sequence of float32", kelp("inspect", os.path.join(MODELS, "gives_lists.onnx")).stdout)
        self.refuse(1, "input 's' is a sequence", "run", os.path.join(MODELS, "lists.onnx"), "--random")
        with tempfile.TemporaryDirectory() as folder:
            ended = kelp("run", os.path.join(MODELS, "gives_lists.onnx"), "--input", "x=1,2,3,4", "--output-dir", folder)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(sorted(os.listdir(folder)), ["parts.0.npy", "parts.1.npy"])
            self.assertEqual(np.load(folder + "/parts.1.npy").size, 2)
            ended = kelp("run", os.path.join(MODELS, "gives_lists.onnx"), "--input", "x=1,2,3,4", "--output", f"parts=@{folder}/a")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(np.load(folder + "/a.0.npy").size, 2)

    def test_invalid_models_are_rejected_with_a_message(self):
        models = index("bad")
        self.assertTrue(models)
        for model in models:
            with self.subTest(model=model):
                ended = kelp("run", os.path.join(MODELS, model), "--random")
                self.assertEqual(ended.returncode, 1, ended.stdout + ended.stderr)
                self.assertIn(os.path.basename(model), ended.stderr)


def as_text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


class Inspect(unittest.TestCase):
    def test_sizes_are_readable(self):
        self.assertRegex(kelp("inspect", DIGITS).stdout, r"(?m)^  parameters  9930 \(38\.8 KiB\)$")
        self.assertRegex(kelp("inspect", os.path.join(MODELS, "gives_lists.onnx")).stdout, r"(?m)^  parameters  0 \(0 B\)$")

    def test_inspect_describes_a_model(self):
        ended = kelp("inspect", DIGITS)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        for word in ("image", "float32", "batch", "probabilities", "Conv", "parameters", "workspace", "ai.onnx"):
            self.assertIn(word, ended.stdout)

    def test_inspect_writes_json(self):
        ended = kelp("inspect", DIGITS, "--json", "--shape", "image=4x1x8x8")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        found = json.loads(ended.stdout)
        self.assertTrue(found["ready"])
        self.assertEqual(found["inputs"][0]["name"], "image")
        self.assertGreater(found["parameters"], 0)
        self.assertGreater(found["plan"]["steps"], 0)
        self.assertTrue(all(op["covered_by"] for op in found["operators"]))

    def test_dynamic_dimensions_of_1_that_the_model_does_not_take(self):
        """The model is ready; there is no memory plan until --shape gives valid shapes."""
        path = os.path.join(MODELS, "conv_pool.onnx")
        ended = kelp("inspect", path)
        self.assertEqual(ended.returncode, 0)
        self.assertIn("specify shapes with '--shape", ended.stderr)
        found = json.loads(kelp("inspect", path, "--json").stdout)
        self.assertEqual((found["ready"], found["plan"]), (True, None))
        self.assertNotIn("--shape", kelp("inspect", path, "--shape", "x=1x3x32x32").stderr)
        ended = kelp("inspect", path, "--shape", "x=1x3x1x1")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("cannot run", ended.stderr)

    def test_inspect_lists_unsupported_operators(self):
        ended = kelp("inspect", os.path.join(MODELS, "uncovered_op.onnx"))
        self.assertEqual(ended.returncode, 1)
        self.assertIn("UNSUPPORTED", ended.stdout)
        with open(os.path.join(MODELS, "uncovered_op.tsv"), encoding="utf-8") as file:
            for line in file:
                if line.strip() and not line.startswith("#"):
                    domain, op_type, version, node = line.split("\t")[:4]
                    for word in (domain, op_type, version, node):
                        self.assertIn(word, ended.stderr)


class ServeOptions(unittest.TestCase):
    """Command lines that end the server before it listens."""

    def rejected(self, code, message, *arguments):
        with self.subTest(arguments=arguments):
            ended = kelp("serve", "--model-repository", os.path.join(ROOT, "examples", "models"), "--http-port", "0", *arguments)
            self.assertEqual(ended.returncode, code, ended.stderr)
            self.assertIn(message, ended.stderr)

    def test_files_and_sockets(self):
        for line, message in (("--tls-cert x", "option '--tls-cert' requires '--tls-key'"), ("--tls-key x", "option '--tls-key' requires '--tls-cert'"),
                               ("--tls-ca x", "option '--tls-ca' requires '--tls-cert'"),
                               ("--tls-client-auth optional", "option '--tls-client-auth' requires '--tls-cert'"),
                               ("--tls-cert a --tls-key b --tls-client-auth optional", "option '--tls-client-auth optional' requires '--tls-ca'"),
                               ("--tls-cert a --tls-key b --tls-client-auth required", "option '--tls-client-auth required' requires '--tls-ca'"),
                               ("--grpc-use-ssl", "option '--grpc-use-ssl' requires '--grpc-server-cert'"),
                               ("--grpc-use-ssl --grpc-server-cert a", "option '--grpc-use-ssl' requires '--grpc-server-key'"),
                               ("--grpc-use-ssl --grpc-server-cert a --grpc-server-key b", "option '--grpc-use-ssl' requires '--grpc-port'"),
                               ("--grpc-use-ssl-mutual --grpc-server-cert a --grpc-server-key b --grpc-port 0",
                                "option '--grpc-use-ssl-mutual' requires '--grpc-root-cert'"),
                               ("--load-model digits", "option '--load-model' requires '--model-control-mode explicit'")):
            self.rejected(2, message, *line.split())
        for mode in ("9z", "0", "1000", "0660x", ""):
            self.rejected(1, f"'--http-socket-mode': expected octal permissions such as 0660, found '{mode}'", "--http-socket-mode", mode)
        self.rejected(1, "cannot read the TLS file '/no/file'", "--tls-cert", "/no/file", "--tls-key", "/no/file")

    def test_backends(self):
        for option, expected, values in (("host-policy", "expected NAME,KEY=VALUE", ("x", ",a=1", "a,b", "a=b")),
                                         ("rate-limit-resource", "expected NAME:COUNT[:DEVICE]", ("r", "r:x", ":3", "r:1:", "r:-1", "r:1:9999999999")),
                                         ("cache-config", "expected NAME,KEY=VALUE", ("local", ",a=b", "a=b", "local,size")),
                                         ("metrics-config", "expected KEY=VALUE with KEY one of", ("x", "x=1", "summary_latencies")),
                                         ("model-config-name", "expected a name", ("",))):
            for value in values:
                self.rejected(1, f"option '--{option}': {expected}", f"--{option}", value)
        for value in ("a", "a=", ",a=1", "x,a"):
            self.rejected(1, f"--backend-config option format is [NAME,]KEY=VALUE, found '{value}'", "--backend-config", value)
        self.rejected(1, "multiple cache configurations: 'other,key=1' is of a second cache", "--cache-config", "local,size=1", "--cache-config",
                      "other,key=1")
        self.rejected(1, "incompatible flags: '--response-cache-byte-size' and '--cache-config'", "--cache-config", "local,size=1",
                      "--response-cache-byte-size", "0")
        self.rejected(1, "'/no/such'", "--with-backend", "/no/such")
        for caches, message in ((("local,size=x",), "cache 'local': expected \"size\": a number of bytes, found '{\"size\":\"x\"}'"),
                                (("other,size=1",), "unable to find cache 'other'")):
            self.rejected(1, message, *repeated("--cache-config", caches))
        self.rejected(1, "metrics configuration 'summary_quantiles': expected at most 16 pairs", "--metrics-config", "summary_quantiles=x")

    def test_traces(self):
        for settings, message in ((("x",), "expected [MODE,]SETTING=VALUE, found 'x'"), (("level=",), "expected [MODE,]SETTING=VALUE, found 'level='"),
                                  (("x=1",), "unknown setting 'x=1': expected mode, level, rate, count"),
                                  (("triton,x=1",), "unknown setting 'triton,x=1': expected 'triton,file' or 'triton,log-frequency'"),
                                  (("opentelemetry,x=1",), "unknown setting 'opentelemetry,x=1': expected 'opentelemetry,NAME'"),
                                  (("other,x=1",), "unknown setting 'other,x=1': expected 'triton,SETTING' or 'opentelemetry,SETTING'"),
                                  (("mode=x",), "'mode': expected triton or opentelemetry, found 'x'"), (("level=QUIET",), "invalid trace level 'QUIET'"),
                                  (("rate=-1",), '"--trace-config rate": expected a number from 0 to 4294967295, found \'-1\''),
                                  (("count=-2",), '"--trace-config count": expected a number from -1'),
                                  (("triton,log-frequency=x",), '"--trace-config triton,log-frequency": expected a number'),
                                  (("opentelemetry,bsp_max_queue_size=0",), 'bsp_max_queue_size": expected a number from 1'),
                                  (("opentelemetry,bsp_max_export_batch_size=0",), 'bsp_max_export_batch_size": expected a number from 1'),
                                  (("opentelemetry,bsp_schedule_delay=-1",), 'bsp_schedule_delay": expected a number from 0'),
                                  (("opentelemetry,resource==x",), "'resource': expected KEY=VALUE, found '=x'"),
                                  (("mode=opentelemetry", "level=TENSORS"), "'level': expected TIMESTAMPS or OFF in the mode opentelemetry"),
                                  (("mode=opentelemetry", "level=TENSORS", "level=off", "opentelemetry,url=ftp://x"), "'opentelemetry,url': expected a URL")):
            self.rejected(1, message, *repeated("--trace-config", settings))
        self.rejected(1, "invalid trace level 'QUIET': expected OFF, TIMESTAMPS or TENSORS", "--trace-level", "QUIET")

    def test_variables_of_opentelemetry(self):
        exporter = "OTEL_EXPORTER_OTLP_"
        for name, value, message in (("OTEL_TRACES_SAMPLER", "sometimes", "expected always_on, always_off or traceidratio"),
                                     (exporter + "PROTOCOL", "grpc", "expected http/protobuf, found 'grpc'"),
                                     (exporter + "TRACES_PROTOCOL", "grpc", "expected http/protobuf, found 'grpc'"),
                                     (exporter + "COMPRESSION", "zip", "expected gzip or none, found 'zip'"),
                                     (exporter + "TIMEOUT", "x", "expected a number from 0 to 2147483647, found 'x'"),
                                     (exporter + "TIMEOUT", "-1", "expected a number from 0"), (exporter + "TIMEOUT", "2147483648", "expected a number"),
                                     (exporter + "HEADERS", "a", "expected KEY=VALUE,KEY=VALUE, found 'a'"),
                                     (exporter + "HEADERS", "a=%zz", "with percent-encoded values"), (exporter + "HEADERS", "a=b%7f", "valid headers"),
                                     (exporter + "HEADERS", "a=b%0d%0ac", "valid headers"), (exporter + "HEADERS", "a b=c", "valid headers"),
                                     (exporter + "CERTIFICATE", "/no/file", "cannot read the file '/no/file'"),
                                     ("OTEL_RESOURCE_ATTRIBUTES", "a=b,=c", "with percent-encoded values"),
                                     (exporter + "ENDPOINT", "http://", "expected a URL"), (exporter + "ENDPOINT", "http://a\x7f/", "expected a URL"),
                                     (exporter + "TRACES_ENDPOINT", "http://a:0/", "expected a URL"),
                                     (exporter + "ENDPOINT", "http://me:secret@a/", "expected a URL without user and password")):
            with self.subTest(name=name, value=value):
                ended = kelp("serve", os.path.join(ROOT, "examples", "models"), "--http-port", "0", "--trace-config", "mode=opentelemetry",
                             env={**os.environ, name: value})
                self.assertEqual(ended.returncode, 1, ended.stderr)
                self.assertIn(name, ended.stderr)
                self.assertIn(message, ended.stderr)

    def test_variables_alone_enable_tracing(self):
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://"}
        self.assertIn("expected a URL", kelp("serve", os.path.join(ROOT, "examples", "models"), "--http-port", "0", env=environment).stderr)

    def test_settings_reach_the_server(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "new \"model\".onnx")
            shutil.copy(DIGITS, file)
            with support.Server(file, "--cache-config", "local,size=1000000", "--rate-limit", "execution_count", "--rate-limit-resource", "R1:4",
                                "--rate-limit-resource", "R2:2:0", "--host-policy", "cpu,numa-node=0", "--backend-config", "x=1",
                                "--backend-config", "kelp,y=2", "--metrics-config", "summary_latencies=true",
                                "--trace-config", f"triton,file={folder}/traces", "--trace-config", "count=7", "--log-file", f"{folder}/log") as server:
                settings = json.loads(server.call("GET", "/v2/trace/setting")[2])
                self.assertEqual({name: settings[name] for name in ("trace_level", "trace_rate", "trace_count", "trace_file")},
                                 {"trace_level": ["OFF"], "trace_rate": "1000", "trace_count": "7", "trace_file": f"{folder}/traces"})
                self.assertIn("nv_inference_request_summary_us_count", server.metrics())
                self.assertEqual(json.loads(server.call("GET", "/v2/models/new%20%22model%22")[2])["name"], 'new "model"')
                self.assertEqual(server.stop(), 0)
            with support.Server(file, "--trace-config", "mode=opentelemetry", "--trace-config", "opentelemetry,url=http://127.0.0.1:9") as server:
                self.assertEqual(json.loads(server.call("GET", "/v2/trace/setting")[2])["trace_rate"], "1000")
            with open(f"{folder}/log", encoding="utf-8") as log:
                self.assertIn("response cache 'local' from the built-in caches", log.read())

    def test_a_repository_or_a_file_is_required(self):
        ended = kelp("serve")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("no model repository: expected a directory, a model file, or --model-repository DIR", ended.stderr)
        for path, message in (("/no/such/model.onnx", "cannot serve '/no/such/model.onnx': No such file"),
                              (os.path.join(ROOT, "README.md"), "README.md' cannot be served: expected a directory, or a file NAME.onnx or NAME.plan")):
            ended = kelp("serve", path)
            self.assertEqual(ended.returncode, 1, ended.stderr)
            self.assertIn(message, ended.stderr)


class Others(unittest.TestCase):
    def test_bench_reports_latencies(self):
        ended = kelp("bench", DIGITS, "--threads", "1,2", "--seconds", "0", "--json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        results = json.loads(ended.stdout)["results"]
        self.assertEqual([result["threads"] for result in results], [1, 2])
        for result in results:
            self.assertGreaterEqual(result["runs"], 10)
            self.assertGreater(result["peak_rss_bytes"], 0)
            times = [result[name + "_ns"] for name in ("min", "median", "p90", "p95", "p99", "p99_9", "max", "elapsed")]
            self.assertEqual(times, sorted(times))
            self.assertGreater(times[0], 0)
            self.assertTrue(result["min_ns"] <= result["mean_ns"] <= result["max_ns"])
            self.assertLess(result["load_ns"] + result["first_ns"], support.PATIENCE_S * 1e9)
        self.assertIn("median", kelp("bench", DIGITS, "--threads", "1", "--seconds", "0").stdout)

    def test_bench_measures_throughput_in_flight(self):
        for models in ("cpu", "null"):
            ended = kelp("bench", DIGITS, "--threads", "1,2", "--seconds", "0", "--in-flight", "3", "--models", models, "--json")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            rows = json.loads(ended.stdout)["results"]
            self.assertEqual([(row["threads"], row["in_flight"], row["copied_inputs"]) for row in rows], [(1, 3, 0), (2, 3, 0)])
            for row in rows:
                self.assertGreaterEqual(row["runs"], 10)
                self.assertAlmostEqual(row["per_second"], row["runs"] * 1e9 / row["elapsed_ns"], delta=row["per_second"] * 1e-6)
        self.assertIn("per second", kelp("bench", DIGITS, "--threads", "1", "--seconds", "0", "--in-flight", "1").stdout)
        row, = json.loads(kelp("bench", DIGITS, "--threads", "1", "--seconds", "0", "--in-flight", "1", "--json").stdout)["results"]
        self.assertEqual((row["in_flight"], "median_ns" in row), (1, False))
        for options, code, message in ((("--threads", "1,99999"), 2, "'--threads': expected at most 16 numbers from 1 to 1024, found '1,99999'"),
                                       (("--threads", "1,1x"), 2, "expected at most 16 numbers from 1 to 1024"),
                                       (("--threads", ",".join(["1"] * 17)), 2, "expected at most 16 numbers from 1 to 1024"),
                                       (("--models", "null"), 2, "'--models' requires '--in-flight'"),
                                       (("--in-flight", "2", "--profile"), 2, "exclude each other"),
                                       (("--in-flight", "2", "--models", "abacus"), 1, "no provider 'abacus' offers models"),
                                       (("--in-flight", "2", "--shape", "image=2x3"), 1, "image")):
            threads = () if "--threads" in options else ("--threads", "1")
            ended = kelp("bench", DIGITS, "--seconds", "0", *threads, *options)
            self.assertEqual((ended.returncode, message in ended.stderr), (code, True), ended.stderr)

    def test_bench_profile_names_algorithms(self):
        words = ("bench", DIGITS, "--threads", "1", "--seconds", "0", "--profile")
        ended = kelp(*words)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"(?m)^operator +algorithm +mean +share +node$")
        profile = json.loads(kelp(*words, "--json").stdout)["profile"]
        for step in profile:
            self.assertIn(f"{step['operator']}  ", ended.stdout)
            self.assertGreaterEqual(step["mean_ns"], 0)
        for operator in ("Conv", "Gemm", "MatMul"):
            for step in (s for s in profile if s["operator"].startswith(operator)):
                self.assertRegex(step["algorithm"], "^[a-z0-9_]+$")
        self.assertTrue(any(step["operator"].startswith("Conv") for step in profile))

    def test_operators_are_profiled_in_order_of_their_time(self):
        shown = kelp("run", DIGITS, "--random", "--profile", "--repeat", "3").stderr
        shares = [float(share) for share in re.findall(r"(?m)^\w+ +\d+ +[\d.]+ [num]?s +([\d.]+) %$", shown)]
        self.assertGreaterEqual(len(shares), 4, shown)
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertAlmostEqual(sum(shares), 100, delta=1)

    def test_ops_prints_the_documented_operators(self):
        with open(os.path.join(ROOT, "src", "operator", "operators.inc"), encoding="utf-8") as file:
            rows = [line.split("(")[1].split(", ") for line in file if line.startswith(("OPERATOR(", "OPERATOR_DISPATCHED("))]
        named = [name for domain, name, *_ in rows if domain != "RUNTIME"]
        listed = json.loads(kelp("ops", "--json").stdout)
        self.assertEqual(sorted(entry["name"] for entry in listed), sorted(named))
        softmax = kelp("ops", "Softmax", "--domain", "ai.onnx").stdout.split()
        self.assertEqual(softmax[:4], ["ai.onnx", "Softmax", "1+", "cpu"])
        self.assertRegex(kelp("ops", "Bernoulli").stdout, r"^ai\.onnx +Bernoulli +15\+ +cpu +kernel, random, one thread\n$")
        self.assertEqual(kelp("ops", "Conv", "Add", "--domain", "ai.onnx").stdout,
                         "ai.onnx  Add   1+  cpu  kernel, in place\nai.onnx  Conv  1+  cpu  kernel\n")
        self.assertEqual(len(kelp("ops", "--domain", "ai.onnx.preview.training").stdout.splitlines()), 4)
        for words, said in ((("Sofmax",), "operator 'Sofmax'; did you mean 'Softmax'?"), (("Abs", "Ad"), "operator 'Ad'; did you mean 'Add'?"),
                            (("--domain", "ai.onx"), "domain 'ai.onx'; did you mean 'ai.onnx'?"),
                            (("Abs", "--domain", "com.microsoft"), "operator 'Abs' in domain com.microsoft")):
            ended = kelp("ops", *words)
            self.assertEqual((ended.returncode, ended.stderr), (1, f"kelp: unknown {said}\n"))

    def test_every_command_prints_its_help(self):
        overview = kelp("help")
        self.assertEqual(overview.returncode, 0)
        for command in ("serve", "run", "inspect", "bench", "ops", "new", "completion"):
            self.assertIn(command, overview.stdout)
            for words in ((command, "--help"), ("help", command)):
                ended = kelp(*words)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertIn("Examples:", ended.stdout)
                self.assertIn("Exit codes:", ended.stdout)
                self.assertEqual(ended.stdout.count("  -h, --help"), 1)
                self.assertEqual(len(re.findall("(?m)^Options:$", ended.stdout)), 0 if command in ("serve", "run") else 1)
        self.assertEqual(kelp().returncode, 2)
        self.assertRegex(kelp("--version").stdout, r"^kelp \d+\.\d+\.\d+\n$")

    def test_shells_complete_commands_and_options(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("model-repository", kelp("completion", shell).stdout)
        self.assertEqual(kelp("completion", "csh").returncode, 2)
        for line in kelp("completion", "fish").stdout.splitlines():  # in quotes, \\' is a quote
            self.assertEqual(line.replace("\\'", "").count("'") % 2, 0, line)
        self.assertRegex(kelp("completion", "fish").stdout, "(?m)^complete .* run' -l precision -r -f -a 'f32 bf16' -d '.*'$")
        self.assertNotRegex(kelp("completion", "fish").stdout, "(?m)^complete [^@]* -a '?@")

    def test_new_projects(self):
        with tempfile.TemporaryDirectory() as folder:
            for kind, noun in (("backend", "backend"), ("kernels", "kernel library"), ("plugin", "plug-in"), ("provider", "provider")):
                place = os.path.join(folder, "deep", kind)
                ended = kelp("new", kind, "mine", "--dir", place)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertTrue(ended.stdout.startswith(f"Created {noun} 'mine' in {place}. Next steps:\n"), ended.stdout)
                self.assertIn("make install PREFIX=...", ended.stdout)
                self.assertTrue(os.access(os.path.join(place, "test.sh"), os.X_OK) or kind != "backend")
                texts = [path.read_text(encoding="utf-8") for path in pathlib.Path(place).rglob("*") if path.is_file()]
                self.assertTrue(any("mine" in text for text in texts))
                self.assertNotIn("@NAME@", ended.stdout + "".join(texts))
                self.refuse_new(1, "already exists and is not overwritten", kind, "mine", "--dir", place)
            with open(os.path.join(folder, "file"), "w", encoding="utf-8"):
                self.refuse_new(1, f"cannot create directory '{folder}/file'", "plugin", "mine", "--dir", os.path.join(folder, "file", "x"))
            ended = kelp("new", "plugin", "mine", cwd=folder)
            self.assertIn("in mine. Next steps", ended.stdout)
            self.assertTrue(os.path.exists(os.path.join(folder, "mine", "CMakeLists.txt")))
        for name in ("", "Mine", "1mine", "my-own", "x" * 65):
            self.refuse_new(2, f"invalid plug-in name '{name}': expected a lower-case letter", "plugin", name)
        for kind, name in (("plugin", "int"), ("plugin", "cpu"), ("plugin", "remote"), ("backend", "python"), ("kernels", "kelp"), ("provider", "kernels")):
            self.refuse_new(2, f"name '{name}': the name is reserved", kind, name)
        self.refuse_new(2, "unknown kind of project 'program': expected backend, kernels, plugin or provider", "program", "mine")

    def refuse_new(self, code, message, *words):
        ended = kelp("new", *words)
        self.assertEqual((ended.returncode, ended.stdout), (code, ""), ended.stderr)
        self.assertIn(message, ended.stderr)


if __name__ == "__main__":
    support.main()
