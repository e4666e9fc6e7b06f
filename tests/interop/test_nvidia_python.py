#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's python backend and local cache, from the wheel nvidia-pytriton 0.7.0, in `kelp serve`: a model in Python, one
that calls an ONNX model (BLS), also asynchronously, sequences; unloading ends the model's process; the cache stores responses."""
import os
import shutil
import tempfile
import threading
import time
import unittest

import interop

interop.need_nvidia()
import numpy as np  # noqa: E402
import tritonclient.http as httpclient  # noqa: E402
from tritonclient.utils import InferenceServerException  # noqa: E402

if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
    interop.skip("the stub of NVIDIA's python backend needs numpy 1.26")

PLAIN = '''
import json
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.config = json.loads(args["model_config"])
        self.factor = int(self.config["parameters"]["factor"]["string_value"])

    def execute(self, requests):
        results = []
        for request in requests:
            given = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            if (given < 0).any():
                results.append(pb_utils.InferenceResponse(error=pb_utils.TritonError("a negative number")))
                continue
            results.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", given * np.float32(self.factor))]))
        return results

    def finalize(self):
        print("bye")
'''
PLAIN_CONFIG = """
backend: "python" max_batch_size: 4
input [ { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] } ]
parameters { key: "factor" value { string_value: "3" } }
instance_group [ { kind: KIND_CPU count: 1 } ]
"""
BLS = '''
import asyncio
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    async def execute(self, requests):
        results = []
        for request in requests:
            image = pb_utils.get_input_tensor_by_name(request, "IMAGE").as_numpy()

            def ask():
                return pb_utils.InferenceRequest(model_name="digits", requested_output_names=["@OUT@"],
                                                 inputs=[pb_utils.Tensor("@IN@", image)])
            both = await asyncio.gather(ask().async_exec(), ask().async_exec())
            first = both[0]
            failed = [result.error() for result in both if result.has_error()]
            if failed:
                results.append(pb_utils.InferenceResponse(error=failed[0]))
                continue
            one = pb_utils.get_output_tensor_by_name(first, "@OUT@").as_numpy()
            two = pb_utils.get_output_tensor_by_name(both[1], "@OUT@").as_numpy()
            results.append(pb_utils.InferenceResponse([pb_utils.Tensor("SCORES", (one + two) / 2)]))
        return results
'''
BLS_SYNC = BLS.replace("async def", "def").replace("await asyncio.gather(ask().async_exec(), ask().async_exec())", "[ask().exec(), ask().exec()]")
BLS_CONFIG = """
backend: "python"
input [ { name: "IMAGE" data_type: TYPE_FP32 dims: [ -1, -1, -1, -1 ] } ]
output [ { name: "SCORES" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]
"""
# Without config.pbtxt: the model describes itself (auto_complete_config).
SELF = PLAIN.replace("    def initialize", '''    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [-1]})
        config.add_output({"name": "OUT", "data_type": "TYPE_FP32", "dims": [-1]})
        config.set_max_batch_size(0)
        return config

    def initialize''').replace('int(self.config["parameters"]["factor"]["string_value"])', "2")
# Decoupled: one response for each number.
STREAM = '''
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for value in pb_utils.get_input_tensor_by_name(request, "IN").as_numpy():
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([value * 2], dtype=np.float32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
'''
STREAM_CONFIG = """
backend: "python" model_transaction_policy { decoupled: true }
input [ { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
# Calls the decoupled model, and concatenates its responses.
COLLECT = '''
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        results = []
        for request in requests:
            given = pb_utils.get_input_tensor_by_name(request, "IN")
            parts = []
            for part in pb_utils.InferenceRequest(model_name="stream", requested_output_names=["OUT"], inputs=[given]).exec(decoupled=True):
                if part.has_error():
                    raise pb_utils.TritonModelException(part.error().message())
                if part.output_tensors():
                    parts.append(pb_utils.get_output_tensor_by_name(part, "OUT").as_numpy())
            results.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.concatenate(parts))]))
        return results
'''
COLLECT_CONFIG = STREAM_CONFIG.replace(" model_transaction_policy { decoupled: true }", "").replace("[ 1 ]", "[ -1 ]")
# The decoupled model in Python, then a backend in C and a model in Python for each of its responses.
CHAIN_CONFIG = """
input [ { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { max_inflight_requests: 3
step [ { model_name: "stream" input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "twice" } },
       { model_name: "copy" input_map { key: "INPUT0" value: "twice" } output_map { key: "OUTPUT0" value: "same" } },
       { model_name: "self" input_map { key: "IN" value: "same" } output_map { key: "OUT" value: "OUT" } } ] }
"""
# Keeps the sum of each sequence.
SEQUENCE = '''
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        results = []
        for request in requests:
            start, end, ready, sequence = (pb_utils.get_input_tensor_by_name(request, name).as_numpy().item()
                                           for name in ("START", "END", "READY", "CORRID"))
            value = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            if not ready:  # an empty slot
                results.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", value)]))
                continue
            total = value if start else self.sums[sequence] + value
            self.sums[sequence] = total
            if end:
                del self.sums[sequence]
            results.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", total),
                                                       pb_utils.Tensor("OPEN", np.array([[len(self.sums)]], dtype=np.int32))]))
        return results
'''
SEQUENCE_CONFIG = """
backend: "python"
max_batch_size: 4
input { name: "IN" data_type: TYPE_FP32 dims: 1 }
output [ { name: "OUT" data_type: TYPE_FP32 dims: 1 }, { name: "OPEN" data_type: TYPE_INT32 dims: 1 } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  STRATEGY
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
  control_input { name: "END" control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } }
  control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } }
  control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
}
"""
COPY_CONFIG = """
backend: "identity"
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
CACHED_CONFIG = PLAIN_CONFIG + "response_cache { enable: true }\n"


def infer(client, model, name, values, output):
    given = httpclient.InferInput(name, list(values.shape), {"float32": "FP32", "int32": "INT32"}[str(values.dtype)])
    given.set_data_from_numpy(values)
    return client.infer(model, [given]).as_numpy(output)


def statistics(client, model):
    return client.get_inference_statistics(model)["model_stats"][0]


class NvidiaPython(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        staged = os.path.join(cls.directory.name, "staged")
        cls.repository = os.path.join(cls.directory.name, "models")
        environment = interop.stage(staged)
        shutil.copytree(os.path.join(interop.EXAMPLES, "digits"), os.path.join(cls.repository, "digits"))
        interop.write_model(cls.repository, "plain", PLAIN_CONFIG, {"1/model.py": PLAIN})
        interop.write_model(cls.repository, "stream", STREAM_CONFIG, {"1/model.py": STREAM})
        interop.write_model(cls.repository, "collect", COLLECT_CONFIG, {"1/model.py": COLLECT})
        interop.write_model(cls.repository, "cached", CACHED_CONFIG, {"1/model.py": PLAIN})
        interop.write_model(cls.repository, "self", 'backend: "python"\n', {"1/model.py": SELF})
        # A backend written in Python, whose models contain no code.
        os.makedirs(os.path.join(staged, "backends", "scale"))
        with open(os.path.join(staged, "backends", "scale", "model.py"), "w", encoding="utf-8") as file:
            file.write(PLAIN)
        interop.write_model(cls.repository, "scaled", PLAIN_CONFIG.replace('"python"', '"scale"').replace('"3"', '"7"'), {})
        os.makedirs(os.path.join(cls.repository, "scaled", "1"), exist_ok=True)
        cls.ports = interop.free_ports(3)
        cls.server = interop.Server(
            interop.kelp_command(staged, cls.repository, cls.ports, "--model-control-mode", "explicit", "--load-model", "digits",
                                 "--load-model", "plain", "--load-model", "self", "--load-model", "cached", "--load-model", "scaled",
                                 "--cache-config", "local,size=1048576"), environment).wait_ready(cls.ports[0])
        cls.http = httpclient.InferenceServerClient(f"127.0.0.1:{cls.ports[0]}")

    @classmethod
    def tearDownClass(cls):
        cls.http.close()
        code = cls.server.stop()
        log = cls.server.text()
        cls.directory.cleanup()
        assert code == 0, f"exit code {code} after SIGTERM:\n{log}"

    def test_a_python_model_infers(self):
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(infer(self.http, "plain", "IN", values, "OUT"), values * 3)

    def test_backend_written_in_python(self):
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(infer(self.http, "scaled", "IN", values, "OUT"), values * 7)
        self.assertEqual(self.http.get_model_config("scaled")["runtime"], "model.py")

    def test_a_decoupled_model_streams(self):
        for model in ("stream", "collect"):
            self.http.load_model(model)
        values = np.arange(20, dtype=np.float32)
        np.testing.assert_array_equal(infer(self.http, "collect", "IN", values, "OUT"), values * 2)
        with self.assertRaisesRegex(InferenceServerException, "is decoupled"):
            infer(self.http, "stream", "IN", values, "OUT")
        for model in ("collect", "stream"):
            self.http.unload_model(model)

    def test_python_models_are_members_of_an_ensemble(self):
        """A model in Python collects the responses of the decoupled ensemble."""
        interop.write_model(self.repository, "copy", COPY_CONFIG)
        interop.write_model(self.repository, "chain", CHAIN_CONFIG)
        interop.write_model(self.repository, "collect_chain", COLLECT_CONFIG,
                            {"1/model.py": COLLECT.replace('"stream"', '"chain"')})
        for model in ("chain", "collect_chain"):  # the first load also loads "stream" and "copy"
            self.http.load_model(model)
        values = np.arange(30, dtype=np.float32)
        for _ in range(3):
            np.testing.assert_array_equal(infer(self.http, "collect_chain", "IN", values, "OUT"), values * 4)
        np.testing.assert_array_equal(infer(self.http, "chain", "IN", values[:1], "OUT"), values[:1] * 4)
        for model in ("collect_chain", "chain", "copy", "stream"):
            self.http.unload_model(model)

    def run_sequence(self, model, sequence, length, results):
        """Sends 1, 2, … with a client of its own; results[sequence] are the sums."""
        client, sums = httpclient.InferenceServerClient(f"127.0.0.1:{self.ports[0]}"), []
        for i in range(1, length + 1):
            given = httpclient.InferInput("IN", [1, 1], "FP32")
            given.set_data_from_numpy(np.array([[i]], dtype=np.float32))
            result = client.infer(model, [given], sequence_id=sequence, sequence_start=i == 1, sequence_end=i == length)
            sums.append(result.as_numpy("OUT").item())
        client.close()
        results[sequence] = sums, result.as_numpy("OPEN").item()

    def test_a_python_model_batches_sequences(self):
        """More sequences than slots, of several lengths, at the same time."""
        for name, strategy in (("direct", "direct { }"), ("oldest", "oldest { max_candidate_sequences: 3 preserve_ordering: true }")):
            with self.subTest(strategy=name):
                model = f"sums_{name}"
                interop.write_model(self.repository, model, SEQUENCE_CONFIG.replace("STRATEGY", strategy), {"1/model.py": SEQUENCE})
                self.http.load_model(model)
                results = {}
                threads = [threading.Thread(target=self.run_sequence, args=(model, 1001 + i, 3 + i, results)) for i in range(8)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                for i in range(8):
                    self.assertEqual(results[1001 + i][0], [k * (k + 1) / 2 for k in range(1, 4 + i)])
                self.run_sequence(model, 2001, 2, results)
                self.assertEqual(results[2001], ([1, 3], 0))  # the others have ended
                with self.assertRaisesRegex(InferenceServerException, "START"):
                    given = httpclient.InferInput("IN", [1, 1], "FP32")
                    given.set_data_from_numpy(np.ones((1, 1), dtype=np.float32))
                    self.http.infer(model, [given], sequence_id=3001)
                self.http.unload_model(model)

    def test_an_error_of_the_model_is_reported(self):
        with self.assertRaisesRegex(InferenceServerException, "a negative number"):
            infer(self.http, "plain", "IN", -np.ones((1, 2), dtype=np.float32), "OUT")

    def settled_count(self):
        """Waits, since the backend counts after its response, possibly during the next test."""
        before = -1
        while (count := statistics(self.http, "plain")["inference_count"]) != before:
            before = count
            time.sleep(0.1)
        return count

    def test_statistics_are_counted(self):
        values = np.ones((2, 3), dtype=np.float32)
        before = self.settled_count()
        infer(self.http, "plain", "IN", values, "OUT")
        for _ in range(100):
            after = statistics(self.http, "plain")["inference_count"]
            if after == before + 2:
                break
            time.sleep(0.02)
        self.assertEqual(after, before + 2)

    def test_a_model_completes_its_configuration(self):
        values = np.arange(4, dtype=np.float32)
        np.testing.assert_array_equal(infer(self.http, "self", "IN", values, "OUT"), values * 2)

    def test_a_model_calls_other_models(self):
        about = self.http.get_model_metadata("digits")
        names = {"@IN@": about["inputs"][0]["name"], "@OUT@": about["outputs"][0]["name"]}
        image = np.random.default_rng(1).random([max(dim, 1) for dim in about["inputs"][0]["shape"]], dtype=np.float32)
        direct = infer(self.http, "digits", names["@IN@"], image, names["@OUT@"])
        for name, code in (("bls", BLS), ("bls_sync", BLS_SYNC)):
            for mark, text in names.items():
                code = code.replace(mark, text)
            interop.write_model(self.repository, name, BLS_CONFIG, {"1/model.py": code})
            self.http.load_model(name)
            result = infer(self.http, name, "IMAGE", image, "SCORES")
            np.testing.assert_allclose(result.reshape(-1), direct.reshape(-1), rtol=1e-6)
            self.http.unload_model(name)

    def test_unload_ends_the_process(self):
        interop.write_model(self.repository, "brief", PLAIN_CONFIG, {"1/model.py": PLAIN})
        self.http.load_model("brief")
        self.assertEqual(len(self.server.children("/brief/")), 1)
        infer(self.http, "brief", "IN", np.ones((1, 2), dtype=np.float32), "OUT")
        self.http.unload_model("brief")
        for _ in range(200):
            if not self.server.children("/brief/"):
                break
            time.sleep(0.05)
        self.assertEqual(self.server.children("/brief/"), [])

    def test_a_change_of_instances_keeps_the_model(self):
        """If only the instances change, each has its own stub process, and the first one keeps its state."""
        interop.write_model(self.repository, "grows", PLAIN_CONFIG, {"1/model.py": PLAIN})
        self.http.load_model("grows")
        first = set(self.server.children("/grows/"))
        for count in (3, 2, 1):
            with open(os.path.join(self.repository, "grows", "config.pbtxt"), "w", encoding="utf-8") as file:
                file.write(PLAIN_CONFIG.replace("count: 1", f"count: {count}"))
            self.http.load_model("grows")
            processes = self.server.children("/grows/")
            self.assertEqual(len(processes), count)
            self.assertLessEqual(first, set(processes))
            values = np.arange(6, dtype=np.float32).reshape(2, 3)
            for _ in range(2 * count):
                np.testing.assert_array_equal(infer(self.http, "grows", "IN", values, "OUT"), values * 3)
        self.assertEqual(statistics(self.http, "grows")["inference_stats"]["success"]["count"], 12)
        self.http.unload_model("grows")

    def test_a_failure_to_load_is_reported(self):
        interop.write_model(self.repository, "broken", PLAIN_CONFIG, {"1/model.py": "import nothing_of_this_name\n"})
        with self.assertRaisesRegex(InferenceServerException, "nothing_of_this_name"):
            self.http.load_model("broken")

    def test_the_local_cache_stores_responses(self):
        with open(f"/proc/{self.server.process.pid}/maps", encoding="utf-8") as file:
            self.assertIn("libtritoncache_local.so", file.read())
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        for _ in range(3):
            np.testing.assert_array_equal(infer(self.http, "cached", "IN", values, "OUT"), values * 3)
        with self.assertRaises(InferenceServerException):
            infer(self.http, "cached", "IN", -values - 1, "OUT")
        with self.assertRaises(InferenceServerException):
            infer(self.http, "cached", "IN", -values - 1, "OUT")
        counted = statistics(self.http, "cached")["inference_stats"]
        self.assertEqual(counted["cache_hit"]["count"], 2)
        self.assertEqual(counted["cache_miss"]["count"], 3)
        self.assertIn('nv_cache_num_hits_per_model{model="cached",version="1"} 2', interop.get(self.ports[0], "/metrics"))


if __name__ == "__main__":
    unittest.main(argv=["test_nvidia_python.py"] + interop.REST, verbosity=2)
