#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ensembles of an ONNX model and of backends in C, used through Triton's HTTP client.

    test_ensembles.py --kelp PATH [unittest arguments]
"""
import os
import threading
import time
import unittest

import numpy as np
import onnxruntime
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

import support
from support import ROOT, Repository, Server

DIGITS = os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx")


def tensor(name, data_type, *dims, more=""):
    return f'{{ name: "{name}" data_type: TYPE_{data_type} dims: [ {", ".join(map(str, dims))} ] {more} }}'


def step(model, inputs, outputs):
    maps = [f'{kind}_map {{ key: "{key}" value: "{value}" }}' for kind, pairs in (("input", inputs), ("output", outputs))
            for key, value in pairs.items()]
    return f'step [ {{ model_name: "{model}" model_version: -1 {" ".join(maps)} }} ]\n'


def ensemble(inputs, outputs, *steps, more=""):
    return (f'platform: "ensemble"\n{more}input [ {", ".join(inputs)} ]\noutput [ {", ".join(outputs)} ]\n'
            f'ensemble_scheduling {{ {"".join(steps)} }}\n')


IMAGE = (-1, 1, 8, 8)
IDENTITY = ('backend: "identity"\n'
            f'input [ {tensor("INPUT0", "FP32", *IMAGE)} ]\noutput [ {tensor("OUTPUT0", "FP32", *IMAGE)} ]\n')
NUMBERS = ('backend: "identity"\n'
           f'input [ {tensor("INPUT0", "INT32", -1)} ]\noutput [ {tensor("OUTPUT0", "INT32", -1)} ]\n')
REPEAT = ('backend: "repeat"\nmodel_transaction_policy { decoupled: true }\n'
          f'input [ {tensor("IN", "INT32", -1)} ]\noutput [ {tensor("OUT", "INT32", 1)}, {tensor("IDX", "UINT32", 1)} ]\n')

# An image passes through a backend in C, then through an ONNX model; the probabilities through the backend again.
READER = ensemble([tensor("picture", "FP32", *IMAGE)],
                  [tensor("probabilities", "FP32", -1, 10), tensor("digit", "INT64", -1)],
                  step("identity", {"INPUT0": "picture"}, {"OUTPUT0": "image"}),
                  step("digits", {"image": "image"}, {"probabilities": "probabilities", "digit": "digit"}))
# (a + b) + (a - b) and (a + b) - (a - b), in batches.
TWICE = ensemble([tensor("a", "FP32", 16), tensor("b", "FP32", 16)], [tensor("a2", "FP32", 16), tensor("b2", "FP32", 16)],
                 step("addsub", {"INPUT0": "a", "INPUT1": "b"}, {"OUTPUT0": "sum", "OUTPUT1": "difference"}),
                 step("addsub", {"INPUT0": "sum", "INPUT1": "difference"}, {"OUTPUT0": "a2", "OUTPUT1": "b2"}),
                 more="max_batch_size: 4\n")
FOUR_TIMES = ensemble([tensor("a", "FP32", 16), tensor("b", "FP32", 16)], [tensor("a4", "FP32", 16)],
                      step("twice", {"a": "a", "b": "b"}, {"a2": "a2", "b2": "b2"}),
                      step("twice", {"a": "a2", "b": "b2"}, {"a2": "a4"}), more="max_batch_size: 4\n")
STREAM = ensemble([tensor("values", "INT32", -1)], [tensor("value", "INT32", 1)],
                  step("repeat", {"IN": "values"}, {"OUT": "one"}),
                  step("numbers", {"INPUT0": "one"}, {"OUTPUT0": "value"}))


def make_repository():
    repository = Repository()
    repository.example("digits")
    repository.example("addsub")
    for name, config in (("identity", IDENTITY), ("numbers", NUMBERS), ("repeat", REPEAT), ("reader", READER), ("twice", TWICE),
                         ("four_times", FOUR_TIMES), ("stream", STREAM)):
        repository.add(name, config=config)
    return repository


class Ensembles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.repository = make_repository()
        cls.server = Server("--model-repository", cls.repository.path)
        cls.client = triton.InferenceServerClient(cls.server.url, connection_timeout=60, network_timeout=60)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        code = cls.server.stop()
        cls.server.__exit__()
        cls.repository.__exit__()
        if code:
            raise AssertionError(f"kelp serve ended with {code}")

    def infer(self, model, arrays, client=None, **options):
        inputs = []
        for name, array in arrays.items():
            inputs.append(triton.InferInput(name, array.shape, np_to_triton_dtype(array.dtype)))
            inputs[-1].set_data_from_numpy(array)
        return (client or self.client).infer(model, inputs, **options)

    def test_an_onnx_model_and_a_backend_give_the_results_of_the_model(self):
        images = np.random.default_rng(1).random((3, 1, 8, 8), np.float32) * 16
        result = self.infer("reader", {"picture": images}, request_id="seven")
        expected = dict(zip(("probabilities", "digit"), onnxruntime.InferenceSession(
            DIGITS, providers=["CPUExecutionProvider"]).run(["probabilities", "digit"], {"image": images})))
        np.testing.assert_allclose(result.as_numpy("probabilities"), expected["probabilities"], 1e-3, 1e-5)
        np.testing.assert_array_equal(result.as_numpy("digit"), expected["digit"])
        self.assertEqual(result.get_response()["id"], "seven")

    def test_only_requested_outputs_are_returned(self):
        images = np.zeros((1, 1, 8, 8), np.float32)
        result = self.infer("reader", {"picture": images}, outputs=[triton.InferRequestedOutput("digit")])
        self.assertEqual([output["name"] for output in result.get_response()["outputs"]], ["digit"])

    def test_batches_pass_through_ensembles_of_ensembles(self):
        a, b = (np.random.default_rng(seed).random((4, 16), np.float32) for seed in (2, 3))
        result = self.infer("four_times", {"a": a, "b": b})
        np.testing.assert_allclose(result.as_numpy("a4"), 4 * a, 1e-4)
        with self.assertRaisesRegex(InferenceServerException, "batch-size must be <= 4"):
            self.infer("four_times", {"a": np.zeros((5, 16), np.float32), "b": np.zeros((5, 16), np.float32)})

    def test_concurrent_requests_do_not_disturb_each_other(self):
        failures = []

        def send(seed):
            a, b = (np.full((2, 16), seed + offset, np.float32) for offset in (0, 1000))
            client = triton.InferenceServerClient(self.server.url, connection_timeout=60, network_timeout=60)
            for _ in range(25):
                result = self.infer("four_times", {"a": a, "b": b}, client)
                if not np.allclose(result.as_numpy("a4"), 4 * a):
                    failures.append(seed)
            client.close()

        threads = [threading.Thread(target=send, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_descriptions_contain_the_steps(self):
        metadata = self.client.get_model_metadata("reader")
        self.assertEqual(metadata["platform"], "ensemble")
        self.assertEqual(metadata["inputs"], [{"name": "picture", "datatype": "FP32", "shape": list(IMAGE)}])
        config = self.client.get_model_config("reader")
        self.assertEqual([item["model_name"] for item in config["ensemble_scheduling"]["step"]], ["identity", "digits"])
        self.assertFalse(config["model_transaction_policy"]["decoupled"])
        self.assertTrue(self.client.get_model_config("stream")["model_transaction_policy"]["decoupled"])

    def test_statistics_and_metrics_count_ensemble_and_members(self):
        before = {model: self.client.get_inference_statistics(model)["model_stats"][0] for model in ("twice", "addsub")}
        self.infer("twice", {name: np.zeros((2, 16), np.float32) for name in "ab"})
        after = {model: self.client.get_inference_statistics(model)["model_stats"][0] for model in ("twice", "addsub")}
        self.assertEqual(after["twice"]["inference_count"] - before["twice"]["inference_count"], 2)
        self.assertEqual(after["twice"]["execution_count"] - before["twice"]["execution_count"], 1)
        self.assertEqual(after["addsub"]["inference_count"] - before["addsub"]["inference_count"], 4)
        self.assertRegex(self.server.metrics(), r'nv_inference_count\{model="twice",version="1"\} [1-9]')

    def test_a_decoupled_ensemble_needs_a_streaming_protocol(self):
        result = self.infer("stream", {"values": np.array([7], np.int32)})
        np.testing.assert_array_equal(result.as_numpy("value"), [7])
        with self.assertRaisesRegex(InferenceServerException, "decoupled"):
            self.infer("stream", {"values": np.array([7, 8], np.int32)})

    def test_an_error_names_the_ensemble_and_the_step(self):
        with self.assertRaisesRegex(InferenceServerException, "unexpected shape for input 'picture' for model 'reader'"):
            self.infer("reader", {"picture": np.zeros((1, 8, 8), np.float32)})


class Loading(unittest.TestCase):
    def test_members_are_loaded_first_and_can_be_unloaded_together(self):
        with make_repository() as repository, Server("--model-repository", repository.path, "--model-control-mode",
                                                     "explicit") as server:
            client = triton.InferenceServerClient(server.url, connection_timeout=60, network_timeout=60)
            ready = lambda: {model["name"] for model in client.get_model_repository_index() if model.get("state") == "READY"}
            client.load_model("four_times")
            self.assertEqual(ready(), {"four_times", "twice", "addsub"})
            client.unload_model("addsub")
            self.assertFalse(client.is_model_ready("four_times"))
            end = time.monotonic() + 60
            while not client.is_server_ready() and time.monotonic() < end:  # the member is still being unloaded
                time.sleep(0.05)
            self.assertTrue(client.is_server_ready())
            reasons = {model["name"]: model.get("reason", "") for model in client.get_model_repository_index()}
            self.assertIn("depends on model 'addsub', which is not ready", reasons["four_times"])
            with self.assertRaisesRegex(InferenceServerException, "depends on model 'addsub'"):
                values = triton.InferInput("a", [1, 16], "FP32")
                values.set_data_from_numpy(np.zeros((1, 16), np.float32))
                other = triton.InferInput("b", [1, 16], "FP32")
                other.set_data_from_numpy(np.zeros((1, 16), np.float32))
                client.infer("four_times", [values, other])
            client.load_model("addsub")
            self.assertTrue(client.is_model_ready("four_times"))
            client.unload_model("four_times", unload_dependents=True)
            self.assertEqual(ready(), set())
            client.close()

    def test_one_wrong_ensemble_does_not_stop_the_others(self):
        with make_repository() as repository:
            repository.add("wrong", config=READER.replace('"picture" data_type: TYPE_FP32', '"picture" data_type: TYPE_FP16'))
            repository.add("above", config=ensemble([tensor("picture", "FP32", *IMAGE)], [tensor("digit", "INT64", -1)],
                                                    step("wrong", {"picture": "picture"}, {"digit": "digit"})))
            with Server("--model-repository", repository.path, "--exit-on-error=false", "--strict-readiness=false") as server:
                status, _, body = server.call("POST", "/v2/repository/index", {})
                self.assertEqual(status, 200)
                index = {model["name"]: model for model in support.json.loads(body)}
                self.assertEqual(index["reader"]["state"], "READY")
                self.assertIn("ensemble tensor 'picture': inconsistent data type: TYPE_FP16", index["wrong"]["reason"])
                self.assertIn("path: 'picture' -> step[0] 'identity'", index["wrong"]["reason"])
                self.assertIn("depends on model 'wrong'", index["above"]["reason"])
            ended = support.kelp("serve", "--model-repository", repository.path, "--http-port", "0")
            self.assertEqual(ended.returncode, 1, ended.stderr)
            self.assertIn("inconsistent data type", ended.stderr)


if __name__ == "__main__":
    support.main()
