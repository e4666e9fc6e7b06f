#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests HTTP/1.1 on raw sockets, since client libraries hide the details.

    test_http1.py --kelp PATH [unittest arguments]             starts `kelp serve`
    test_http1.py --url http://HOST:PORT [unittest arguments]  uses a server that is running; see server.py
"""
import json
import socket
import sys
import threading
import unittest

import cases
import server

ADDRESS = None
OPEN = []  # connections that stay open until the program ends


class Raw:
    """A connection that sends and receives bytes."""

    def __init__(self, timeout=20):
        self.socket = socket.create_connection(ADDRESS, timeout=timeout)
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


class Connections(unittest.TestCase):
    LIVE = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"

    def post(self, body, extra=b""):
        return (b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: h\r\n" + extra +
                b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def test_connections_are_kept_alive_unless_asked_otherwise(self):
        with Raw() as raw:
            for _ in range(5):
                raw.send(self.LIVE)
                self.assertEqual(raw.reply()[0], 200)
            raw.send(b"GET /v2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            self.assertEqual(raw.reply()[1]["connection"], "close")
            self.assertTrue(raw.at_end())
        with Raw() as raw:
            raw.send(b"GET /v2 HTTP/1.0\r\n\r\n")
            self.assertEqual(raw.reply()[0], 200)
            self.assertTrue(raw.at_end())

    def test_pipelined_requests_are_answered_in_order(self):
        bodies = [json.dumps(dict(cases.body_of(), id=str(i))).encode() for i in range(20)]
        with Raw() as raw:
            raw.send(b"".join(self.post(b) + self.LIVE for b in bodies))
            for i in range(20):
                status, _, body = raw.reply()
                self.assertEqual((status, json.loads(body)["id"]), (200, str(i)))
                self.assertEqual(raw.reply()[0], 200)

    def test_many_pipelined_requests_are_answered(self):
        with Raw() as raw:
            threading.Thread(target=raw.send, args=(self.LIVE * 20000,), daemon=True).start()
            for _ in range(20000):
                self.assertEqual(raw.reply()[0], 200)

    def test_a_request_may_arrive_byte_by_byte(self):
        body = json.dumps(cases.body_of()).encode()
        with Raw() as raw:
            raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            text = self.post(body)
            for i in range(200):
                raw.send(text[i:i + 1])
            raw.send(text[200:])
            self.assertEqual(raw.reply()[0], 200)

    def test_chunked_bodies_are_accepted(self):
        body = json.dumps(cases.body_of()).encode()
        for extra in (b"", b"Content-Length: 7\r\n"):
            with Raw() as raw:
                raw.send(b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: h\r\n" + extra +
                         b"Transfer-Encoding: chunked\r\n\r\n")
                for i in range(0, len(body), 100):
                    piece = body[i:i + 100]
                    raw.send(b"%x\r\n%s\r\n" % (len(piece), piece))
                raw.send(b"0\r\n\r\n")
                self.assertEqual(raw.reply()[0], 200)

    def test_expect_continue_is_answered_before_the_body(self):
        body = json.dumps(cases.body_of()).encode()
        with Raw() as raw:
            head, _, _ = self.post(body, b"Expect: 100-continue\r\n").partition(b"\r\n\r\n")
            raw.send(head + b"\r\n\r\n")
            self.assertEqual(raw.reply()[0], 100)
            raw.send(body)
            self.assertEqual(raw.reply()[0], 200)

    def test_a_client_that_closed_its_sending_side_is_answered(self):
        with Raw() as raw:
            raw.send(self.LIVE + self.LIVE)
            raw.socket.shutdown(socket.SHUT_WR)
            self.assertEqual(raw.reply()[0], 200)
            self.assertEqual(raw.reply()[0], 200)
            self.assertTrue(raw.at_end())

    def test_malformed_requests_are_rejected_and_the_connection_closed(self):
        for text, status in ((b"GARBAGE\r\n\r\n", 400),
                             (b"GET / HTTP/1.1\r\nHost: h\r\nBad header\r\n\r\n", 400),
                             (b"GET /v2 HTTP/1.1\r\n\r\n", 400),
                             (b"GET /v2 HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
                             (b"GET /" + b"a" * 70000, 431),
                             (b"PRI * HTTP/2.0\r\n\r\nno preface", 505)):
            with Raw() as raw:
                try:
                    raw.send(text)
                except OSError:
                    pass
                reply = raw.reply()
                self.assertEqual((reply[0], reply[1]["connection"]), (status, "close"))
                self.assertTrue(json.loads(reply[2])["error"])
                self.assertTrue(raw.at_end())

    def test_disconnects_at_any_point_leave_the_server_working(self):
        body = json.dumps(cases.body_of()).encode()
        text = self.post(body)
        for i in range(300):
            with Raw() as raw:
                raw.send(text if i % 2 else text[:i * 3])
                if i % 5 == 0:
                    raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        with Raw() as raw:
            raw.send(text)
            self.assertEqual(raw.reply()[0], 200)

    def test_a_head_response_has_no_body(self):
        with Raw() as raw:
            raw.send(b"HEAD /v2 HTTP/1.1\r\nHost: h\r\n\r\n" + self.LIVE)
            self.assertEqual(raw.reply(body=False)[0], 200)
            self.assertEqual(raw.reply()[0], 200)

    def test_http_1_0_needs_no_host(self):
        with Raw() as raw:
            raw.send(b"GET /v2 HTTP/1.0\r\n\r\n")
            self.assertEqual(raw.reply()[0], 200)

    def test_two_lengths_of_the_json_are_rejected(self):
        body = json.dumps(cases.body_of()).encode()
        length = b"Inference-Header-Content-Length: %d\r\n" % len(body)
        with Raw() as raw:
            raw.send(self.post(body, length) + self.post(body, length + length))
            self.assertEqual(raw.reply()[0], 200)
            status, _, content = raw.reply()
            self.assertEqual(status, 400)
            self.assertIn("two Inference-Header-Content-Length", json.loads(content)["error"])

    def test_a_body_over_the_limit_is_rejected_before_it_is_sent(self):
        with Raw() as raw:
            raw.send(b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
                     b"Content-Length: 99999999999\r\n\r\n")
            status, headers, body = raw.reply()
            self.assertEqual((status, headers["connection"]), (413, "close"))
            self.assertIn("99999999999", json.loads(body)["error"])

    def test_an_idle_connection_does_not_delay_the_stop(self):
        """Checked by main: the server must stop although this connection stays open."""
        idle = Raw()
        idle.send(self.LIVE)
        self.assertEqual(idle.reply()[0], 200)
        OPEN.append(idle)


def use(scheme, host, port):
    global ADDRESS
    assert scheme == "http", scheme
    ADDRESS = (host, port)


if __name__ == "__main__":
    sys.exit(server.main("__main__", use))
