#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The endpoints generate and generate_stream.

    test_generate.py (--kelp PATH | --url http://HOST:PORT) [unittest arguments]
"""
import http.client
import json
import socket
import sys
import time
import unittest

import server

TARGET = {}


def use(scheme, host, port):
    TARGET.update(host=host, port=port)


def post(path, body, headers=None):
    """Returns the status, the content type and the text of the response."""
    connection = http.client.HTTPConnection(TARGET["host"], TARGET["port"], timeout=30)
    try:
        data = body if isinstance(body, (str, bytes)) else json.dumps(body)
        connection.request("POST", path, data, headers or {})
        response = connection.getresponse()
        return response.status, response.getheader("Content-Type"), response.read().decode()
    finally:
        connection.close()


def events(text):
    """Returns the objects of a stream of server-sent events."""
    parts = text.split("\n\n")
    assert parts.pop() == "", text
    assert all(part.startswith("data: ") for part in parts), text
    return [json.loads(part[len("data: "):]) for part in parts]


class Generate(unittest.TestCase):
    def test_inputs_and_outputs_are_members(self):
        status, kind, text = post("/v2/models/addsub/generate", {"INPUT0": [1, 2], "INPUT1": [3, 5], "id": "7"})
        self.assertEqual((status, kind), (200, "application/json"), text)
        self.assertEqual(list(json.loads(text)), ["OUTPUT0", "OUTPUT1", "id", "model_name", "model_version"])
        self.assertEqual(json.loads(text), {"OUTPUT0": [4.0, 7.0], "OUTPUT1": [-2.0, -3.0], "id": "7", "model_name": "addsub",
                                            "model_version": "1"})

    def test_one_element_is_a_scalar(self):
        for value in (5, [5]):
            status, _, text = post("/v2/models/identity/versions/1/generate", {"INPUT0": value})
            self.assertEqual((status, json.loads(text)["OUTPUT0"]), (200, 5))
        name = "strings"
        given = self.input_of(name)
        for value in ("é\"\\", ["é\"\\"]):
            status, _, text = post(f"/v2/models/{name}/generate", {given: value})
            self.assertIn("é\"\\", json.loads(text).values(), text)

    def input_of(self, model):
        connection = http.client.HTTPConnection(TARGET["host"], TARGET["port"], timeout=30)
        connection.request("GET", f"/v2/models/{model}")
        metadata = json.loads(connection.getresponse().read())
        connection.close()
        return metadata["inputs"][0]["name"]

    def test_parameters_may_be_nested(self):
        for body in ({"INPUT0": [1, 2], "temperature": 0.5, "stop": "x", "n": 1, "b": True},
                     {"parameters": {"INPUT0": [1, 2], "temperature": 0.5}}, {"id": "", "INPUT0": [1, 2], "parameters": {}}):
            status, _, text = post("/v2/models/identity/generate", body)
            self.assertEqual((status, json.loads(text)["OUTPUT0"]), (200, [1, 2]), text)
            self.assertNotIn("id", json.loads(text))

    def test_wrong_requests_get_clear_errors(self):
        cases = [
            ("identity", "{", 400, "line 1"),
            ("identity", "[]", 400, "expected an object"),
            ("identity", "{} x", 400, ""),
            ("identity", "", 400, "expected 1 inputs but got 0 inputs"),
            ("identity", {}, 400, "expected 1 inputs but got 0 inputs"),
            ("identity", {"INPUT0": "a"}, 400, "input 'INPUT0'"),
            ("identity", {"INPUT0": [[1], [2]], "x": None}, 400, "parameter 'x' has invalid type"),
            ("identity", {"INPUT0": 1, "x": [1]}, 400, "parameter 'x' has invalid type"),
            ("identity", {"INPUT0": 1, "parameters": {"x": {}}}, 400, "Converting keyword: 'parameters': parameter 'x' has invalid type."),
            ("identity", {"INPUT0": 1, "triton_x": 1}, 400, "reserved"),
            ("identity", {"INPUT0": 1, "parameters": 1}, 400, "Expected JSON object for keyword: 'parameters'"),
            ("identity", {"INPUT0": 1, "id": 1}, 400, "'id'"),
            ("identity", '{"INPUT0":1,"INPUT0":2}', 409, "input 'INPUT0' already exists in request"),
            ("identity", '{"INPUT0":1,"x\\u0000":2}', 400, "NUL"),
            ("digits", {"image": [1, 2, 3]}, 400, "The schema can not convert input 'image' to tensor with proper shape"),
            ("strings", {self.input_of("strings"): 5}, 400, "attempt to access JSON non-string as string"),
            ("none", {"INPUT0": 1}, 404, "none"),
        ]
        for model, body, expected, words in cases:
            for endpoint in ("generate", "generate_stream"):
                with self.subTest(model=model, body=body, endpoint=endpoint):
                    status, kind, text = post(f"/v2/models/{model}/{endpoint}", body)
                    self.assertEqual((status, kind), (expected, "application/json"), text)
                    self.assertIn(words, json.loads(text)["error"])

    def test_a_large_request_is_decoded(self):
        values = list(range(100000))
        status, _, text = post("/v2/models/identity/generate", {"INPUT0": values})
        self.assertEqual((status, json.loads(text)["OUTPUT0"]), (200, values))

    def test_other_methods_are_rejected(self):
        connection = http.client.HTTPConnection(TARGET["host"], TARGET["port"], timeout=30)
        connection.request("GET", "/v2/models/identity/generate")
        self.assertEqual(connection.getresponse().status, 405)
        connection.close()

    # The model `repeat` sends a response for each element of IN.
    def test_a_stream_has_an_event_for_each_response(self):
        for count in (0, 1, 2, 5, 1000):
            with self.subTest(count=count):
                values = list(range(10, 10 + count))
                status, kind, text = post("/v2/models/repeat/generate_stream", {"IN": values, "id": "a"})
                self.assertEqual((status, kind), (200, "text/event-stream; charset=utf-8"), text)
                self.assertEqual([event["OUT"] for event in events(text)], values)
                self.assertTrue(all(event["id"] == "a" for event in events(text)))

    def test_a_model_with_one_response_can_be_streamed(self):
        status, _, text = post("/v2/models/identity/generate_stream", {"INPUT0": [1, 2]})
        self.assertEqual((status, [event["OUTPUT0"] for event in events(text)]), (200, [[1, 2]]))

    def test_generate_requires_one_response(self):
        status, _, text = post("/v2/models/repeat/generate", {"IN": [4]})
        self.assertEqual((status, json.loads(text)["OUT"]), (200, 4), text)
        for values in ([], [1, 2], [1, 2, 3, 4]):
            status, kind, text = post("/v2/models/repeat/generate", {"IN": values})
            self.assertEqual((status, kind), (500, "application/json"), text)
            self.assertIn("generate expects model to produce exactly 1 response", json.loads(text)["error"])

    def test_streams_share_a_connection_with_other_requests(self):
        connection = http.client.HTTPConnection(TARGET["host"], TARGET["port"], timeout=30)
        for path, body in (("repeat/generate_stream", {"IN": [1, 2]}), ("identity/generate", {"INPUT0": 1})) * 3:
            connection.request("POST", "/v2/models/" + path, json.dumps(body))
            response = connection.getresponse()
            self.assertEqual(response.status, 200)
            response.read()
        connection.close()

    def test_clients_that_disconnect_do_not_disturb_others(self):
        body = json.dumps({"IN": list(range(2000))}).encode()
        head = f"POST /v2/models/repeat/generate_stream HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        for i in range(20):
            with socket.create_connection((TARGET["host"], TARGET["port"])) as client:
                client.sendall(head + body)
                if i % 2:
                    client.recv(100)
        status, _, text = post("/v2/models/repeat/generate_stream", {"IN": [1]})
        self.assertEqual((status, len(events(text))), (200, 1))

    def test_a_slow_client_gets_all_events(self):
        count = 8000
        body = json.dumps({"IN": list(range(count))}).encode()
        head = f"POST /v2/models/repeat/generate_stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        received = b""
        with socket.create_connection((TARGET["host"], TARGET["port"])) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 15)
            client.sendall(head + body)
            time.sleep(0.5)
            while part := client.recv(65536):
                received += part
        self.assertEqual(received.count(b"data: {"), count)
        self.assertTrue(received.endswith(b"0\r\n\r\n"))

    def test_a_client_that_does_not_read_is_limited(self):
        count = 500
        body = json.dumps({"IN": list(range(count)), "id": "x" * 100000}).encode()  # each event repeats the id
        head = f"POST /v2/models/repeat/generate_stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        for pause_s in 2, 10, 30:  # a slow machine may need more time to send more than the server keeps
            received = bytearray()
            with socket.create_connection((TARGET["host"], TARGET["port"])) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
                client.sendall(head + body)
                client.settimeout(60)
                time.sleep(pause_s)
                while part := client.recv(1 << 20):
                    received += part
            if received.count(b"data: {") < count:
                break
        self.assertLess(received.count(b"data: {"), count)
        self.assertIn(b'data: {"error":"the client reads too slowly', received[-400:])


if __name__ == "__main__":
    sys.exit(server.main("__main__", use))
