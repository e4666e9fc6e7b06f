#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The options of gRPC's keepalive, with gRPC's Python library and Triton's client.

    test_keepalive.py --kelp PATH [unittest arguments]
"""
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import grpc
import tritonclient.grpc as triton
from tritonclient.grpc import service_pb2, service_pb2_grpc

import support

EXAMPLES = os.path.join(support.ROOT, "examples", "models")
WATCH = "/grpc.health.v1.Health/Watch"
PATIENCE_S = 60
CLIENT = "client"  # runs as one


def server(*words):
    return support.Server("--model-repository", EXAMPLES, *words)


def channel(port, **options):
    return grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc." + name.replace("http2_", "http2."), value) for name, value in options.items()])


def watch(connection):
    """Begins a call that stays open, and reads its first response."""
    call = connection.unary_stream(WATCH)(b"", timeout=PATIENCE_S)
    next(call)
    return call


class Keepalive(unittest.TestCase):
    def test_a_client_that_pings_often_is_disconnected(self):
        with server() as running, channel(running.port, keepalive_time_ms=100, keepalive_timeout_ms=10000,
                                          http2_max_pings_without_data=0) as connection:
            call = watch(connection)
            with self.assertRaises(grpc.RpcError) as caught:
                next(call)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
            self.assertIn("too_many_pings", caught.exception.details())
            # the next call uses another connection
            service_pb2_grpc.GRPCInferenceServiceStub(connection).ServerLive(service_pb2.ServerLiveRequest(), timeout=PATIENCE_S,
                                                                             wait_for_ready=True)
            self.assertEqual(running.stop(), 0)

    def test_the_options_permit_pings(self):
        for words in (["--grpc-http2-min-recv-ping-interval-without-data", "50"], ["--grpc-http2-max-ping-strikes=0"]):
            with self.subTest(words=words), server(*words) as running, \
                    channel(running.port, keepalive_time_ms=100, keepalive_timeout_ms=10000,
                            http2_max_pings_without_data=0) as connection:
                call = watch(connection)
                time.sleep(1.5)
                self.assertTrue(call.is_active())
                call.cancel()
                self.assertEqual(running.stop(), 0)

    def test_clients_with_tritons_keepalive_options_are_served(self):
        options = triton.KeepAliveOptions(keepalive_time_ms=100, keepalive_timeout_ms=10000, keepalive_permit_without_calls=True,
                                          http2_max_pings_without_data=0)
        with server("--grpc-http2-min-recv-ping-interval-without-data=50", "--grpc-keepalive-permit-without-calls=true",
                    "--grpc-keepalive-time=200", "--grpc-http2-max-pings-without-data=0") as running:
            with triton.InferenceServerClient(f"127.0.0.1:{running.port}", keepalive_options=options) as client:
                for _ in range(3):
                    self.assertTrue(client.is_server_live())
                    time.sleep(0.7)
            self.assertEqual(running.stop(), 0)

    def test_the_age_of_connections_is_limited_without_failed_calls(self):
        with server("--grpc-max-connection-age", "300", "--grpc-max-connection-age-grace", "10000") as running:
            with triton.InferenceServerClient(f"127.0.0.1:{running.port}") as client:
                end = time.monotonic() + 3
                while time.monotonic() < end:
                    self.assertTrue(client.is_server_live())
            self.assertEqual(running.stop(), 0)

    def test_calls_of_an_old_connection_end_after_the_grace_time(self):
        with server("--grpc-max-connection-age=100", "--grpc-max-connection-age-grace=300") as running, \
                channel(running.port) as connection:
            with self.assertRaises(grpc.RpcError) as caught:
                next(watch(connection))
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
            self.assertEqual(running.stop(), 0)

    def test_a_client_that_stops_is_detected(self):
        with server("--grpc-keepalive-time=200", "--grpc-keepalive-timeout=3000", "--grpc-http2-max-pings-without-data=0") as running:
            client = subprocess.Popen([sys.executable, os.path.abspath(__file__), CLIENT, str(running.port)], stdout=subprocess.PIPE)
            try:
                client.stdout.readline()
                self.assertEqual(self.connections(running.port), 1)
                client.send_signal(signal.SIGSTOP)  # it does not respond to PING any more
                end = time.monotonic() + PATIENCE_S
                while self.connections(running.port) > 0 and time.monotonic() < end:
                    time.sleep(0.05)
                self.assertEqual(self.connections(running.port), 0)
            finally:
                client.kill()
                client.wait()
                client.stdout.close()
            self.assertEqual(running.stop(), 0)

    @staticmethod
    def connections(port):
        """Returns the number of established connections of the server."""
        with open("/proc/net/tcp", encoding="utf-8") as file:
            fields = [line.split() for line in file][1:]
        return sum(1 for line in fields if line[1].endswith(f":{port:04X}") and line[3] == "01")


class Stopping(unittest.TestCase):
    def test_a_client_with_half_a_message_does_not_delay_the_stop(self):
        begun, end = threading.Event(), threading.Event()

        def messages():
            yield b""
            begun.set()
            end.wait(PATIENCE_S)

        with server() as running, channel(running.port) as connection:
            method = connection.stream_unary("/inference.GRPCInferenceService/ServerLive")
            # a unary call of two messages is an error, and one without a message waits
            waiting = connection.stream_unary("/inference.GRPCInferenceService/ModelInfer").future(
                (m for m in () if end.wait(PATIENCE_S)), timeout=PATIENCE_S)
            method.future(messages(), timeout=PATIENCE_S).result(PATIENCE_S)
            started = time.monotonic()
            self.assertEqual(running.stop(), 0)
            self.assertLess(time.monotonic() - started, 15)
            end.set()
            self.assertIsNotNone(waiting.exception(PATIENCE_S))


if __name__ == "__main__":
    if sys.argv[1:2] == [CLIENT]:
        begun_call = watch(channel(sys.argv[2]))
        print("begun", flush=True)
        time.sleep(PATIENCE_S)
    else:
        support.main()
