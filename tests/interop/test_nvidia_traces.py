#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces with OpenTelemetry of models in NVIDIA's python backend, from the wheel nvidia-pytriton 0.7.0: the context that a model
receives, and the spans of the models that it calls (BLS)."""
import json
import os
import shutil
import sys
import tempfile
import unittest

import interop

interop.need_nvidia()
import numpy as np  # noqa: E402
import tritonclient.http as httpclient  # noqa: E402

if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
    interop.skip("the stub of NVIDIA's python backend needs numpy 1.26")
sys.path.insert(0, os.path.join(interop.ROOT, "tests", "frontends"))
try:
    from collector import Collector  # noqa: E402
except ImportError:
    interop.skip("there is no package opentelemetry-proto")

TRACE, SPAN = "0af7651916cd43dd8448eb211c12666c", "b7ad6b7169242424"
# Returns its context, and calls the model "copy" below its own span.
MODEL = '''
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        results = []
        for request in requests:
            given = pb_utils.Tensor("INPUT0", np.ones(1, np.float32))
            called = pb_utils.InferenceRequest(model_name="copy", requested_output_names=["OUTPUT0"], inputs=[given], trace=request.trace()).exec()
            if called.has_error():
                raise pb_utils.TritonModelException(called.error().message())
            context = request.trace().get_context()
            results.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([str(context)], dtype=np.object_))]))
        return results
'''
MODEL_CONFIG = """
backend: "python"
input [ { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_STRING dims: [ -1 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
"""
COPY_CONFIG = """
backend: "identity"
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


class NvidiaTraces(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        self.collector = Collector()
        self.addCleanup(self.collector.close)
        staged, repository = os.path.join(self.directory, "staged"), os.path.join(self.directory, "models")
        environment = {**interop.stage(staged), "OTEL_BSP_SCHEDULE_DELAY": "50", "NO_PROXY": "*"}
        interop.write_model(repository, "context", MODEL_CONFIG, {"1/model.py": MODEL})
        interop.write_model(repository, "copy", COPY_CONFIG)
        ports = interop.free_ports(3)
        self.server = interop.Server(
            interop.kelp_command(staged, repository, ports, "--trace-config", "mode=opentelemetry", "--trace-config", "level=TIMESTAMPS",
                                 "--trace-config", "rate=0", "--trace-config", f"opentelemetry,url={self.collector.url}/v1/traces"),
            environment).wait_ready(ports[0])
        self.addCleanup(self.server.stop)
        self.http = httpclient.InferenceServerClient(f"127.0.0.1:{ports[0]}")
        self.addCleanup(self.http.close)

    def infer(self, **headers):
        given = httpclient.InferInput("IN", [1], "FP32")
        given.set_data_from_numpy(np.ones(1, np.float32))
        return self.http.infer("context", [given], headers=headers).as_numpy("OUT").item().decode()

    def test_a_model_receives_its_context_and_calls_are_children(self):
        self.assertEqual(self.infer(), "None")  # rate 0: not traced
        context = json.loads(self.infer(traceparent=f"00-{TRACE}-{SPAN}-01", tracestate="a=1"))
        root, = self.collector.roots(1)
        names = {span.id: span.name for span in self.collector.spans()}
        parents = sorted((span.name, names.get(span.parent)) for span in self.collector.spans())
        self.assertEqual(parents, [("InferRequest", None), ("compute", "context"), ("compute", "copy"), ("context", "InferRequest"),
                                   ("copy", "context")])
        model, = self.collector.named("context")
        self.assertEqual(root.parent, SPAN)
        self.assertEqual(context, {"traceparent": f"00-{TRACE}-{model.id}-01", "tracestate": "a=1"})


if __name__ == "__main__":
    unittest.main(argv=["test_nvidia_traces.py"] + interop.REST, verbosity=2)
