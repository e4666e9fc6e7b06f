# SPDX-License-Identifier: Apache-2.0
"""Requests that models accept. The description is the same for all models, so that schemathesis cannot generate them: valid
requests to infer and generate are replaced by requests to `digits` and `addsub` with the values that it chose."""
import json
import struct

import schemathesis

GENERATED = ("infer", "inferOfVersion", "generate", "generateOfVersion", "generateStream", "generateStreamOfVersion")


def numbers(seed, count):
    """Returns values that depend on what was generated, with extremes."""
    extremes = [0, -0.0, 1e38, -1e38, 1e-40, 1, 0.1]
    return [extremes[(seed + i) % 11] if (seed + i) % 11 < len(extremes) else ((seed + i) % 997) / 7 for i in range(count)]


def tensors(model, seed):
    """Returns names, shapes and elements of the inputs of a model."""
    rows = 1 + seed % 3
    if model == "digits":
        return [("image", [rows, 1, 8, 8], numbers(seed, rows * 64))]
    return [(name, [rows, 16], numbers(seed, rows * 16)) for name in ("INPUT0", "INPUT1")]


def infer(case, model, seed):
    inputs = [{"name": name, "datatype": "FP32", "shape": shape, "data": data} for name, shape, data in tensors(model, seed)]
    request = {"inputs": inputs, "id": str(seed), "parameters": {"binary_data_output": seed % 5 == 0}}
    if case.media_type == "application/json":
        case.body = request
        return
    for entry in inputs:
        entry["parameters"] = {"binary_data_size": 4 * len(entry["data"])}
    binary = b"".join(struct.pack(f"<{len(entry['data'])}f", *entry.pop("data")) for entry in inputs)
    head = json.dumps(request).encode()
    case.headers["Inference-Header-Content-Length"] = str(len(head))
    case.body = head + binary


@schemathesis.hook
def before_call(context, case, kwargs):
    identifier = case.operation.definition.raw.get("operationId")
    if case.meta is None or not case.meta.generation.mode.is_positive or identifier not in GENERATED:
        return
    seed = sum(repr(case.body).encode())
    if seed % 4 == 0:  # what it generated
        return
    model = ("digits", "addsub")[seed % 2]
    case.path_parameters["model"] = model
    if "version" in case.path_parameters:
        case.path_parameters["version"] = 1
    if identifier.startswith("infer"):
        infer(case, model, seed)
    else:
        body = {name: data for name, shape, data in tensors(model, seed) if shape[0] == 1 or model == "digits"}
        case.body = {"id": str(seed), "parameters": {"temperature": 0.5}, **body}
