#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests kelp.Server: repositories, synchronous and asynchronous requests, backends in C, and errors."""
import asyncio
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import kelp
import numpy as np
from onnx import TensorProto as T
from support import DIGITS, Interrupt, ROOT, endless, identity, main

IMAGE = np.load(ROOT + "/examples/requests/digits.npy")


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="kelp-python-")
        for name in ("digits", "addsub"):
            shutil.copytree(ROOT + "/examples/models/" + name, f"{cls.directory}/{name}")
        for name, onnx_type in (("text", T.STRING), ("bf16", T.BFLOAT16), ("half", T.FLOAT16), ("flags", T.BOOL)):
            os.makedirs(f"{cls.directory}/{name}/1")
            with open(f"{cls.directory}/{name}/1/model.onnx", "wb") as file:
                file.write(identity(onnx_type))
        cls.server = kelp.Server(cls.directory, server_id="tests")

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        shutil.rmtree(cls.directory)

    def test_a_server_lists_its_models(self):
        server = self.server
        self.assertTrue(server.live and server.ready and server.model_ready("digits"))
        self.assertEqual({m["name"]: m["state"] for m in server.models},
                         dict.fromkeys(("digits", "addsub", "text", "bf16", "half", "flags"), "READY"))
        self.assertEqual(server.metadata()["name"], "tests")
        self.assertEqual(server.metadata("digits")["inputs"][0]["name"], "image")
        self.assertEqual(server.config("addsub")["max_batch_size"], 8)
        with self.assertRaises(kelp.KelpError):
            server.metadata("nothing")

    def test_a_server_computes_what_a_session_computes(self):
        expected = kelp.InferenceSession(DIGITS).run(None, {"image": IMAGE})
        outputs = self.server.infer("digits", {"image": IMAGE}, request_id="7")
        for name, array in zip(("probabilities", "digit"), expected):
            self.assertEqual((outputs[name].dtype, outputs[name].tolist()), (array.dtype, array.tolist()))
        self.assertTrue(outputs["digit"].flags.writeable)
        self.assertEqual(outputs["probabilities"].ctypes.data % 64, 0)
        self.assertEqual(list(self.server.infer("digits", {"image": IMAGE}, ["digit"])), ["digit"])
        self.assertGreaterEqual(self.server.statistics("digits")["model_stats"][0]["inference_count"], 2)

    def test_outputs_outlive_the_server(self):
        with kelp.Server(self.directory, control="explicit", models=["digits"]) as server:
            digit = server.infer("digits", {"image": IMAGE})["digit"]
        del server
        gc.collect()
        self.assertEqual(digit.tolist(), kelp.InferenceSession(DIGITS).run(["digit"], {"image": IMAGE})[0].tolist())

    def test_a_backend_in_c_is_loaded(self):
        a, b = np.arange(32, dtype="f4").reshape(2, 16), np.full((2, 16), 3, "f4")
        outputs = self.server.infer("addsub", {"INPUT0": a, "INPUT1": b})
        self.assertEqual(outputs["OUTPUT0"].tolist(), (a + b).tolist())
        self.assertEqual(outputs["OUTPUT1"].tolist(), (a - b).tolist())

    def test_every_type_is_transferred(self):
        import ml_dtypes
        for model, x in (("text", np.array(["a", "Größe", ""], dtype=object)), ("bf16", np.array([1, -2], dtype=ml_dtypes.bfloat16)),
                         ("half", np.array([1.5, 2], "f2")), ("flags", np.array([True, False]))):
            y = self.server.infer(model, {"x": x})["y"]
            self.assertEqual((y.dtype, y.tolist()), (x.dtype, x.tolist()))

    def test_an_asynchronous_request_returns_a_future(self):
        images = np.random.default_rng(2).random((40, 1, 1, 8, 8), dtype="f4")
        session = kelp.InferenceSession(DIGITS)
        futures = [self.server.infer_async("digits", {"image": image}) for image in images]
        for image, future in zip(images, futures):
            self.assertEqual(future.result(60)["digit"].tolist(), session.run(["digit"], {"image": image})[0].tolist())

        async def gather():
            return await asyncio.gather(*(self.server.infer_async("digits", {"image": image}) for image in images[:4]))
        self.assertEqual(len(asyncio.run(gather())), 4)
        self.assertEqual(len(list(self.server.infer_stream("digits", {"image": images[0]}))), 1)

    def test_options_of_requests_are_parameters(self):
        """Editors show them, and a misspelt one is an error at once."""
        import inspect
        expected = ["version", "request_id", "sequence_id", "sequence_start", "sequence_end", "priority", "timeout_us", "parameters"]
        for function in (kelp.Server.infer, kelp.Server.infer_async, kelp.Server.infer_stream):
            found = inspect.signature(function).parameters
            self.assertEqual([name for name in found if found[name].kind is inspect.Parameter.KEYWORD_ONLY], expected)
        server = self.server
        for function in (server.infer, server.infer_async, server.infer_stream):
            self.assertRaises(TypeError, function, "digits", {"image": IMAGE}, timeout_ms=5)
        self.assertEqual(server.infer("digits", {"image": IMAGE}, version=1, priority=0, request_id="7")["digit"].shape, (len(IMAGE),))
        self.assertRaises(kelp.KelpError, server.infer, "digits", {"image": IMAGE}, version=9)
        self.assertRaises(kelp.KelpError, kelp.Server, self.directory, control="explicit", models=["addsub"], backend_directory="/nowhere")

    def test_failures_are_reported(self):
        with self.assertRaisesRegex(kelp.KelpError, "nothing") as caught:
            self.server.infer("nothing", {"image": IMAGE})
        self.assertEqual(caught.exception.code, kelp.Code.NOT_FOUND)
        for function in (self.server.infer, self.server.infer_async):
            with self.assertRaises(kelp.KelpError) as caught:
                answer = function("digits", {"image": IMAGE.astype("f8")})
                answer.result(60)
            self.assertEqual(caught.exception.code, kelp.Code.INVALID_ARGUMENT)
        with self.assertRaisesRegex(kelp.KelpError, "does not support numpy's type 'complex64'"):
            self.server.infer("digits", {"image": np.zeros(1, "c8")})
        with self.assertRaisesRegex(kelp.KelpError, "invalid control 'often'"):
            kelp.Server(self.directory, control="often")
        with self.assertRaises(kelp.KelpError):
            kelp.Server("nowhere/at/all")
        self.assertRaises(kelp.KelpError, self.server.load, "digits")


def slow_lookup(layers=12, width=1024):
    """A row of a table by its index, multiplied by a matrix many times: slow enough for requests to queue."""
    from onnx import helper, numpy_helper
    matrix = np.eye(width, dtype="f4")[::-1]
    table = np.arange(8 * width, dtype="f4").reshape(8, width)
    nodes = [helper.make_node("Gather", ["table", "id"], ["rows"]), helper.make_node("Squeeze", ["rows", "one"], ["y0"])]
    nodes += [helper.make_node("MatMul", [f"y{i}", "matrix"], [f"y{i + 1}"]) for i in range(layers)]
    nodes.append(helper.make_node("Identity", [f"y{layers}"], ["y"]))
    graph = helper.make_graph(nodes, "lookup", [helper.make_tensor_value_info("id", T.INT64, ["n", 1])],
                              [helper.make_tensor_value_info("y", T.FLOAT, ["n", width])],
                              [numpy_helper.from_array(array, name) for name, array in
                               (("table", table), ("matrix", matrix), ("one", np.array([1])))])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString(), table


class Batches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="kelp-python-")
        os.makedirs(cls.directory + "/lookup/1")
        model, cls.table = slow_lookup()
        with open(cls.directory + "/lookup/1/model.onnx", "wb") as file:
            file.write(model)
        with open(cls.directory + "/lookup/config.pbtxt", "w", encoding="utf-8") as file:
            file.write('backend: "kelp"\nmax_batch_size: 64\ndynamic_batching { }\n'
                       'parameters { key: "kelp_execute_on" value { string_value: "instance" } }\n')

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    def counts(self, server):
        [stats] = server.statistics("lookup")["model_stats"]
        batches = {batch["batch_size"]: batch["compute_infer"]["count"] for batch in stats["batch_stats"]}
        return stats["inference_count"], stats["execution_count"], stats["inference_stats"]["fail"]["count"], batches

    def test_queued_requests_run_as_batches(self):
        ids = np.random.default_rng(3).integers(0, 8, 256)
        with kelp.Server(self.directory) as server:
            futures = [server.infer_async("lookup", {"id": np.array([[i]])}) for i in ids]
            for i, future in zip(ids, futures):
                np.testing.assert_array_equal(future.result(60)["y"], self.table[i:i + 1])
            inferences, executions, failures, batches = self.counts(server)  # at once: they are counted before the responses
        self.assertEqual((inferences, failures), (256, 0))
        self.assertLess(executions, 128)  # about 6 on an idle machine
        self.assertEqual(sum(batches.values()), executions)
        self.assertEqual(sum(size * count for size, count in batches.items()), 256)
        self.assertGreater(max(batches), 8)

    def test_a_request_of_a_batch_fails_alone(self):
        with kelp.Server(self.directory) as server:
            futures = [server.infer_async("lookup", {"id": np.array([[100 if i % 10 == 3 else i % 8]])}) for i in range(100)]
            for i, future in enumerate(futures):
                if i % 10 == 3:
                    with self.assertRaisesRegex(kelp.KelpError, "100"):
                        future.result(60)
                else:
                    np.testing.assert_array_equal(future.result(60)["y"], self.table[i % 8:i % 8 + 1])
            inferences, executions, failures, _ = self.counts(server)
        self.assertEqual((inferences, failures), (90, 10))
        self.assertLess(executions, 80)

    def test_requests_of_several_rows_share_a_batch(self):
        with kelp.Server(self.directory) as server:
            sizes = [1 + i % 5 for i in range(60)]
            futures = [server.infer_async("lookup", {"id": np.arange(size).reshape(-1, 1) + i % 4}) for i, size in enumerate(sizes)]
            for i, (size, future) in enumerate(zip(sizes, futures)):
                np.testing.assert_array_equal(future.result(60)["y"], self.table[i % 4:i % 4 + size])
            inferences, executions, _, _ = self.counts(server)
        self.assertEqual(inferences, sum(sizes))
        self.assertLess(executions, 50)

    def test_a_model_with_a_fixed_first_dimension_has_no_batches(self):
        with tempfile.TemporaryDirectory() as directory:
            os.makedirs(directory + "/fixed/1")
            with open(directory + "/fixed/1/model.onnx", "wb") as file:
                file.write(identity(T.FLOAT, [3, 2]))
            with open(directory + "/fixed/config.pbtxt", "w", encoding="utf-8") as file:
                file.write('backend: "kelp"\nmax_batch_size: 4\n')
            with kelp.Server(directory, control="explicit") as server:
                with self.assertRaisesRegex(kelp.KelpError, r"(?s)max_batch_size > 0.*first dimension of input 'x', found shape \[3,2\]"):
                    server.load("fixed")


class Life(unittest.TestCase):
    def test_models_are_loaded_and_unloaded_explicitly(self):
        with kelp.Server(ROOT + "/examples/models", control="explicit") as server:
            self.assertEqual([m for m in server.models if m.get("state") == "READY"], [])
            server.load("digits")
            self.assertTrue(server.model_ready("digits"))
            server.unload("digits")
        server.close()
        with self.assertRaisesRegex(kelp.KelpError, "closed"):
            server.infer("digits", {"image": IMAGE})

    def test_closing_waits_for_running_requests(self):
        server = kelp.Server(ROOT + "/examples/models", control="explicit", models=["digits"])
        futures = [server.infer_async("digits", {"image": IMAGE}) for _ in range(20)]
        server.close()
        self.assertEqual(len([future.result(60) for future in futures]), 20)

    def test_ctrl_c_ends_a_wait(self):
        with tempfile.TemporaryDirectory() as directory:
            os.makedirs(directory + "/slow/1")
            with open(directory + "/slow/config.pbtxt", "w", encoding="utf-8") as file:
                file.write('backend: "identity"\ninput [ { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] } ]\n'
                           'output [ { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] } ]\n')
            x = np.arange(3, dtype="f4")
            with kelp.Server(directory) as server:
                self.assertEqual(server.infer("slow", {"INPUT": x})["OUTPUT"].tolist(), [0, 1, 2])
                for _ in range(2):
                    with Interrupt(self):
                        server.infer("slow", {"INPUT": x}, parameters={"delay_ms": 3600_000})
                with Interrupt(self):
                    server.infer_async("slow", {"INPUT": x}, parameters={"delay_ms": 1000}).result()
                self.assertEqual(server.infer("slow", {"INPUT": x})["OUTPUT"].tolist(), [0, 1, 2])

    def test_ctrl_c_ends_a_run_of_the_engine(self):
        with tempfile.TemporaryDirectory() as directory:
            os.makedirs(directory + "/endless/1")
            with open(directory + "/endless/1/model.onnx", "wb") as file:
                file.write(endless())
            with kelp.Server(directory) as server:
                handler = signal.getsignal(signal.SIGINT)
                for _ in range(2):
                    with Interrupt(self):
                        server.infer("endless", {"rounds": np.array(1 << 40)})
                self.assertIs(signal.getsignal(signal.SIGINT), handler)
                self.assertEqual(server.infer("endless", {"rounds": np.array(7)})["count"].tolist(), [7])

    def run_python(self, text):
        return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)

    def test_an_open_server_does_not_prevent_the_exit(self):
        ended = self.run_python("import kelp, numpy\n"
                                "s = kelp.Server('examples/models', control='explicit', models=['digits'])\n"
                                "f = s.infer_async('digits', {'image': numpy.zeros((1, 1, 8, 8), 'f4')})\n")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_symbols_are_global(self):
        ended = self.run_python("import kelp, ctypes\n"
                                "kelp.Server\n"
                                "print(bool(ctypes.CDLL(None).TRITONSERVER_ServerNew))\n")
        self.assertEqual((ended.stdout, ended.stderr), ("True\n", ""))

    def test_a_foreign_library_is_rejected(self):
        with tempfile.TemporaryDirectory() as directory:
            foreign = directory + "/libtritonserver.so"
            with open(directory + "/a.c", "w", encoding="utf-8") as file:
                file.write("int TRITONSERVER_ServerNew(void) { return 0; }\n")
            subprocess.run(["cc", "-shared", "-fPIC", "-o", foreign, directory + "/a.c"], check=True)
            ended = self.run_python("import kelp, ctypes\n"
                                    f"ctypes.CDLL({foreign!r})\n"
                                    "try:\n    kelp.Server('examples/models')\n"
                                    "except kelp.KelpError as error:\n    print(error.code.name, error)\n")
        self.assertIn("FAILED_PRECONDITION another libtritonserver.so is loaded in this process: '" + foreign, ended.stdout)


if __name__ == "__main__":
    main()
