#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A served model does not depend on its files, which may be overwritten in place while requests run.

    test_files.py --kelp PATH [unittest arguments]
"""
import os
import shutil
import tempfile
import threading
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import support
from support import Repository, Server, kelp

SIZE = 512


def weights(seed):
    return np.random.default_rng(seed).standard_normal((SIZE, SIZE)).astype(np.float32) / SIZE


def model(seed):
    """MatMul, whose weights are packed for the first batches, and Add, whose constant is used where it is mapped."""
    constants = [numpy_helper.from_array(weights(seed), "w"), numpy_helper.from_array(weights(seed + 1)[0], "b")]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["product"]), helper.make_node("Add", ["product", "b"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", SIZE])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", SIZE])], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def save(kind, seed, directory):
    """Writes the model as `kind` and returns the names of the files."""
    path = os.path.join(directory, "model.onnx")
    if kind == "external":
        onnx.save(model(seed), path, save_as_external_data=True, all_tensors_to_one_file=True, location="weights.bin", size_threshold=0)
        return ["model.onnx", "weights.bin"]
    onnx.save(model(seed), path)
    if kind == "onnx":
        return ["model.onnx"]
    plan = os.path.join(directory, "model.plan")
    ended = kelp("build", path, "-o", plan, "--min", f"x:1x{SIZE}", "--max", f"x:64x{SIZE}")
    assert ended.returncode == 0, ended.stderr
    os.remove(path)
    return ["model.plan"]


class Overwritten(unittest.TestCase):
    def infer(self, server, name, rows):
        x = np.random.default_rng(rows).standard_normal((rows, SIZE)).astype(np.float32)
        status, response = server.infer(name, {"inputs": [{"name": "x", "datatype": "FP32", "shape": list(x.shape),
                                                           "data": x.ravel().tolist()}]})
        self.assertEqual(status, 200, response)
        return x, np.array(response["outputs"][0]["data"], np.float32).reshape(rows, SIZE)

    def check(self, server, name, seed, rows):
        x, y = self.infer(server, name, rows)
        np.testing.assert_allclose(y, x @ weights(seed) + weights(seed + 1)[0], rtol=1e-3, atol=1e-4)

    def overwrite(self, kind, server, repository, replacement):
        """The server uses the old contents for old and new batch sizes, until it loads the model again."""
        directory = os.path.join(repository.path, kind, "1")
        self.check(server, kind, 1, 1)
        ended = threading.Event()
        failures = []

        def keep_asking():
            while not ended.is_set():
                try:
                    self.check(server, kind, 1, 2)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    failures.append(error)
                    return

        client = threading.Thread(target=keep_asking)
        client.start()
        for name in os.listdir(replacement):
            with open(os.path.join(replacement, name), "rb") as source, open(os.path.join(directory, name), "wb") as target:
                shutil.copyfileobj(source, target)
        ended.set()
        client.join()
        self.assertEqual(failures, [])
        for rows in (1, 3, 17, 64):
            self.check(server, kind, 1, rows)
        self.assertEqual(server.call("POST", f"/v2/repository/models/{kind}/load", {})[0], 200)
        self.check(server, kind, 5, 4)

    def test_overwritten_models_keep_their_contents_until_they_are_loaded_again(self):
        kinds = ("onnx", "external", "plan")
        with Repository() as repository, tempfile.TemporaryDirectory() as new:
            for kind in kinds:
                directory = os.path.join(repository.path, kind, "1")
                os.makedirs(directory)
                os.makedirs(os.path.join(new, kind))
                names = save(kind, 1, directory)
                save(kind, 5, os.path.join(new, kind))
                with open(os.path.join(repository.path, kind, "config.pbtxt"), "w", encoding="utf-8") as file:
                    file.write(f'backend: "kelp"\ndefault_model_filename: "{names[0]}"\n')
            with Server("--model-repository", repository.path, "--model-control-mode", "explicit", "--load-model", "*",
                        "--log-verbose", "1") as server:
                for kind in kinds:
                    with self.subTest(kind):
                        self.overwrite(kind, server, repository, os.path.join(new, kind))
                self.assertEqual(server.stop(), 0)
                self.assertIn("copied", server.log() + server.output)

    def test_a_truncated_file_does_not_end_the_server(self):
        with Repository() as repository:
            directory = os.path.join(repository.path, "onnx", "1")
            os.makedirs(directory)
            save("onnx", 1, directory)
            with Server("--model-repository", repository.path) as server:
                with open(os.path.join(directory, "model.onnx"), "wb"):
                    pass
                self.check(server, "onnx", 1, 5)
                self.assertEqual(server.stop(), 0)

    def test_map_files_is_true_or_false(self):
        for value, code in (("true", 0), ("false", 0), ("maybe", 1)):
            with Repository() as repository:
                directory = os.path.join(repository.path, "onnx", "1")
                os.makedirs(directory)
                save("onnx", 1, directory)
                with open(os.path.join(repository.path, "onnx", "config.pbtxt"), "w", encoding="utf-8") as file:
                    file.write('parameters { key: "map_files" value { string_value: "%s" } }\n' % value)
                if code != 0:
                    ended = kelp("serve", "--model-repository", repository.path, "--http-port", "0")
                    self.assertEqual(ended.returncode, code)
                    self.assertIn("'map_files' must be true or false, found 'maybe'", ended.stderr)
                    continue
                with Server("--model-repository", repository.path) as server:
                    self.check(server, "onnx", 1, 3)
                    self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    support.main()
