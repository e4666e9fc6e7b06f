#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTTP front-end as clients meet it: Triton's Python client,
and raw sockets for what a library hides.

    test_http_client.py --kelp PATH [unittest arguments]
        starts `kelp serve` on models of this repository
    test_http_client.py --url HOST:PORT [unittest arguments]
        uses a server that is already up

The server must serve the models `digits` (examples/models) and `strings`
(tests/data/models/string_identity.onnx).
"""
import argparse
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zlib

import numpy as np
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
URL = None


def read_json(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return json.load(file)


REQUEST = read_json("examples", "requests", "digits.json")
EXPECTED = read_json("examples", "requests", "digits.expected.json")
IMAGES = np.array(REQUEST["inputs"][0]["data"], dtype=np.float32).reshape(3, 1, 8, 8)
PROBABILITIES = np.array(
    next(o for o in EXPECTED["outputs"] if o["name"] == "probabilities")["data"], dtype=np.float32
).reshape(3, 10)


class Raw:
    """One connection, spoken to in bytes."""

    def __init__(self, timeout=20):
        host, port = URL.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=timeout)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def _more(self):
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(self.buffer)
        self.buffer += data

    def reply(self, body=True):
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers[name.lower()] = value.strip()
        status = int(lines[0].split(" ")[1])
        length = int(headers.get("content-length", 0)) if body and status != 100 else 0
        while len(self.buffer) < length:
            self._more()
        content, self.buffer = self.buffer[:length], self.buffer[length:]
        return status, headers, content

    def at_end(self):
        try:
            return self.buffer == b"" and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def call(method, path, body=b"", **headers):
    """One request on a connection of its own: status, headers, body."""
    if isinstance(body, (dict, list)):
        body = json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {len(body)}\r\n"
    for name, value in headers.items():
        head += f"{name.replace('_', '-')}: {value}\r\n"
    with Raw() as raw:
        raw.send(head.encode() + b"\r\n" + body)
        return raw.reply(body=method != "HEAD")


def error_of(reply):
    return json.loads(reply[2])["error"]


def infer(body, model="digits", **headers):
    return call("POST", f"/v2/models/{model}/infer", body, **headers)


def digits(**changes):
    tensor = {"name": "image", "datatype": "FP32", "shape": [3, 1, 8, 8],
              "data": IMAGES.ravel().tolist()}
    tensor.update(changes)
    return {"inputs": [{k: v for k, v in tensor.items() if v is not None}]}


class Case(unittest.TestCase):
    def near(self, found, expected=PROBABILITIES):
        np.testing.assert_allclose(np.asarray(found, dtype=np.float32).reshape(expected.shape),
                                   expected,
                                   rtol=1e-4, atol=1e-6)

    def refused(self, reply, status, *words):
        self.assertEqual(reply[0], status, reply)
        for word in words:
            self.assertIn(word, error_of(reply))


class Metadata(Case):
    def setUp(self):
        self.client = httpclient.InferenceServerClient(URL)

    def tearDown(self):
        self.client.close()

    def test_health(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready("digits"))
        self.assertTrue(self.client.is_model_ready("digits", "1"))
        self.assertFalse(self.client.is_model_ready("nobody"))
        self.assertFalse(self.client.is_model_ready("digits", "77"))

    def test_server_metadata(self):
        meta = self.client.get_server_metadata()
        self.assertTrue(meta["name"])
        self.assertIn("binary_tensor_data", meta["extensions"])

    def test_model_metadata(self):
        meta = self.client.get_model_metadata("digits")
        self.assertEqual(meta["name"], "digits")
        self.assertEqual(meta["versions"], ["1"])
        self.assertEqual([i["name"] for i in meta["inputs"]], ["image"])
        self.assertEqual(meta["inputs"][0]["datatype"], "FP32")
        self.assertEqual({o["name"] for o in meta["outputs"]}, {"probabilities", "digit"})

    def test_config(self):
        self.assertEqual(self.client.get_model_config("digits")["name"], "digits")

    def test_statistics(self):
        infer(digits())
        stats = self.client.get_inference_statistics("digits")["model_stats"][0]
        self.assertGreaterEqual(int(stats["inference_stats"]["success"]["count"]), 1)
        self.assertTrue(self.client.get_inference_statistics()["model_stats"])

    def test_repository_index(self):
        names = {m["name"] for m in self.client.get_model_repository_index()}
        self.assertIn("digits", names)

    def test_percent_decoding_of_names(self):
        self.assertEqual(call("GET", "/v2/models/d%69gits")[0], 200)
        self.assertEqual(call("GET", "/v2/models/digits%2Fready")[0], 404)
        self.assertEqual(call("GET", "/v2/models/digits%zz")[0], 400)

    def test_load_of_an_unknown_model(self):
        with self.assertRaises(InferenceServerException):
            self.client.load_model("nobody")


class Infer(Case):
    def setUp(self):
        self.client = httpclient.InferenceServerClient(URL, concurrency=4)

    def tearDown(self):
        self.client.close()

    def client_infer(self, binary_in, binary_out, **more):
        image = httpclient.InferInput("image", IMAGES.shape, "FP32")
        image.set_data_from_numpy(IMAGES, binary_data=binary_in)
        outputs = [httpclient.InferRequestedOutput("probabilities", binary_data=binary_out),
                   httpclient.InferRequestedOutput("digit", binary_data=not binary_out)]
        return self.client.infer("digits", [image], outputs=outputs, **more)

    def test_binary_and_json(self):
        for binary_in in (False, True):
            for binary_out in (False, True):
                with self.subTest(binary_in=binary_in, binary_out=binary_out):
                    result = self.client_infer(binary_in, binary_out, request_id="r1")
                    self.near(result.as_numpy("probabilities"))
                    self.assertEqual(result.as_numpy("digit").tolist(), [3, 7, 4])
                    self.assertEqual(result.get_response()["id"], "r1")

    def test_all_outputs_when_none_is_named(self):
        image = httpclient.InferInput("image", IMAGES.shape, "FP32")
        image.set_data_from_numpy(IMAGES)
        self.near(self.client.infer("digits", [image]).as_numpy("probabilities"))

    def test_compression(self):
        for algorithm in ("gzip", "deflate"):
            with self.subTest(algorithm):
                result = self.client_infer(True, True, request_compression_algorithm=algorithm,
                                           response_compression_algorithm=algorithm)
                self.near(result.as_numpy("probabilities"))
        packed = gzip.compress(json.dumps(digits()).encode())
        status, headers, body = infer(packed, Content_Encoding="gzip",
                                      Accept_Encoding="deflate;q=1, gzip;q=0.1")
        self.assertEqual((status, headers["content-encoding"]), (200, "deflate"))
        self.assertEqual(json.loads(zlib.decompress(body))["model_name"], "digits")
        self.refused(infer(packed[:-20], Content_Encoding="gzip"), 400, "gzip")
        status, headers, _ = infer(packed, Content_Encoding="br")
        self.assertEqual((status, headers["accept-encoding"]), (501, "gzip, deflate"))

    def test_reply_order_and_types(self):
        status, headers, body = infer(dict(digits(), id="a\"b"))
        self.assertEqual((status, headers["content-type"]), (200, "application/json"))
        reply = json.loads(body)
        self.assertEqual(list(reply), ["id", "model_name", "model_version", "outputs"])
        self.assertEqual((reply["id"], reply["model_version"]), ("a\"b", "1"))
        self.assertNotIn(b": ", body)
        self.near(next(o["data"] for o in reply["outputs"] if o["name"] == "probabilities"))

    def test_nested_data(self):
        reply = json.loads(infer(digits(data=IMAGES.tolist()))[2])
        self.near(next(o["data"] for o in reply["outputs"] if o["name"] == "probabilities"))

    def test_members_in_any_order(self):
        text = json.dumps({"outputs": [{"name": "digit"}], "inputs": [
            {"data": IMAGES.ravel().tolist(), "shape": [3, 1, 8, 8], "datatype": "FP32",
             "name": "image"}]})
        self.assertEqual(json.loads(infer(text.encode())[2])["outputs"],
                         [{"name": "digit", "datatype": "INT64", "shape": [3], "data": [3, 7, 4]}])

    def test_raw_body(self):
        status, headers, body = infer(IMAGES[:1].tobytes(), Inference_Header_Content_Length=0)
        if status == 400 and "raw" in error_of((status, headers, body)):
            self.skipTest("a batch of variable size cannot be deduced")
        self.assertEqual(status, 200, body)
        self.assertEqual(headers["content-type"], "application/octet-stream")
        self.assertIn("inference-header-content-length", headers)

    def test_classification(self):
        # without max_batch_size the classes of the whole tensor are ranked, as in Triton
        image = httpclient.InferInput("image", IMAGES[:1].shape, "FP32")
        image.set_data_from_numpy(IMAGES[:1])
        output = httpclient.InferRequestedOutput("probabilities", class_count=2)
        found = self.client.infer("digits", [image], outputs=[output]).as_numpy("probabilities")
        first = found.ravel()[0].decode().split(":")
        self.assertEqual(int(first[1]), 3)
        self.assertAlmostEqual(float(first[0]), 0.9936965, places=4)

    def test_strings(self):
        values = np.array(["", "a", "\u00e9\u4e2d", "nul\0in", "x" * 5000], dtype=object)
        for binary in (False, True):
            s = httpclient.InferInput("s", [5], "BYTES")
            s.set_data_from_numpy(values, binary_data=binary)
            t = httpclient.InferRequestedOutput("t", binary_data=not binary)
            with self.subTest(binary=binary):
                found = self.client.infer("strings", [s], outputs=[t]).as_numpy("t")
                found = [x.decode() if isinstance(x, bytes) else x for x in found.tolist()]
                self.assertEqual(found, values.tolist())

    def test_nan_and_infinity(self):
        data = json.dumps(digits(shape=[1, 1, 8, 8],
                                 data=[float("nan"), float("-inf")] + [0.0] * 62))
        self.assertIn("NaN", data)
        self.assertEqual(infer(data.encode())[0], 200)

    def test_async(self):
        image = httpclient.InferInput("image", IMAGES.shape, "FP32")
        image.set_data_from_numpy(IMAGES)
        for handle in [self.client.async_infer("digits", [image]) for _ in range(32)]:
            self.near(handle.get_result().as_numpy("probabilities"))


class Errors(Case):
    def test_routes(self):
        self.refused(call("GET", "/nothing"), 404, "Not Found")
        self.refused(call("GET", "/v2/models"), 404, "Not Found")
        self.refused(call("GET", "/v2/"), 404, "Not Found")
        self.refused(call("GET", "/v2/models/digits/versions/x"), 404, "Not Found")
        reply = call("GET", "/v2/models/digits/infer")
        self.refused(reply, 405, "Method Not Allowed")
        self.assertEqual(reply[1]["allow"], "POST")
        self.assertEqual(call("DELETE", "/v2")[1]["allow"], "GET")
        self.refused(call("GET", "/v2/models/nobody"), 404, "nobody")
        self.refused(infer(digits(), model="nobody"), 404, "nobody")

    def test_head_has_no_body(self):
        with Raw() as raw:
            raw.send(b"HEAD /v2 HTTP/1.1\r\n\r\nGET /v2/health/live HTTP/1.1\r\n\r\n")
            self.assertEqual(raw.reply(body=False)[0], 405)
            self.assertEqual(raw.reply()[0], 200)

    def test_json(self):
        self.refused(infer(b""), 400)
        self.refused(infer(b"{"), 400, "line 1")
        self.refused(infer(b'{"inputs": [,]}'), 400, "line 1")
        self.refused(infer(b"[]"), 400, "object")
        self.refused(infer(b"{}"), 400, "inputs")
        self.refused(infer(b'{"inputs": []} x'), 400)
        self.refused(infer(b"[" * 100000), 400)
        self.refused(infer({"id": 5, "inputs": []}), 400, "id")

    def test_inputs(self):
        self.refused(infer(digits(data=[1.0, 2.0])), 400, "image", "192", "2")
        self.refused(infer(digits(data=[0.0] * 193)), 400, "image", "192", "193")
        self.refused(infer(digits(data=["x"] * 192)), 400, "image", "element 0")
        self.refused(infer(digits(data=None)), 400, "image")
        self.refused(infer(digits(shape=[3, -1, 8, 8])), 400, "image", "[3,-1,8,8]")
        self.refused(infer(digits(shape=[2 ** 40, 2 ** 40])), 400, "image")
        self.refused(infer(digits(shape=[2 ** 50], data=[1])), 400, "image")
        self.refused(infer(digits(datatype="FLOAT")), 400, "FLOAT")
        self.refused(infer(digits(name=None)), 400, "name")
        self.refused(infer(digits(datatype="INT64", data=[0.5] * 192)), 400, "integer")
        self.refused(infer(digits(datatype="INT8", data=[200] * 192)), 400, "element 0")
        self.refused(infer(digits(name="other")), 400, "other")
        self.refused(infer(digits(data=[[[[0.0]]]] * 10 + [0.0])), 400, "192", "11")
        deep = "[" * 101 + "]" * 101
        body = json.dumps(digits(data=0)).replace('"data": 0', f'"data": {deep}')
        self.refused(infer(body.encode()), 400, "100")

    def test_binary_sizes(self):
        def binary(size, sent, length=None):
            header = json.dumps(digits(data=None, parameters={"binary_data_size": size})).encode()
            return infer(header + b"\0" * sent,
                         Inference_Header_Content_Length=len(header) if length is None else length)

        self.assertEqual(binary(768, 768)[0], 200)
        self.refused(binary(764, 764), 400, "image", "764")
        self.refused(binary(768, 700), 400, "768", "700")
        self.refused(binary(768, 800), 400, "32 bytes")
        self.refused(binary(768, 768, "x"), 400, "Inference-Header-Content-Length")
        self.refused(binary(768, 768, 10 ** 6), 400, "Inference-Header-Content-Length")

    def test_parameters(self):
        self.refused(infer(dict(digits(), parameters={"triton_x": 1})), 400, "triton_x")
        self.refused(infer(dict(digits(), parameters={"priority": -1})), 400, "priority")
        self.refused(infer(dict(digits(), parameters={"own": [1]})), 400, "own")
        self.assertEqual(infer(dict(digits(),
                                    parameters={"own": 1, "b": True, "s": "x", "d": 0.5}))[0], 200)
        self.refused(infer(dict(digits(), outputs=[{"name": "nothing"}])), 400, "nothing")

    def test_too_large(self):
        with Raw() as raw:
            raw.send(b"POST /v2/models/digits/infer HTTP/1.1\r\nExpect: 100-continue\r\n"
                     b"Content-Length: 99999999999\r\n\r\n")
            status, headers, body = raw.reply()
            self.assertEqual((status, headers["connection"]), (413, "close"))
            self.assertIn("99999999999", json.loads(body)["error"])


class Connections(Case):
    LIVE = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"

    def post(self, body, extra=b""):
        return (b"POST /v2/models/digits/infer HTTP/1.1\r\n" + extra +
                b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def test_keep_alive(self):
        with Raw() as raw:
            for _ in range(5):
                raw.send(self.LIVE)
                self.assertEqual(raw.reply()[0], 200)
            raw.send(b"GET /v2 HTTP/1.1\r\nConnection: close\r\n\r\n")
            self.assertEqual(raw.reply()[1]["connection"], "close")
            self.assertTrue(raw.at_end())
        with Raw() as raw:
            raw.send(b"GET /v2 HTTP/1.0\r\n\r\n")
            self.assertEqual(raw.reply()[0], 200)
            self.assertTrue(raw.at_end())

    def test_pipelining(self):
        bodies = [json.dumps(dict(digits(), id=str(i))).encode() for i in range(20)]
        with Raw() as raw:
            raw.send(b"".join(self.post(b) + self.LIVE for b in bodies))
            for i in range(20):
                status, _, body = raw.reply()
                self.assertEqual((status, json.loads(body)["id"]), (200, str(i)))
                self.assertEqual(raw.reply()[0], 200)

    def test_pipelined_many(self):
        with Raw() as raw:
            threading.Thread(target=raw.send, args=(self.LIVE * 20000,), daemon=True).start()
            for _ in range(20000):
                self.assertEqual(raw.reply()[0], 200)

    def test_byte_by_byte(self):
        body = json.dumps(digits()).encode()
        with Raw() as raw:
            raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            text = self.post(body)
            for i in range(200):
                raw.send(text[i:i + 1])
            raw.send(text[200:])
            self.assertEqual(raw.reply()[0], 200)

    def test_chunked(self):
        body = json.dumps(digits()).encode()
        for extra in (b"", b"Content-Length: 7\r\n"):
            with Raw() as raw:
                raw.send(b"POST /v2/models/digits/infer HTTP/1.1\r\n" + extra +
                         b"Transfer-Encoding: chunked\r\n\r\n")
                for i in range(0, len(body), 100):
                    piece = body[i:i + 100]
                    raw.send(b"%x\r\n%s\r\n" % (len(piece), piece))
                raw.send(b"0\r\n\r\n")
                self.assertEqual(raw.reply()[0], 200)

    def test_expect_continue(self):
        body = json.dumps(digits()).encode()
        with Raw() as raw:
            head, _, _ = self.post(body, b"Expect: 100-continue\r\n").partition(b"\r\n\r\n")
            raw.send(head + b"\r\n\r\n")
            self.assertEqual(raw.reply()[0], 100)
            raw.send(body)
            self.assertEqual(raw.reply()[0], 200)

    def test_half_closed_client_is_answered(self):
        with Raw() as raw:
            raw.send(self.LIVE + self.LIVE)
            raw.socket.shutdown(socket.SHUT_WR)
            self.assertEqual(raw.reply()[0], 200)
            self.assertEqual(raw.reply()[0], 200)
            self.assertTrue(raw.at_end())

    def test_malformed(self):
        for text, status in ((b"GARBAGE\r\n\r\n", 400),
                             (b"GET / HTTP/1.1\r\nBad header\r\n\r\n", 400),
                             (b"GET /" + b"a" * 70000, 431),
                             (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505)):
            with Raw() as raw:
                try:
                    raw.send(text)
                except OSError:
                    pass
                reply = raw.reply()
                self.assertEqual((reply[0], reply[1]["connection"]), (status, "close"))
                self.assertTrue(error_of(reply))
                self.assertTrue(raw.at_end())

    def test_disconnects(self):
        body = json.dumps(digits()).encode()
        text = self.post(body)
        for i in range(300):
            with Raw() as raw:
                raw.send(text if i % 2 else text[:i * 3])
                if i % 5 == 0:
                    raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.assertEqual(infer(digits())[0], 200)

    def test_many_at_once(self):
        failures = []

        def work():
            try:
                with Raw() as raw:
                    for _ in range(50):
                        raw.send(self.post(json.dumps(digits()).encode()))
                        status, _, reply = raw.reply()
                        data = next(o["data"] for o in json.loads(reply)["outputs"]
                                    if o["name"] == "probabilities")
                        self.near(data)
                        assert status == 200
            except Exception as error:  # noqa: BLE001: reported below
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_large_body(self):
        count = 4000
        images = np.tile(IMAGES[:1], (count, 1, 1, 1))
        header = json.dumps({"inputs": [{"name": "image", "datatype": "FP32",
                                         "shape": list(images.shape),
                                         "parameters": {"binary_data_size": images.nbytes}}],
                             "outputs": [{"name": "digit",
                                          "parameters": {"binary_data": True}}]}).encode()
        status, headers, body = infer(header + images.tobytes(),
                                      Inference_Header_Content_Length=len(header))
        self.assertEqual(status, 200, body[:200])
        found = np.frombuffer(body[int(headers["inference-header-content-length"]):],
                              dtype=np.int64)
        self.assertEqual(found.tolist(), [3] * count)


class Server:
    def __init__(self, kelp):
        self.repository = tempfile.mkdtemp(prefix="kelp-http-")
        shutil.copytree(os.path.join(ROOT, "examples", "models", "digits"),
                        os.path.join(self.repository, "digits"))
        strings = os.path.join(self.repository, "strings", "1")
        os.makedirs(strings)
        shutil.copy(os.path.join(ROOT, "tests", "data", "models", "string_identity.onnx"),
                    os.path.join(strings, "model.onnx"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen([kelp, "serve", "--model-repository", self.repository,
                                         "--http-address", "127.0.0.1", "--http-port",
                                         str(self.port)])

    def wait(self):
        for _ in range(600):
            if self.process.poll() is not None:
                raise SystemExit(f"the server ended with {self.process.returncode}")
            try:
                if call("GET", "/v2/health/ready")[0] == 200:
                    return
            except (OSError, EOFError):
                pass
            time.sleep(0.1)
        raise SystemExit("the server did not become ready")

    def stop(self):
        """An idle keep-alive connection must not hold the server up."""
        idle = Raw()
        idle.send(b"GET /v2/health/live HTTP/1.1\r\n\r\n")
        idle.reply()
        self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = "a timeout of 30 s"
        idle.socket.close()
        shutil.rmtree(self.repository, ignore_errors=True)
        return code


def main():
    global URL
    parser = argparse.ArgumentParser()
    parser.add_argument("--kelp", default=os.environ.get("KELP_BIN"))
    parser.add_argument("--url")
    known, rest = parser.parse_known_args()
    if not known.url and not known.kelp:
        parser.error("--kelp or --url is needed")
    server = None
    if known.url:
        URL = known.url
    else:
        server = Server(known.kelp)
        URL = f"127.0.0.1:{server.port}"
        try:
            server.wait()
        except BaseException:
            server.process.kill()
            raise
    program = unittest.main(argv=[sys.argv[0]] + rest, exit=False, verbosity=2)
    code = server.stop() if server else 0
    if code:
        print(f"the server stopped with {code}", file=sys.stderr)
    return 0 if program.result.wasSuccessful() and not code else 1


if __name__ == "__main__":
    sys.exit(main())
