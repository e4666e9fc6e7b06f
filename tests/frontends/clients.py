# SPDX-License-Identifier: Apache-2.0
"""Clients through which cases.py is run: operations of the inference protocol, whatever carries them.

A client has a method for each operation. It returns plain data, and raises Failure for an error response. To test another
front-end, add a class and list it in CLIENTS.
"""
import gzip
import http.client
import json
import struct
import time
import zlib

import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException, deserialize_bytes_tensor, serialize_byte_tensor

TIMEOUT_S = 120
NUMPY = {"BOOL": "?", "UINT8": "<u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8", "INT8": "<i1", "INT16": "<i2",
         "INT32": "<i4", "INT64": "<i8", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8"}
CODES = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 409: "ALREADY_EXISTS", 413: "RESOURCE_EXHAUSTED", 499: "CANCELLED",
         500: "INTERNAL", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE"}


class Failure(Exception):
    """An error response: its code, None if the client hides it, and its message."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


def to_array(tensor):
    data = tensor["data"]
    if tensor["datatype"] == "BYTES":
        return np.array(data, dtype=object).reshape(tensor["shape"])
    return np.array(data, dtype=NUMPY[tensor["datatype"]]).reshape(tensor["shape"])


def to_bytes(tensor):
    array = to_array(tensor)
    return serialize_byte_tensor(array).item() if tensor["datatype"] == "BYTES" else array.tobytes()


def to_list(datatype, raw):
    if datatype == "BYTES":
        return [item.decode() for item in deserialize_bytes_tensor(raw)]
    return np.frombuffer(raw, dtype=NUMPY[datatype]).tolist()


class Http:
    """The inference protocol over HTTP/1.1, a connection for each request."""

    def __init__(self, host, port):
        self.host = host
        self.port = port

    def close(self):
        pass

    # ---- HTTP ----

    def request(self, method, path, body=None, headers=None):
        """Returns the status, the headers with names in lower case, and the decompressed body."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            content = response.read()
        finally:
            connection.close()
        coding = found.get("content-encoding")
        if coding:
            content = zlib.decompress(content, zlib.MAX_WBITS | 32)
        return response.status, found, content

    def checked(self, method, path, body=None, headers=None):
        status, found, content = self.request(method, path, body, headers)
        if status != 200:
            raise Failure(CODES.get(status, str(status)), json.loads(content)["error"])
        return found, content

    def value(self, method, path, body=None):
        return json.loads(self.checked(method, path, body)[1])

    # ---- operations ----

    @staticmethod
    def model_path(model, version):
        return f"/v2/models/{model}" + (f"/versions/{version}" if version else "")

    def server_live(self):
        return self.request("GET", "/v2/health/live")[0] == 200

    def server_ready(self):
        return self.request("GET", "/v2/health/ready")[0] == 200

    def model_ready(self, model, version=""):
        return self.request("GET", self.model_path(model, version) + "/ready")[0] == 200

    def server_metadata(self):
        return self.value("GET", "/v2")

    def model_metadata(self, model, version=""):
        return self.value("GET", self.model_path(model, version))

    def model_config(self, model, version=""):
        return self.value("GET", self.model_path(model, version) + "/config")

    def statistics(self, model="", version=""):
        path = self.model_path(model, version) if model else "/v2/models"
        return self.value("GET", path + "/stats")["model_stats"]

    def repository_index(self):
        return self.value("POST", "/v2/repository/index")

    def load(self, model, config=None):
        self.checked("POST", f"/v2/repository/models/{model}/load", {"parameters": {"config": config}} if config else None)

    def unload(self, model):
        self.checked("POST", f"/v2/repository/models/{model}/unload")

    def encode(self, inputs, outputs, id, parameters):  # noqa: A002: the protocol's name
        request = {"inputs": [], **({"id": id} if id else {}), **({"parameters": parameters} if parameters else {})}
        tail = b""
        for tensor in inputs:
            member = {name: value for name, value in tensor.items() if name != "binary"}
            if tensor.get("binary"):
                raw = to_bytes(tensor)
                tail += raw
                del member["data"]
                member["parameters"] = {"binary_data_size": len(raw)}
            request["inputs"].append(member)
        for output in outputs or []:
            asked = {"binary_data": bool(output.get("binary"))}
            if output.get("classes"):
                asked["classification"] = output["classes"]
            request.setdefault("outputs", []).append({"name": output["name"], "parameters": asked})
        text = json.dumps(request).encode()
        return text + tail, {"Inference-Header-Content-Length": str(len(text))} if tail else {}

    def decode(self, headers, content):
        length = int(headers.get("inference-header-content-length", len(content)))
        result = json.loads(content[:length])
        tail = content[length:]
        found = {}
        for output in result["outputs"]:
            data = output.get("data")
            if data is None:
                size = output["parameters"]["binary_data_size"]
                data, tail = to_list(output["datatype"], tail[:size]), tail[size:]
            found[output["name"]] = {"datatype": output["datatype"], "shape": output["shape"], "data": data}
        assert tail == b"", f"{len(tail)} bytes belong to no output"
        return {**result, "outputs": found}

    def infer(self, model, inputs, outputs=None, id="", parameters=None, version="", compression=None):  # noqa: A002
        body, headers = self.encode(inputs, outputs, id, parameters)
        if compression:
            body = {"gzip": gzip, "deflate": zlib}[compression].compress(body)
            headers.update({"Content-Encoding": compression, "Accept-Encoding": compression})
        return self.decode(*self.checked("POST", self.model_path(model, version) + "/infer", body, headers))

    def infer_and_disconnect(self, model, inputs, parameters):
        """Sends a request, and closes the connection before the response."""
        body, headers = self.encode(inputs, None, "", parameters)
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)
        connection.request("POST", self.model_path(model, "") + "/infer", body, headers)
        connection.sock.settimeout(0.3)
        try:
            connection.sock.recv(1)
            raise AssertionError("the response came before the client disconnected")
        except TimeoutError:
            connection.sock.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER: reset
        finally:
            connection.close()


class TritonHttp:
    """Triton's own client library over HTTP."""

    module = tritonclient.http

    def __init__(self, host, port):
        self.client = self.module.InferenceServerClient(f"{host}:{port}", network_timeout=TIMEOUT_S)
        self.plain = Http(host, port)

    def close(self):
        self.client.close()

    def __getattr__(self, name):
        """Operations without a method here are those of the library, under another name."""
        names = {"server_live": "is_server_live", "server_ready": "is_server_ready", "server_metadata": "get_server_metadata",
                 "repository_index": "get_model_repository_index"}
        return self.guarded(getattr(self.client, names[name]))

    @staticmethod
    def guarded(function):
        def run(*arguments, **named):
            try:
                return function(*arguments, **named)
            except InferenceServerException as error:
                code = error.status()
                code = CODES.get(int(code), code) if code and code.isdigit() else None
                raise Failure(code, error.message()) from error
        return run

    def model_ready(self, model, version=""):
        return self.guarded(self.client.is_model_ready)(model, version)

    def model_metadata(self, model, version=""):
        return self.guarded(self.client.get_model_metadata)(model, version)

    def model_config(self, model, version=""):
        return self.guarded(self.client.get_model_config)(model, version)

    def statistics(self, model="", version=""):
        return self.guarded(self.client.get_inference_statistics)(model, version)["model_stats"]

    def load(self, model, config=None):
        self.guarded(self.client.load_model)(model, config=config)

    def unload(self, model):
        self.guarded(self.client.unload_model)(model)

    def infer_and_disconnect(self, **arguments):
        self.plain.infer_and_disconnect(**arguments)  # the library cannot

    def infer(self, model, inputs, outputs=None, id="", parameters=None, version="", compression=None):  # noqa: A002
        tensors = []
        for tensor in inputs:
            made = self.module.InferInput(tensor["name"], tensor["shape"], tensor["datatype"])
            made.set_data_from_numpy(to_array(tensor), binary_data=bool(tensor.get("binary")))
            tensors.append(made)
        requested = [self.module.InferRequestedOutput(output["name"], binary_data=bool(output.get("binary")),
                                                      class_count=output.get("classes", 0))
                     for output in outputs or []]
        result = self.guarded(self.client.infer)(
            model, tensors, outputs=requested or None, request_id=id, parameters=parameters, model_version=version,
            request_compression_algorithm=compression, response_compression_algorithm=compression)
        response = result.get_response()
        found = {}
        for output in response["outputs"]:
            data = result.as_numpy(output["name"]).ravel().tolist()
            if output["datatype"] == "BYTES":
                data = [item.decode() if isinstance(item, bytes) else item for item in data]
            found[output["name"]] = {"datatype": output["datatype"], "shape": output["shape"], "data": data}
        return {**response, "outputs": found}


class TritonGrpc(TritonHttp):
    """Triton's own client library over gRPC."""

    module = tritonclient.grpc

    def __init__(self, host, port):  # noqa: super: the plain client is one for HTTP
        self.client = self.module.InferenceServerClient(f"{host}:{port}")

    def __getattr__(self, name):
        if name == "server_metadata":
            return self.guarded(lambda: self.client.get_server_metadata(as_json=True))
        return super().__getattr__(name)

    @staticmethod
    def guarded(function):
        def run(*arguments, **named):
            try:
                return function(*arguments, **named)
            except InferenceServerException as error:
                raise Failure(error.status().removeprefix("StatusCode."), error.message()) from error
        return run

    def repository_index(self):
        return self.guarded(self.client.get_model_repository_index)(as_json=True)["models"]

    def model_metadata(self, model, version=""):
        found = self.guarded(self.client.get_model_metadata)(model, version, as_json=True)
        for tensor in found["inputs"] + found["outputs"]:
            tensor["shape"] = [int(size) for size in tensor["shape"]]
        return found

    def model_config(self, model, version=""):
        return self.guarded(self.client.get_model_config)(model, version, as_json=True)["config"]

    def statistics(self, model="", version=""):
        return self.guarded(self.client.get_inference_statistics)(model, version, as_json=True)["model_stats"]

    def tensors(self, inputs):
        """Binary inputs are in raw_input_contents, and others in typed contents."""
        made = []
        for tensor in inputs:
            item = self.module.InferInput(tensor["name"], tensor["shape"], tensor["datatype"])
            item.set_data_from_numpy(to_array(tensor))
            made.append(item)
        return made

    def infer_and_disconnect(self, model, inputs, parameters):
        results = []
        call = self.client.async_infer(model, self.tensors(inputs), lambda result, error: results.append(error),
                                       parameters=parameters)
        time.sleep(0.3)
        assert not results, "the response came before the client cancelled"
        call.cancel()

    def infer(self, model, inputs, outputs=None, id="", parameters=None, version="", compression=None):  # noqa: A002
        requested = [self.module.InferRequestedOutput(output["name"], class_count=output.get("classes", 0))
                     for output in outputs or []]
        result = self.guarded(self.client.infer)(
            model, self.tensors(inputs), outputs=requested or None, request_id=id, parameters=parameters,
            model_version=version, compression_algorithm=compression)
        response = result.get_response()
        found = {}
        for output in response.outputs:
            data = result.as_numpy(output.name).ravel().tolist()
            if output.datatype == "BYTES":
                data = [item.decode() for item in data]
            found[output.name] = {"datatype": output.datatype, "shape": list(output.shape), "data": data}
        return {"id": response.id, "model_name": response.model_name, "model_version": response.model_version, "outputs": found,
                "parameters": {name: getattr(value, value.WhichOneof("parameter_choice"))
                               for name, value in response.parameters.items()}}


# "kelp": one port for every protocol.
CLIENTS = {"http": (Http, TritonHttp), "grpc": (TritonGrpc,), "kelp": (Http, TritonHttp, TritonGrpc)}
