#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The example backends over HTTP: in `kelp serve`, or, with KELP_NVIDIA_WHEEL set to a directory that the wheel nvidia-pytriton 0.7.0 is
unpacked in, in NVIDIA's executable with NVIDIA's library. Files, requests and expected responses are the same."""
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import support

IO = """
backend: "{backend}"
input [ {inputs} ]
output [ {outputs} ]
"""


def io(name, kind, dims):
    return f'{{ name: "{name}" data_type: TYPE_{kind} dims: {dims} }}'


def config(backend, inputs, outputs, more=""):
    return IO.format(backend=backend, inputs=", ".join(io(*i) for i in inputs), outputs=", ".join(io(*o) for o in outputs)) + more


def tensor(name, kind, shape, data):
    return {"name": name, "datatype": kind, "shape": shape, "data": data}


PAIR = [("INPUT0", "FP32", [4]), ("INPUT1", "FP32", [4])]


class NvidiaServer(support.Server):
    """NVIDIA's executable, with the interface of `support.Server`."""

    def __init__(self, wheel, repository, *words):  # pylint: disable=super-init-not-called
        wheel = os.path.abspath(wheel)
        program = os.path.join(wheel, "pytriton", "tritonserver", "bin", "tritonserver")
        libraries = os.path.join(wheel, "nvidia_pytriton.libs")
        os.chmod(program, 0o755)
        # The wheel renamed the library, but a backend needs its original name.
        self.names = tempfile.TemporaryDirectory()
        renamed = [name for name in os.listdir(libraries) if name.startswith("libtritonserver-")]
        os.symlink(os.path.join(libraries, renamed[0]), os.path.join(self.names.name, "libtritonserver.so"))
        with socket.socket() as free, socket.socket() as other:
            free.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
            self.metrics_port = other.getsockname()[1]
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [program, "--model-repository", repository, "--http-address", "127.0.0.1", "--http-port", str(self.port),
             "--backend-directory", os.path.join(os.path.dirname(os.path.dirname(support.KELP)), "backends"),
             "--allow-grpc", "false", "--metrics-port", str(self.metrics_port), *words],
            env={**os.environ, "LD_LIBRARY_PATH": f"{libraries}:{self.names.name}"},
            stdout=subprocess.DEVNULL, stderr=self.errors, stdin=subprocess.DEVNULL)
        end = time.monotonic() + support.PATIENCE_S
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"NVIDIA's server is not ready:\n{self.log()}")
            time.sleep(0.05)

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=support.PATIENCE_S) as page:
            return page.read().decode()

    def is_ready(self):
        try:
            return self.call("GET", "/v2/health/ready")[0] == 200
        except OSError:
            return False

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(support.PATIENCE_S)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.errors.close()
        self.names.cleanup()


class Backends(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.repository = support.Repository()
        add = cls.repository.add
        add("identity", config=config("identity", [("INPUT0", "INT64", [-1]), ("INPUT1", "STRING", [-1])],
                                      [("OUTPUT0", "INT64", [-1]), ("OUTPUT1", "STRING", [-1])]))
        add("optional", config="""
            backend: "identity"
            input [ { name: "INPUT0" data_type: TYPE_INT64 dims: [ -1 ] optional: true },
                    { name: "INPUT1" data_type: TYPE_INT64 dims: [ -1 ] optional: true } ]
            output [ { name: "OUTPUT0" data_type: TYPE_INT64 dims: [ -1 ] }, { name: "OUTPUT1" data_type: TYPE_INT64 dims: [ -1 ] } ]
            """)
        add("slow", config=config("identity", [("INPUT0", "INT64", [-1])], [("OUTPUT0", "INT64", [-1])],
                                  'parameters { key: "execute_delay_ms" value { string_value: "30" } }'))
        add("addsub", config=config("addsub", PAIR, [("OUTPUT0", "FP32", [4]), ("OUTPUT1", "FP32", [4])]))
        add("pipeline", config=config("pipeline", PAIR, [("OUTPUT", "FP32", [4])]))
        add("accumulator", config=config("accumulator", [("INPUT", "FP32", [1])], [("OUTPUT", "FP32", [1]), ("COUNT", "INT64", [1])]))
        add("repeat", config=config("repeat", [("IN", "INT32", [-1])], [("OUT", "INT32", [1]), ("IDX", "UINT32", [1])],
                                    "model_transaction_policy { decoupled: true }"))
        backends = os.path.join(os.path.dirname(os.path.dirname(support.KELP)), "backends")
        add("budget", config="""
            backend: "budget"
            max_batch_size: 64
            dynamic_batching { max_queue_delay_microseconds: 100000 }
            input [ { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true } ]
            output [ { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "BATCH" data_type: TYPE_INT32 dims: [ 1 ] } ]
            instance_group [ { kind: KIND_CPU count: 1 } ]
            parameters { key: "max_batch_bytes" value { string_value: "8" } }
            parameters { key: "execute_delay_ms" value { string_value: "200" } }
            parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "%s" } }
            """ % os.path.join(backends, "budget", "libtriton_budget.so"))
        # A backend of the tests: its library is in the directory of each model.
        for name in ("sleeper", "deadline", "itself", "callback_deadline", "abandon", "metrics"):
            add(name, config=config("sdkservice", [("INPUT0", "INT32", [1])], [("OUTPUT0", "INT32", [1])],
                                    "instance_group [ { kind: KIND_CPU count: 1 } ]"))
            library = "libtriton_sdkservice.so"
            os.symlink(os.path.join(os.path.dirname(backends), "backends-test", "sdkservice", library),
                       os.path.join(cls.repository.path, name, library))
        wheel = os.environ.get("KELP_NVIDIA_WHEEL")
        cls.server = NvidiaServer(wheel, cls.repository.path) if wheel else support.Server("--model-repository", cls.repository.path)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        cls.server.__exit__()
        cls.repository.__exit__()
        assert code == 0, code

    def outputs(self, model, request):
        status, response = self.server.infer(model, request)
        self.assertEqual(status, 200, response)
        return {output["name"]: output["data"] for output in response["outputs"]}

    def test_identity_returns_its_input(self):
        words = ["", "Kelp", "größer"]
        found = self.outputs("identity", {"inputs": [tensor("INPUT0", "INT64", [2], [-(2 ** 63), 2 ** 63 - 1]),
                                                     tensor("INPUT1", "BYTES", [3], words)]})
        self.assertEqual(found, {"OUTPUT0": [-(2 ** 63), 2 ** 63 - 1], "OUTPUT1": words})

    def test_identity_leaves_out_outputs_of_absent_inputs(self):
        self.assertEqual(self.outputs("optional", {"inputs": [tensor("INPUT1", "INT64", [1], [9])]}), {"OUTPUT1": [9]})

    def test_identity_echoes_parameters(self):
        status, response = self.server.infer("identity", {
            "parameters": {"echo": True, "mood": "good", "level": 7, "ratio": 0.5},
            "outputs": [{"name": "OUTPUT0"}],
            "inputs": [tensor("INPUT0", "INT64", [1], [1]), tensor("INPUT1", "BYTES", [1], ["x"])]})
        self.assertEqual(status, 200, response)
        self.assertEqual([output["name"] for output in response["outputs"]], ["OUTPUT0"])
        for name, value in (("echo", True), ("mood", "good"), ("level", 7), ("ratio", 0.5)):
            self.assertEqual(response["parameters"][name], value)

    def test_identity_executes_after_its_delay(self):
        began = time.monotonic()
        self.outputs("slow", {"inputs": [tensor("INPUT0", "INT64", [1], [1])]})
        self.assertGreaterEqual(time.monotonic() - began, 0.03)

    def test_addsub_accepts_and_returns_binary_data(self):
        data = struct.pack("<8f", 1, 2, 3, 4, 10, 20, 30, 40)
        header = ('{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[4],"parameters":{"binary_data_size":16}},'
                  '{"name":"INPUT1","datatype":"FP32","shape":[4],"parameters":{"binary_data_size":16}}]}').encode()
        status, _, body = self.server.call("POST", "/v2/models/addsub/infer", header + data,
                                           inference_header_content_length=len(header))
        self.assertEqual(status, 200, body)
        self.assertIn(b"11.0,22.0,33.0,44.0", body)
        self.assertIn(b"-9.0,-18.0,-27.0,-36.0", body)

    def test_a_pipeline_calls_other_models(self):
        inputs = [tensor("INPUT0", "FP32", [4], [5, 4, 3, 2]), tensor("INPUT1", "FP32", [4], [1, 2, 3, 4])]
        self.assertEqual(self.outputs("pipeline", {"inputs": inputs}), {"OUTPUT": [24, 12, 0, -12]})

    def test_the_accumulator_keeps_state_per_sequence(self):
        def add(sequence, value, **flags):
            return self.outputs("accumulator", {"parameters": {"sequence_id": sequence, **flags},
                                                "inputs": [tensor("INPUT", "FP32", [1], [value])]})
        self.assertEqual(add(1, 1, sequence_start=True), {"OUTPUT": [1], "COUNT": [1]})
        self.assertEqual(add("one", 100, sequence_start=True), {"OUTPUT": [100], "COUNT": [1]})
        self.assertEqual(add(1, 2), {"OUTPUT": [3], "COUNT": [2]})
        self.assertEqual(add(1, 3, sequence_end=True), {"OUTPUT": [6], "COUNT": [3]})
        self.assertEqual(add(1, 4, sequence_start=True), {"OUTPUT": [4], "COUNT": [1]})
        status, response = self.server.infer("accumulator", {"inputs": [tensor("INPUT", "FP32", [1], [1])]})
        self.assertEqual(status, 400)
        self.assertIn("no sequence id", response["error"])

    def test_a_backend_limits_its_batches_and_shows_metrics(self):
        """Of requests of 4 bytes, at most two fit into a batch of 8 bytes."""
        def ask(_):
            return self.outputs("budget", {"inputs": [tensor("INPUT", "FP32", [1, 1], [5])]})
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(ask, range(8)))
        self.assertEqual([outputs["OUTPUT"] for outputs in found], [[5]] * 8)
        batches = [outputs["BATCH"][0] for outputs in found]
        self.assertLessEqual(set(batches), {1, 2})
        self.assertIn(2, batches)
        page = self.server.metrics()
        self.assertIn("# TYPE budget_requests_total counter", page)
        self.assertIn('budget_requests_total{model="budget",version="1"} 8', page)
        self.assertIn('budget_max_batch_bytes{model="budget",version="1"} 8', page)
        self.assertIn('budget_batch_bytes_sum{model="budget",version="1"} 32', page)

    def test_calls_to_other_models_end_at_their_timeout(self):
        request = {"inputs": [tensor("INPUT0", "INT32", [1], [1])]}
        for model, text in (("deadline", "within the timeout of 0.03 s"), ("itself", "within the timeout of 0.03 s"),
                            ("callback_deadline", "the callback has code")):
            status, response = self.server.infer(model, request)
            self.assertEqual(status, 503, response)
            self.assertIn(text, response["error"])
        self.assertEqual(self.outputs("abandon", request), {"OUTPUT0": [2]})

    def test_metrics_are_checked_as_documented(self):
        self.assertEqual(self.outputs("metrics", {"inputs": [tensor("INPUT0", "INT32", [1], [1])]}), {"OUTPUT0": [4]})

    def test_a_decoupled_model_is_rejected_without_a_stream(self):
        """HTTP allows one response per request: the front-end reports that, and the server continues."""
        status, response = self.server.infer("repeat", {"inputs": [tensor("IN", "INT32", [2], [1, 2])]})
        self.assertGreaterEqual(status, 400, response)
        self.assertIn("decoupled", response["error"])

    def test_a_stream_carries_every_response(self):
        """If the front-end has streams, one carries every response and then ends."""
        status, _, body = self.server.call("POST", "/v2/models/repeat/generate_stream", {"IN": [5, 6, 7]})
        if status in (404, 405, 501):
            self.skipTest("this front-end has no generate_stream")
        self.assertEqual(status, 200, body)
        events = [json.loads(line[len(b"data: "):]) for line in body.splitlines() if line.startswith(b"data: ")]
        self.assertEqual([(event["IDX"], event["OUT"]) for event in events], [(0, 5), (1, 6), (2, 7)])
        _, _, body = self.server.call("GET", "/v2/models/repeat/stats")
        stats = json.loads(body)["model_stats"][0]
        self.assertEqual(sorted(stats["response_stats"]), ["0", "1", "2"])

    def test_statistics_are_counted_without_the_backends_help(self):
        inputs = [tensor("INPUT0", "FP32", [4], [0, 0, 0, 0]), tensor("INPUT1", "FP32", [4], [0, 0, 0, 0])]
        self.outputs("addsub", {"inputs": inputs})
        _, _, body = self.server.call("GET", "/v2/models/addsub/stats")
        stats = json.loads(body)["model_stats"][0]
        self.assertGreaterEqual(stats["inference_count"], 1)
        self.assertGreater(stats["inference_stats"]["compute_infer"]["ns"], 0)


@unittest.skipIf("KELP_NVIDIA_WHEEL" in os.environ, "NVIDIA's server has no built-in engine")
class OnnxEngine(unittest.TestCase):
    """Which engine runs models of the backend onnxruntime. The installed library is the backend identity under that name."""

    def serve(self, *words):
        backends = os.path.join(os.path.dirname(os.path.dirname(support.KELP)), "backends")
        with tempfile.TemporaryDirectory() as installed, support.Repository() as repository:
            os.mkdir(os.path.join(installed, "onnxruntime"))
            os.symlink(os.path.join(backends, "identity", "libtriton_identity.so"),
                       os.path.join(installed, "onnxruntime", "libtriton_onnxruntime.so"))
            repository.add("echo", config=config("onnxruntime", [("INPUT0", "INT64", [-1])], [("OUTPUT0", "INT64", [-1])]))
            with support.Server("--model-repository", repository.path, "--backend-directory", installed, "--exit-on-error=false",
                                "--strict-readiness=false", *words) as server:
                status, response = server.infer("echo", {"inputs": [tensor("INPUT0", "INT64", [2], [3, 4])]})
                self.assertEqual(server.stop(), 0)
                return status, response, server.output + server.log()

    def test_installed_library_is_used(self):
        status, response, log = self.serve()
        self.assertEqual(status, 200, log)
        self.assertEqual(response["outputs"][0]["data"], [3, 4])
        self.assertIn("backend 'onnxruntime': using the installed library", log)

    def test_built_in_engine_is_used_on_request(self):
        status, _, log = self.serve("--onnx-engine=builtin")
        self.assertEqual(status, 404)
        self.assertIn("backend 'onnxruntime': using the built-in engine", log)
        self.assertIn("model.onnx", log)

    def test_unknown_engine_is_rejected(self):
        result = support.kelp("serve", "--model-repository", "/nowhere", "--onnx-engine=fast")
        self.assertEqual(result.returncode, 2)
        self.assertIn("auto", result.stderr)


if __name__ == "__main__":
    support.main()
