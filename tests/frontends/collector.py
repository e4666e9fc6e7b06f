# SPDX-License-Identifier: Apache-2.0
"""A collector for tests: receives OTLP/HTTP, decodes it with the PyPI package opentelemetry-proto, and misbehaves on request."""
import gzip
import http.server
import ssl
import threading
import time

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2


class Request:
    def __init__(self, path, headers, body):
        self.path, self.headers = path, {name.lower(): value for name, value in headers.items()}
        data = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
        self.message = trace_service_pb2.ExportTraceServiceRequest.FromString(data)
        self.time = time.monotonic()

    def spans(self):
        return [span for resource in self.message.resource_spans for scope in resource.scope_spans for span in scope.spans]


class Span:
    """A span as Python values."""

    def __init__(self, message):
        self.message = message
        self.name, self.trace, self.id, self.parent = message.name, message.trace_id.hex(), message.span_id.hex(), message.parent_span_id.hex()
        self.state, self.flags, self.kind = message.trace_state, message.flags, message.kind
        self.start, self.end = message.start_time_unix_nano, message.end_time_unix_nano
        self.attributes = {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in message.attributes}
        assert len(self.attributes) == len(message.attributes), message  # the keys are unique
        self.events = [event.name for event in message.events]
        self.times = [event.time_unix_nano for event in message.events]
        self.failed, self.message_text = message.status.code == 2, message.status.message


class Collector:
    """Runs on a thread. `respond(request)` returns the status, headers and body; it may sleep."""

    def __init__(self, respond=None, port=0, certificate=None):
        self.requests = []
        self.respond = respond or (lambda request: (200, {}, b""))
        self.changed = threading.Condition()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                request = Request(self.path, self.headers, body)
                with collector.changed:
                    collector.requests.append(request)
                    collector.changed.notify_all()
                response = collector.respond(request)
                if response is None:  # dies in the middle
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx")
                    self.close_connection = True
                    return
                status, headers, body = response
                self.send_response(status)
                for name, value in {"Content-Length": len(body), **headers}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):  # a client that closes the connection
                pass

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_port
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.scheme = "https" if certificate else "http"
        self.url = f"{self.scheme}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def wait_for(self, done, patience_s=60):
        """Waits until `done()` holds, which is called after each request."""
        end = time.monotonic() + patience_s
        with self.changed:
            while not done():
                if not self.changed.wait(end - time.monotonic()):
                    raise AssertionError(f"the collector received only {[span.name for span in self.spans()]}")

    def spans(self):
        return [Span(span) for request in list(self.requests) for span in request.spans()]

    def named(self, name):
        return [span for span in self.spans() if span.name == name]

    def roots(self, count, patience_s=60):
        """Waits for `count` spans of the front end, which come after the others of their requests."""
        self.wait_for(lambda: len(self.named("InferRequest")) >= count, patience_s)
        return self.named("InferRequest")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
