# SPDX-License-Identifier: Apache-2.0
"""The cases that every front-end must pass, as data. test_conformance.py runs them.

CASES are in terms of the inference protocol: a name and a list of steps. A step is an operation of clients.Client, its
arguments, and what is expected: a result, or an Error. HTTP_CASES are in terms of HTTP, whatever its version.
"""
import gzip
import json
import os
import struct

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Required of the server under test: its models, and the limit of bodies without binary tensors.
MAX_INPUT_SIZE = 1 << 20


class Error:
    """An error with this code whose message contains the words."""

    def __init__(self, code, *words):
        self.code = code
        self.words = words


class Contains:
    """A list with a matching item, or a text that contains this one."""

    def __init__(self, item):
        self.item = item


class AtLeast:
    def __init__(self, value):
        self.value = value


def read_json(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return json.load(file)


IMAGES = read_json("examples", "requests", "digits.json")["inputs"][0]["data"]
PROBABILITIES = next(output["data"] for output in read_json("examples", "requests", "digits.expected.json")["outputs"]
                     if output["name"] == "probabilities")
IMAGE_SIZE = 64
DIGITS = [3, 7, 4]
WORDS = ["", "a", "é中", "nul\0in", "x" * 5000]


def nested(flat, shape):
    if len(shape) == 1:
        return flat
    step = len(flat) // shape[0]
    return [nested(flat[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]


def image(**changes):
    """The input of the model `digits`; None removes a member."""
    tensor = {"name": "image", "datatype": "FP32", "shape": [3, 1, 8, 8], "data": IMAGES}
    tensor.update(changes)
    return {name: value for name, value in tensor.items() if value is not None}


def infer(model="digits", inputs=None, **more):
    return ("infer", {"model": model, "inputs": inputs or [image()], **more})


def numbers(count, **parameters):
    """An inference with the model `identity`."""
    return infer("identity", [{"name": "INPUT0", "datatype": "INT64", "shape": [count], "data": list(range(count))}],
                 parameters=parameters or None)


def outputs(probabilities=True, digit=True):
    found = {}
    if probabilities:
        found["probabilities"] = {"datatype": "FP32", "shape": [3, 10], "data": PROBABILITIES}
    if digit:
        found["digit"] = {"datatype": "INT64", "shape": [3], "data": DIGITS}
    return {"outputs": found}


def step(operation, expected, **arguments):
    return (operation, arguments), expected


def one(operation, expected, **arguments):
    return [step(operation, expected, **arguments)]


HEALTH = {
    "the server is live": one("server_live", True),
    "the server is ready": one("server_ready", True),
    "a loaded model is ready": one("model_ready", True, model="digits"),
    "a loaded version is ready": one("model_ready", True, model="digits", version="1"),
    "an unknown model is not ready": one("model_ready", False, model="no_such_model"),
    "an unknown version is not ready": one("model_ready", False, model="digits", version="77"),
}

METADATA = {
    "the server names itself and its extensions":
        one("server_metadata", {"name": "triton", "extensions": Contains("binary_tensor_data")}),
    "a model names its versions, inputs and outputs":
        one("model_metadata",
            {"name": "digits", "versions": ["1"], "inputs": [{"name": "image", "datatype": "FP32"}],
             "outputs": Contains({"name": "digit"})}, model="digits"),
    "metadata of an unknown model": one("model_metadata", Error("NOT_FOUND", "no_such_model"), model="no_such_model"),
    "metadata of an unknown version": one("model_metadata", Error("NOT_FOUND", "77"), model="digits", version="77"),
    "a model has a configuration": one("model_config", {"name": "digits"}, model="digits"),
    "configuration of an unknown model": one("model_config", Error("NOT_FOUND", "no_such_model"), model="no_such_model"),
}

STATISTICS = {
    "statistics count inferences":
        [(infer(), outputs()),
         step("statistics", [{"name": "digits", "version": "1",
                              "inference_stats": {"success": {"count": AtLeast(1)}}}], model="digits")],
    "statistics of all models": one("statistics", Contains({"name": "identity"})),
    "statistics of an unknown model": one("statistics", Error("NOT_FOUND", "no_such_model"), model="no_such_model"),
}

REPOSITORY = {
    "the index lists all models": one("repository_index", Contains({"name": "digits", "state": "READY"})),
    "a model is loaded and unloaded":
        [step("model_ready", False, model="spare"),
         step("load", None, model="spare"),
         step("model_ready", True, model="spare"),
         (infer("spare"), outputs()),
         step("unload", None, model="spare"),
         step("model_ready", False, model="spare")],
    "a model is loaded with another configuration":
        [step("load", None, model="spare", config=json.dumps({"parameters": {"color": {"string_value": "red"}}})),
         step("model_config", {"parameters": {"color": {"string_value": "red"}}}, model="spare"),
         step("unload", None, model="spare")],
    "a model without files cannot be loaded": one("load", Error("INTERNAL", "no_such_model"), model="no_such_model"),
}

INFERENCE = {
    f"inference with {a} input and {b} output":
        [(infer(inputs=[image(binary=a == "binary")], id="r1",
                outputs=[{"name": "probabilities", "binary": b == "binary"}, {"name": "digit", "binary": b != "binary"}]),
          {"id": "r1", "model_name": "digits", "model_version": "1", **outputs()})]
    for a in ("JSON", "binary") for b in ("JSON", "binary")
}
INFERENCE.update({
    f"inference with {coding} in both directions":
        [(infer(inputs=[image(binary=True)], outputs=[{"name": "probabilities", "binary": True}, {"name": "digit"}],
                compression=coding), outputs())]
    for coding in ("gzip", "deflate")
})
INFERENCE.update({
    "all outputs are returned when none is requested": [(infer(), outputs())],
    "only requested outputs are returned": [(infer(outputs=[{"name": "digit"}]), outputs(probabilities=False))],
    "a version may be given": [(infer(version="1"), {"model_version": "1"})],
    "strings with JSON input and binary output":
        [(infer("strings", [{"name": "s", "datatype": "BYTES", "shape": [5], "data": WORDS}],
                outputs=[{"name": "t", "binary": True}]),
          {"outputs": {"t": {"datatype": "BYTES", "shape": [5], "data": WORDS}}})],
    "strings with binary input and JSON output":
        [(infer("strings", [{"name": "s", "datatype": "BYTES", "shape": [5], "data": WORDS, "binary": True}],
                outputs=[{"name": "t"}]),
          {"outputs": {"t": {"datatype": "BYTES", "shape": [5], "data": WORDS}}})],
    # Without max_batch_size the classes of the whole tensor are ranked, as in Triton.
    "classification ranks the classes":
        [(infer(inputs=[image(shape=[1, 1, 8, 8], data=IMAGES[:IMAGE_SIZE])],
                outputs=[{"name": "probabilities", "classes": 2}]),
          {"outputs": {"probabilities": {"datatype": "BYTES", "shape": [2], "data": Contains(Contains("0.99369"))}}})],
    "NaN and infinity are accepted":
        [(infer(inputs=[image(shape=[1, 1, 8, 8], data=[float("nan"), float("-inf")] + [0.0] * 62, binary=binary)]),
          {"outputs": {}}) for binary in (False, True)],
    "parameters reach the model and are returned":
        [(infer("identity", [{"name": "INPUT0", "datatype": "INT64", "shape": [1], "data": [1]}],
                parameters={"echo": True, "mood": "good", "level": 7}),
          {"parameters": {"mood": "good", "level": 7}})],
    "a model with several responses is rejected":
        [(infer("repeat", [{"name": "IN", "datatype": "INT32", "shape": [2], "data": [1, 2]}]),
          Error("UNIMPLEMENTED", "decoupled"))],
    "a disconnected client's request is cancelled":
        [step("infer_and_disconnect", None, model="identity",
              inputs=[{"name": "INPUT0", "datatype": "INT64", "shape": [1], "data": [1]}],
              parameters={"delay_ms": 600000}),
         # The model has one instance, which would be busy.
         (numbers(2), {"outputs": {"OUTPUT0": {"data": [0, 1]}}})],
    "a large binary tensor exceeds the limit of other bodies":
        [(infer(inputs=[image(shape=[5000, 1, 8, 8], data=IMAGES[:IMAGE_SIZE] * 5000, binary=True)],
                outputs=[{"name": "digit", "binary": True}]),
          {"outputs": {"digit": {"shape": [5000], "data": [3] * 5000}}})],
})

INFERENCE_ERRORS = {
    "an unknown model": [(infer("no_such_model"), Error("NOT_FOUND", "no_such_model"))],
    "an unknown version": [(infer(version="77"), Error("NOT_FOUND", "77"))],
    "an unknown input": [(infer(inputs=[image(name="other")]), Error("INVALID_ARGUMENT", "other"))],
    "an unknown output": [(infer(outputs=[{"name": "nothing"}]), Error("INVALID_ARGUMENT", "nothing"))],
    "another element type": [(infer(inputs=[image(datatype="INT64", data=[0] * 192)]),
                              Error("INVALID_ARGUMENT", "image", "INT64", "FP32"))],
    "another shape": [(infer(inputs=[image(shape=[3, 1, 4, 16])]), Error("INVALID_ARGUMENT", "image"))],
}

CASES = {**HEALTH, **METADATA, **STATISTICS, **REPOSITORY, **INFERENCE, **INFERENCE_ERRORS}


# ---- HTTP, any version ----

INFER = "/v2/models/digits/infer"


def body_of(**changes):
    return {"inputs": [image(**changes)]}


def http(method, path, status, *words, body=None, headers=None, expect_headers=None, expect=None):
    """A request, the status of its response, and either words of the error message or the JSON to match."""
    return {"method": method, "path": path, "body": body, "headers": headers or {}, "status": status, "words": words,
            "expect_headers": expect_headers or {}, "expect": expect}


def rejected(status, *words, body, path=INFER, headers=None, expect_headers=None):
    return http("POST", path, status, *words, body=body, headers=headers, expect_headers=expect_headers)


def binary(declared, sent, header=None):
    """An inference of `digits` with a tensor of `declared` bytes, followed by `sent` bytes."""
    text = json.dumps(body_of(data=None, parameters={"binary_data_size": declared})).encode()
    return text + b"\0" * sent, {"Inference-Header-Content-Length": str(len(text) if header is None else header)}


def binary_case(status, *words, declared, sent, header=None):
    body, headers = binary(declared, sent, header)
    return http("POST", INFER, status, *words, body=body, headers=headers)


def bytes_case(status, *words, text):
    """An inference of `strings` with a binary string, whose result is JSON."""
    body = json.dumps({"inputs": [{"name": "s", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 4 + len(text)}}]}).encode()
    return http("POST", "/v2/models/strings/infer", status, *words, body=body + struct.pack("<I", len(text)) + text,
                headers={"Inference-Header-Content-Length": str(len(body))})


PACKED = gzip.compress(json.dumps(body_of()).encode())
RAW_IMAGE = struct.pack(f"<{IMAGE_SIZE}f", *IMAGES[:IMAGE_SIZE])
def twice(member, value):
    """A request with two members of a name; the first one is `value`."""
    whole = dict(body_of(), id="y", outputs=[])
    return b"{%s: %s, %s" % (json.dumps(member).encode(), json.dumps(value).encode(), json.dumps(whole).encode()[1:])


DEEP = json.dumps(body_of(data=0)).replace('"data": 0', '"data": ' + "[" * 101 + "]" * 101)

ROUTES = {
    "an unknown path": http("GET", "/nothing", 404, "Not Found"),
    "a path without a model": http("GET", "/v2/models", 404, "Not Found"),
    "a trailing slash": http("GET", "/v2/", 404, "Not Found"),
    "a version that is no number": http("GET", "/v2/models/digits/versions/x", 404, "Not Found"),
    "a query is ignored": http("GET", "/v2/models/digits?verbose=1", 200, expect={"name": "digits"}),
    "GET of an inference": http("GET", INFER, 405, "Method Not Allowed", expect_headers={"allow": "POST"}),
    "DELETE of the server": http("DELETE", "/v2", 405, "Method Not Allowed", expect_headers={"allow": "GET, HEAD"}),
    "a percent-encoded name": http("GET", "/v2/models/d%69gits", 200, expect={"name": "digits"}),
    "an encoded slash belongs to the name": http("GET", "/v2/models/digits%2Fready", 404, "digits/ready"),
    "an output that is UTF-8": bytes_case(200, "zwölf \U0001f600", text="zwölf \U0001f600".encode()),
    "an output that is not UTF-8": bytes_case(400, "output 't': element 0 is not UTF-8", "'binary_data'", text=b"a\xfa\x03"),
    "a path that is not UTF-8": http("GET", "/v2/models/%ff%fe", 400, "UTF-8"),
    "HEAD of the server": http("HEAD", "/v2", 200, expect_headers={"content-type": "application/json"}),
    "HEAD of the readiness": http("HEAD", "/v2/health/ready", 200),
    "a malformed percent-encoding": http("GET", "/v2/models/digits%zz", 400, "digits%zz"),
    "a version that is too large": http("GET", "/v2/models/digits/versions/" + "9" * 30, 400, "9" * 30),
    "metrics are text": http("GET", "/metrics", 200, expect_headers={"content-type": "text/plain; charset=utf-8"}),
    "the index of ready models": http("POST", "/v2/repository/index", 200, body={"ready": True},
                                      expect=Contains({"name": "digits"})),
}

JSON = {
    "no body": rejected(400, body=b""),
    "an unfinished object": rejected(400, "line 1", body=b"{"),
    "a syntax error": rejected(400, "line 1", body=b'{"inputs": [,]}'),
    "an array": rejected(400, "object", body=b"[]"),
    "no inputs": rejected(400, "inputs", body=b"{}"),
    "text after the object": rejected(400, body=b'{"inputs": []} x'),
    "arrays without an end": rejected(400, body=b"[" * 100000),
    "an id that is a number": rejected(400, "id", body={"id": 5, "inputs": []}),
    "too few elements": rejected(400, "image", "192", "2", body=body_of(data=[1.0, 2.0])),
    "too many elements": rejected(400, "image", "192", "193", body=body_of(data=[0.0] * 193)),
    "text instead of numbers": rejected(400, "image", "element 0", body=body_of(data=["x"] * 192)),
    "no data": rejected(400, "image", body=body_of(data=None)),
    "a negative dimension": rejected(400, "image", "[3,-1,8,8]", body=body_of(shape=[3, -1, 8, 8])),
    "more elements than 64 bits count": rejected(400, "image", body=body_of(shape=[2 ** 40, 2 ** 40])),
    "more elements than the text has": rejected(400, "image", body=body_of(shape=[2 ** 50], data=[1])),
    "an unknown datatype": rejected(400, "FLOAT", body=body_of(datatype="FLOAT")),
    "an input without a name": rejected(400, "name", body=body_of(name=None)),
    "fractions for integers": rejected(400, "integer", body=body_of(datatype="INT64", data=[0.5] * 192)),
    "an integer out of range": rejected(400, "element 0", body=body_of(datatype="INT8", data=[200] * 192)),
    "elements beside arrays": rejected(400, "differ in length or depth", body=body_of(data=[[[[0.0]]]] * 10 + [0.0])),
    "an element before an array": rejected(400, "differ in length or depth", body=body_of(shape=[1, 2], data=[1, [2]])),
    "an array before an element": rejected(400, "differ in length or depth", body=body_of(shape=[1, 2], data=[[1], 2])),
    "arrays of different lengths": rejected(400, "differ in length or depth", body=body_of(shape=[1, 4], data=[[1, 2, 3], [4]])),
    "arrays of different depths": rejected(400, "differ in length or depth", body=body_of(shape=[1, 2], data=[[[1]], [2]])),
    "inputs in two places": rejected(400, "'inputs'", "twice", body=twice("inputs", [image()])),
    "outputs in two places": rejected(400, "'outputs'", "twice", body=twice("outputs", [])),
    "two ids": rejected(400, "'id'", "twice", body=twice("id", "x")),
    "two shapes": rejected(400, "'shape'", "twice", body=json.dumps(body_of()).replace('"shape"', '"shape": [1], "shape"').encode()),
    "two datatypes": rejected(400, "'datatype'", "twice",
                              body=json.dumps(body_of()).replace('"datatype"', '"datatype": "INT8", "datatype"').encode()),
    "an id that is not UTF-8": rejected(400, "'id'", "UTF-8", body=json.dumps(dict(body_of(), id="@")).encode().replace(b"@", b"\xff\xfe")),
    "a name that is not UTF-8": rejected(400, "UTF-8", body=json.dumps(body_of(name="@")).encode().replace(b"@", b"\xc0\xaf")),
    "a parameter that is not UTF-8": rejected(
        400, "UTF-8", body=json.dumps(dict(body_of(), parameters={"@": 1})).encode().replace(b"@", b"\xed\xa0\x80")),
    "a nesting that is too deep": rejected(400, "100", body=DEEP.encode()),
    "nested data": http("POST", INFER, 200, body=body_of(data=nested(IMAGES, [3, 1, 8, 8]))),
    "members in any order": http("POST", INFER, 200, body={
        "outputs": [{"name": "digit"}],
        "inputs": [{"data": IMAGES, "shape": [3, 1, 8, 8], "datatype": "FP32", "name": "image"}]},
        expect={"outputs": [{"name": "digit", "datatype": "INT64", "shape": [3], "data": DIGITS}]}),
    "a reserved parameter": rejected(400, "triton_x", body=dict(body_of(), parameters={"triton_x": 1})),
    "a negative priority": rejected(400, "priority", body=dict(body_of(), parameters={"priority": -1})),
    "a parameter that is an array": rejected(400, "own", body=dict(body_of(), parameters={"own": [1]})),
    "parameters of all types": http("POST", INFER, 200,
                                    body=dict(body_of(), parameters={"own": 1, "b": True, "s": "x", "d": 0.5})),
    "an id is escaped": http("POST", INFER, 200, body=dict(body_of(), id='a"b'), expect={"id": 'a"b'},
                             expect_headers={"content-type": "application/json"}),
}

BINARY = {
    "a binary tensor": binary_case(200, declared=768, sent=768),
    "a binary tensor of another size": binary_case(400, "image", "764", declared=764, sent=764),
    "a binary tensor that is cut off": binary_case(400, "768", "700", declared=768, sent=700),
    "bytes after the last tensor": binary_case(400, "32 bytes", declared=768, sent=800),
    "a JSON length that is no number":
        binary_case(400, "Inference-Header-Content-Length", declared=768, sent=768, header="x"),
    "a JSON length beyond the body":
        binary_case(400, "Inference-Header-Content-Length", declared=768, sent=768, header=10 ** 6),
    "a body of raw bytes": http("POST", INFER, 200, body=RAW_IMAGE, headers={"Inference-Header-Content-Length": "0"},
                                expect_headers={"content-type": "application/octet-stream"}),
    "a body of raw bytes for a model of two inputs":
        rejected(400, "addsub", body=b"\0" * 16, path="/v2/models/addsub/infer",
                 headers={"Inference-Header-Content-Length": "0"}),
}

CODINGS = {
    "a compressed request and the preferred response":
        http("POST", INFER, 200, body=PACKED,
             headers={"Content-Encoding": "gzip", "Accept-Encoding": "deflate;q=1, gzip;q=0.1"},
             expect={"model_name": "digits"}, expect_headers={"content-encoding": "deflate"}),
    "a compressed request that is cut off": rejected(400, "gzip", body=PACKED[:-20], headers={"Content-Encoding": "gzip"}),
    "an unknown coding": rejected(501, "br", body=PACKED, headers={"Content-Encoding": "br"},
                                  expect_headers={"accept-encoding": "gzip, deflate"}),
    "a decompressed body over the limit":
        rejected(413, str(MAX_INPUT_SIZE), body=gzip.compress(b" " * (MAX_INPUT_SIZE + 1)),
                 headers={"Content-Encoding": "gzip"}),
}

LIMITS = {
    "a JSON body over the limit": rejected(413, str(MAX_INPUT_SIZE), body=b" " * (MAX_INPUT_SIZE + 1)),
    "too many headers": http("GET", "/v2", 431, "headers", headers={f"X-{i}": "1" for i in range(200)}),
}

HTTP_CASES = {**ROUTES, **JSON, **BINARY, **CODINGS, **LIMITS}
