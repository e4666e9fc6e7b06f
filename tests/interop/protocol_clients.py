#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clients of other projects that use Triton's or the open inference protocol, unmodified, against `kelp serve`: those of pytriton,
tritony, KServe and the Open Inference project. A client whose package the running Python lacks is left out.

    protocol_clients.py [--build BUILD]"""
import asyncio
import importlib.util
import os
import subprocess
import sys
import tempfile

import client_models
import interop
import numpy as np

FLOATS = """
backend: "addsub" max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "INPUT1" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "OUTPUT1" data_type: TYPE_FP32 dims: [ 16 ] } ]
"""
A, B = np.arange(16, dtype=np.int32).reshape(1, 16), np.ones((1, 16), dtype=np.int32)


def check(total, difference):
    np.testing.assert_array_equal(np.asarray(total).reshape(1, 16), A + B)
    np.testing.assert_array_equal(np.asarray(difference).reshape(1, 16), A - B)


def pytriton_client(scheme, port):
    from pytriton.client import ModelClient
    with ModelClient(f"{scheme}://localhost:{port}", "simple") as client:
        result = client.infer_batch(A, B)
        check(result["OUTPUT0"], result["OUTPUT1"])
        result = client.infer_sample(INPUT0=A[0], INPUT1=B[0])
        check(result["OUTPUT0"], result["OUTPUT1"])


def pytriton_http(ports):
    from pytriton.client import FuturesModelClient
    pytriton_client("http", ports[0])
    # Over HTTP only: further threads of the client drop the scheme of the address.
    with FuturesModelClient(f"http://localhost:{ports[0]}", "simple") as client:
        for future in [client.infer_batch(A, B) for _ in range(20)]:
            check(future.result()["OUTPUT0"], future.result()["OUTPUT1"])


def pytriton_grpc(ports):
    from pytriton.client import DecoupledModelClient
    pytriton_client("grpc", ports[1])
    with DecoupledModelClient(f"grpc://localhost:{ports[1]}", "repeat_int32") as client:
        values = np.array([4, 5, 6], dtype=np.int32)
        responses = client.infer_sample(IN=values, DELAY=np.zeros(3, np.uint32), WAIT=np.zeros(1, np.uint32))
        assert [int(response["OUT"][0]) for response in responses] == [4, 5, 6]


def pytriton_asyncio(ports):
    from pytriton.client import AsyncioModelClient

    async def run():
        async with AsyncioModelClient(f"http://localhost:{ports[0]}", "simple") as client:
            result = await client.infer_batch(A, B)
            check(result["OUTPUT0"], result["OUTPUT1"])

    asyncio.run(run())


def tritony(ports):
    from tritony import InferenceClient
    for protocol, port in (("http", ports[0]), ("grpc", ports[1])):
        client = InferenceClient.create_with("simple", f"localhost:{port}", input_dims=2, protocol=protocol)
        check(*client({"INPUT0": A, "INPUT1": B}))


def open_inference_grpc(ports):
    import grpc
    from open_inference.grpc.protocol import InferTensorContents, ModelInferRequest, ModelReadyRequest, ServerLiveRequest
    from open_inference.grpc.service import GRPCInferenceServiceStub
    with grpc.insecure_channel(f"localhost:{ports[1]}") as channel:
        stub = GRPCInferenceServiceStub(channel)
        assert stub.ServerLive(ServerLiveRequest()).live and stub.ModelReady(ModelReadyRequest(name="simple")).ready
        inputs = [ModelInferRequest.InferInputTensor(name=name, datatype="INT32", shape=[1, 16],
                                                     contents=InferTensorContents(int_contents=array.ravel().tolist()))
                  for name, array in (("INPUT0", A), ("INPUT1", B))]
        reply = stub.ModelInfer(ModelInferRequest(model_name="simple", inputs=inputs))
        check(*(np.frombuffer(each, np.int32) for each in reply.raw_output_contents))


def open_inference_openapi(ports):
    from open_inference.openapi.client import InferenceRequest, OpenInferenceClient
    client = OpenInferenceClient(base_url=f"http://localhost:{ports[0]}")
    client.check_server_readiness()
    client.read_model_metadata("floats")
    # The package sends every number with a fraction.
    reply = client.model_infer("floats", request=InferenceRequest(inputs=[
        {"name": name, "shape": [1, 16], "datatype": "FP32", "data": array.ravel().tolist()} for name, array in (("INPUT0", A), ("INPUT1", B))]))
    check(*(each.data.__root__ for each in reply.outputs))


def kserve_request():
    from kserve import InferInput, InferRequest
    inputs = [InferInput(name=name, shape=[1, 16], datatype="INT32") for name in ("INPUT0", "INPUT1")]
    for each, array in zip(inputs, (A, B)):
        each.set_data_from_numpy(array, binary_data=False)
    return InferRequest(model_name="simple", infer_inputs=inputs)


def kserve_rest(ports):
    from kserve import InferenceRESTClient
    from kserve.inference_client import RESTConfig

    async def run():
        client = InferenceRESTClient(RESTConfig(protocol="v2"))
        base = f"http://localhost:{ports[0]}"
        reply = await client.infer(base, kserve_request(), model_name="simple")
        check(*(each.as_numpy() for each in reply.outputs))

    asyncio.run(run())


def kserve_grpc(ports):
    from kserve import InferenceGRPCClient

    async def run():
        async with InferenceGRPCClient(f"localhost:{ports[1]}") as client:
            assert await client.is_server_ready() and await client.is_model_ready("simple")
            reply = await client.infer(kserve_request())
            check(*(each.as_numpy() for each in reply.outputs))

    asyncio.run(run())


CLIENTS = {"pytriton": (pytriton_http, pytriton_grpc, pytriton_asyncio), "tritony": (tritony,),
           "open_inference.grpc": (open_inference_grpc,), "open_inference.openapi": (open_inference_openapi,),
           "kserve": (kserve_rest, kserve_grpc)}


def main():
    if "--run" in sys.argv:
        name, *ports = sys.argv[sys.argv.index("--run") + 1:]
        globals()[name](ports)
        return 0
    failed = passed = 0
    with tempfile.TemporaryDirectory() as directory:
        client_models.make(directory)
        client_models.write(directory, "floats", FLOATS)
        ports = interop.free_ports(2)
        server = interop.Server([interop.KELP, "serve", "--model-repository", directory, "--backend-directory",
                                 os.path.join(interop.BUILD, "backends"), "--http-port", str(ports[0]), "--grpc-port", str(ports[1])],
                                os.environ).wait_ready(ports[0])
        for package, runs in CLIENTS.items():
            if importlib.util.find_spec(package.split(".")[0]) is None:
                print(f"{package}: left out: the package is missing")
                continue
            for run in runs:
                # Packages define the same messages of the protocol, so that each needs a process of its own.
                done = subprocess.run([sys.executable, __file__, "--run", run.__name__, *map(str, ports)], capture_output=True, text=True,
                                      timeout=120, check=False)
                passed, failed = passed + (done.returncode == 0), failed + (done.returncode != 0)
                print(f"{run.__name__}: {'passes' if done.returncode == 0 else 'FAILS' + chr(10) + done.stderr[-1500:]}", flush=True)
        code = server.stop()
    print(f"{passed} passed, {failed} failed; exit code of the server {code}")
    return 1 if failed or code else 0


if __name__ == "__main__":
    sys.exit(main())
