#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shared memory extension over HTTP, through Triton's client library and plain requests.

    test_shared_memory.py (--kelp PATH | --url http://HOST:PORT) [unittest arguments]
"""
import contextlib
import io
import json
import os
import re
import sys
import unittest
import urllib.error
import urllib.request

import numpy as np
import tritonclient.http as triton
import tritonclient.utils as triton_utils
import tritonclient.utils.shared_memory as shm

import server

TARGET = {}


def use(scheme, host, port):
    TARGET.update(url=f"{host}:{port}", base=f"{scheme}://{host}:{port}")


def call(method, path, body=None):
    """Returns the status and the body of a request."""
    data = json.dumps(body).encode() if body is not None else None if method == "GET" else b""
    request = urllib.request.Request(TARGET["base"] + path, data=data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class SharedMemory(unittest.TestCase):
    def setUp(self):
        self.client = triton.InferenceServerClient(TARGET["url"])
        self.handles = []
        self.client.unregister_system_shared_memory()

    def tearDown(self):
        self.client.unregister_system_shared_memory()
        for handle in self.handles:
            shm.destroy_shared_memory_region(handle)
        self.client.close()

    def region(self, name, byte_size, register=True):
        key = f"/kelp-test-{os.getpid()}-{name}"
        handle = shm.create_shared_memory_region(name, key, byte_size)
        self.handles.append(handle)
        if register:
            self.client.register_system_shared_memory(name, key, byte_size)
        return handle

    def test_inputs_and_outputs_are_in_regions(self):
        a, b = np.arange(16, dtype=np.float32), np.ones(16, dtype=np.float32)
        given, taken = self.region("in", 128), self.region("out", 192)
        shm.set_shared_memory_region(given, [a, b])
        inputs = [triton.InferInput("INPUT0", a.shape, "FP32"), triton.InferInput("INPUT1", b.shape, "FP32")]
        inputs[0].set_shared_memory("in", 64)
        inputs[1].set_shared_memory("in", 64, offset=64)
        outputs = [triton.InferRequestedOutput("OUTPUT0"), triton.InferRequestedOutput("OUTPUT1")]
        outputs[0].set_shared_memory("out", 64, offset=64)
        outputs[1].set_shared_memory("out", 64, offset=128)
        result = self.client.infer("addsub", inputs, outputs=outputs)
        self.assertEqual(result.get_output("OUTPUT0")["shape"], [16])
        self.assertNotIn("data", result.get_output("OUTPUT0"))
        self.assertNotIn("parameters", result.get_output("OUTPUT0"))  # Triton's C++ client needs binary_data_size in them
        np.testing.assert_array_equal(shm.get_contents_as_numpy(taken, np.float32, [16], offset=64), a + b)
        np.testing.assert_array_equal(shm.get_contents_as_numpy(taken, np.float32, [16], offset=128), a - b)

    def test_regions_and_data_can_be_mixed(self):
        a = np.arange(16, dtype=np.float32)
        given = self.region("in", 64)
        shm.set_shared_memory_region(given, [a])
        for binary in (False, True):
            inputs = [triton.InferInput("INPUT0", a.shape, "FP32"), triton.InferInput("INPUT1", a.shape, "FP32")]
            inputs[0].set_shared_memory("in", 64)
            inputs[1].set_data_from_numpy(a, binary_data=binary)
            outputs = [triton.InferRequestedOutput("OUTPUT0", binary_data=binary)]
            result = self.client.infer("addsub", inputs, outputs=outputs)
            np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + a)

    def test_strings_are_read_from_a_region(self):
        values = np.array([b"kelp", b"", b"\xc3\xa9"], dtype=np.object_)
        name = self.client.get_model_metadata("strings")["inputs"][0]["name"]
        size = sum(4 + len(value) for value in values)
        given = self.region("text", size)
        shm.set_shared_memory_region(given, [triton_utils.serialize_byte_tensor(values)])
        text = triton.InferInput(name, [3], "BYTES")
        text.set_shared_memory("text", size)
        result = self.client.infer("strings", [text])
        output = result.get_response()["outputs"][0]["name"]
        self.assertEqual(list(result.as_numpy(output)), list(values))

    def test_status_lists_regions_by_name(self):
        self.region("b", 64)
        self.region("a", 8)
        status, body = call("GET", "/v2/systemsharedmemory/status")
        key = f"/kelp-test-{os.getpid()}-"
        expected = [{"name": "a", "key": key + "a", "offset": 0, "byte_size": 8}, {"name": "b", "key": key + "b", "offset": 0, "byte_size": 64}]
        self.assertEqual((status, json.loads(body)), (200, expected))
        status, body = call("GET", "/v2/systemsharedmemory/region/b/status")
        self.assertEqual((status, json.loads(body)), (200, expected[1:]))
        self.client.unregister_system_shared_memory("a")
        self.assertEqual([region["name"] for region in self.client.get_system_shared_memory_status()], ["b"])

    def test_wrong_requests_get_clear_errors(self):
        self.region("r", 64)
        key = f"/kelp-test-{os.getpid()}-r"
        base = "/v2/systemsharedmemory"
        cases = [
            ("GET", base + "/region/unknown/status", None, 404, "Unable to find system shared memory region: 'unknown'"),
            ("POST", base + "/region/unknown/unregister", None, 200, ""),
            ("POST", base + "/register", {"key": key, "byte_size": 64}, 400, "'region name' is necessary to register"),
            ("POST", base + "/region/r/register", {"key": key, "byte_size": 64}, 409, "shared memory region 'r' already in manager"),
            ("POST", base + "/region/s/register", {"byte_size": 64}, 400, "Shared memory register request has no 'key' field"),
            ("POST", base + "/region/s/register", {"key": key}, 400, "Shared memory register request has no 'byte_size' field"),
            ("POST", base + "/region/s/register", {"key": 1, "byte_size": 64}, 400, "'key': expected a string"),
            ("POST", base + "/region/s/register", {"key": key, "byte_size": -1}, 400, "'byte_size': expected a non-negative integer"),
            ("POST", base + "/region/s/register", {"key": key, "byte_size": 65}, 400, "failed to register shared memory region 's': invalid args"),
            ("POST", base + "/region/s/register", {"key": key, "byte_size": 1, "offset": 2**64 - 1}, 400, "invalid args"),
            ("POST", base + "/region/s/register", {"key": "/none-" + key[1:], "byte_size": 1}, 400, "Unable to open shared memory region"),
            ("POST", base + "/region/s/register", {"key": "../" + key, "byte_size": 1}, 400, "invalid shm key"),
            ("POST", base + "/region/s/status", None, 405, "Method Not Allowed"),
            ("GET", base + "/region/s/register", None, 405, "Method Not Allowed"),
            ("GET", "/v2/cudasharedmemory/status", None, 200, "[]"),
            ("GET", "/v2/cudasharedmemory/region/r/status", None, 404, "Unable to find cuda shared memory region: 'r'"),
            ("POST", "/v2/cudasharedmemory/region/r/register", {"raw_handle": {"b64": ""}, "byte_size": 1, "device_id": 0}, 400,
             "failed to register CUDA shared memory region: 'r', GPUs not supported"),
            ("POST", "/v2/cudasharedmemory/unregister", None, 200, ""),
        ]
        for method, path, body, expected, words in cases:
            with self.subTest(path=path, body=body):
                status, text = call(method, path, body)
                self.assertEqual(status, expected, text)
                self.assertIn(words, text)

    def infer_with(self, input_parameters, output_parameters=None):
        body = {"inputs": [{"name": "INPUT0", "shape": [8], "datatype": "INT64", "parameters": input_parameters}],
                "outputs": [{"name": "OUTPUT0", "parameters": output_parameters or {}}]}
        return call("POST", "/v2/models/identity/infer", body)

    def test_wrong_ranges_get_clear_errors(self):
        self.region("r", 64)
        good = {"shared_memory_region": "r", "shared_memory_byte_size": 64}
        cases = [
            (good, good, 200, '"datatype":"INT64","shape":[8]}]'),
            ({**good, "shared_memory_region": "s"}, None, 404, "Unable to find shared memory region: 's'"),
            ({**good, "shared_memory_offset": 64}, None, 400, "Invalid offset for shared memory region: 'r'"),
            ({**good, "shared_memory_offset": 2**64 - 32}, None, 400, "Invalid offset for shared memory region"),
            ({**good, "shared_memory_offset": 1}, None, 400, "Invalid offset + byte size for shared memory region"),
            ({**good, "shared_memory_offset": 32, "shared_memory_byte_size": 2**64 - 32}, None, 400, "Integer overflow detected: byte_size "),
            ({**good, "shared_memory_byte_size": 32}, None, 400, "input byte size mismatch for input 'INPUT0'"),
            ({**good, "shared_memory_region": 1}, None, 400, "shared_memory_region"),
            ({**good, "binary_data_size": 64}, None, 400, "expected one of 'data'"),
            (good, {**good, "shared_memory_byte_size": 32}, 400, "should be at least 64 bytes to hold the results"),
            (good, {**good, "shared_memory_region": "s"}, 404, "Unable to find shared memory region: 's'"),
            (good, {**good, "classification": 1}, 400, "cannot be combined with 'classification'"),
            (good, {**good, "binary_data": True}, 400, "cannot be combined with 'binary_data'"),
        ]
        for given, taken, expected, words in cases:
            with self.subTest(given=given, taken=taken):
                status, text = self.infer_with(given, taken)
                self.assertEqual(status, expected, text)
                self.assertIn(words, text)

    def test_a_truncated_region_fails_requests_only(self):
        byte_size = 1 << 20
        self.region("r", byte_size)
        path = f"/dev/shm/kelp-test-{os.getpid()}-r"
        parameters = {"shared_memory_region": "r", "shared_memory_offset": byte_size // 2, "shared_memory_byte_size": 64}
        self.assertEqual(self.infer_with(parameters)[0], 200)
        os.truncate(path, 100)
        for _ in range(2):
            status, text = self.infer_with(parameters)
            self.assertEqual(status, 400, text)
            self.assertIn("shared memory region 'r' is damaged", text)
        self.assertTrue(self.client.is_server_live())
        os.truncate(path, byte_size)
        self.client.unregister_system_shared_memory("r")
        self.client.register_system_shared_memory("r", f"/kelp-test-{os.getpid()}-r", byte_size)
        self.assertEqual(self.infer_with(parameters)[0], 200)

    def test_the_example_of_the_documentation_runs(self):
        with open(os.path.join(server.cases.ROOT, "docs", "http.md"), encoding="utf-8") as page:
            blocks = [block for block in re.findall(r"```python\n(.*?)```", page.read(), re.S) if "shared_memory" in block]
        self.assertEqual(len(blocks), 1)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(blocks[0].replace("localhost:8000", TARGET["url"]), "docs/http.md", "exec"), {})
        self.assertRegex(printed.getvalue(), r"^\[\[0\.\d+ ")

    def test_regions_are_registered_again_and_again(self):
        parameters = {"shared_memory_region": "r", "shared_memory_byte_size": 64}
        self.region("r", 64)
        for _ in range(50):
            self.assertEqual(self.infer_with(parameters, parameters)[0], 200)
            self.client.unregister_system_shared_memory("r")
            self.assertEqual(self.client.get_system_shared_memory_status(), [])
            self.client.register_system_shared_memory("r", f"/kelp-test-{os.getpid()}-r", 64)


if __name__ == "__main__":
    sys.exit(server.main("__main__", use))
