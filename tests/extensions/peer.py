# SPDX-License-Identifier: Apache-2.0
"""Runs a node on ONNX Runtime with onnxruntime-extensions and on Kelp, and compares the results. The package runs in a process of its own, because
some texts end it."""
import multiprocessing

import kelp
import numpy as np
import onnxruntime
import onnxruntime_extensions
from onnx import TensorProto, helper

TYPES = {"O": TensorProto.STRING, "int64": TensorProto.INT64, "uint8": TensorProto.UINT8, "float32": TensorProto.FLOAT, "int32": TensorProto.INT32,
         "bool": TensorProto.BOOL}
onnxruntime.set_default_logger_severity(4)


def type_of(array):
    return TYPES["O" if array.dtype == object else str(array.dtype)]


def model_of(op, inputs, outputs, constants=(), domain="ai.onnx.contrib", **attrs):
    """A model of one node. `outputs`: types of the outputs; "" for an omitted one. The inputs in `constants`, by index, are initializers, whose
    texts may be bytes."""
    names = [f"x{i}" if a is not None else "" for i, a in enumerate(inputs)]
    outs = [f"y{i}" if t else "" for i, t in enumerate(outputs)]
    weights = []
    for i in constants:
        values = inputs[i].ravel()
        if inputs[i].dtype == object:
            values = [v if isinstance(v, bytes) else v.encode() for v in values]
        weights.append(helper.make_tensor(names[i], type_of(inputs[i]), list(inputs[i].shape), values))
    graph = helper.make_graph(
        [helper.make_node(op, names, outs, domain=domain, **attrs)], op,
        [helper.make_tensor_value_info(names[i], type_of(a), [None] * a.ndim) for i, a in enumerate(inputs) if a is not None and i not in constants],
        [helper.make_tensor_value_info(n, TYPES["O" if t == "string" else t], None) for n, t in zip(outs, outputs) if n], weights)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()


def serve(connection):
    """Runs models on the feeds that arrive, as (number, model or None if it was sent before, feeds); the result is a list of outputs, or the text of
    an error."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.register_custom_ops_library(onnxruntime_extensions.get_library_path())
    sessions = {}
    while True:
        try:
            number, model, feeds = connection.recv()
            if model is not None:
                sessions[number] = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            connection.send(sessions[number].run(None, feeds))
        except EOFError:
            return
        except UnicodeDecodeError as failure:  # the output is no text
            connection.send(failure)
        except Exception as failure:  # pylint: disable=broad-exception-caught
            connection.send(str(failure))


class Peer:
    """A model in the package. `run` raises RuntimeError for an error, and ConnectionError if the process ended."""
    process = connection = None  # of all models
    sent = set()  # numbers of the models that the process has
    count = 0

    def __init__(self, model):
        Peer.count += 1
        self.model, self.number = model, Peer.count

    def run(self, feeds):
        if Peer.process is None:
            Peer.connection, theirs = multiprocessing.Pipe()
            Peer.process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
            Peer.process.start()
            Peer.sent = set()
            theirs.close()
        try:
            Peer.connection.send((self.number, None if self.number in Peer.sent else self.model, feeds))
            result = Peer.connection.recv()
        except (EOFError, ConnectionError) as failure:
            Peer.process.join()
            Peer.process = None
            raise ConnectionError("the process of the package ended") from failure
        if isinstance(result, UnicodeDecodeError):
            raise result
        if isinstance(result, str):
            raise RuntimeError(result)
        Peer.sent.add(self.number)
        return result


class Pair:
    """One model in both runtimes. An input that ends the process of the package counts as a failure."""

    def __init__(self, op, inputs, outputs, constants=(), **attrs):
        self.op, self.constants = op, constants
        model = model_of(op, inputs, outputs, constants, **attrs)
        self.peer = Peer(model)
        self.kelp = kelp.InferenceSession(model)

    def run(self, inputs):
        feeds = {f"x{i}": a for i, a in enumerate(inputs) if a is not None and i not in self.constants}
        found = self.kelp.run(None, feeds)
        try:
            return self.peer.run(feeds), found
        except ConnectionError as failure:
            return [np.array(str(failure))] * len(found), found


class Tally:
    def __init__(self):
        self.passed, self.failed, self.subject, self.counts = 0, 0, "", {}
        self.excluded = 0  # inputs for which the package has undefined behaviour

    def near(self, what, expected, found):
        """Checks that pictures differ by at most 4 on average."""
        difference = np.abs(expected[0].astype(int) - found[0]).mean() if expected[0].shape == found[0].shape else 255
        self.check((what, difference), [np.array(True)], [np.array(difference <= 4)])

    def check(self, what, expected, found):
        same = len(expected) == len(found) and all(
            np.shape(a) == np.shape(b) and (np.asarray(a).dtype.kind == np.asarray(b).dtype.kind) and np.array_equal(a, b) for a, b in zip(expected, found))
        self.passed += same
        self.failed += not same
        if not same and self.counts.setdefault(self.subject, 0) < 4:
            self.counts[self.subject] += 1
            print(f"FAILED {self.subject}: {what!r}"[:600])
            for a, b in zip(expected, found):
                print("    expected", np.shape(a), str(np.asarray(a).tolist())[:500])
                print("    found   ", np.shape(b), str(np.asarray(b).tolist())[:500])


def strings(*values):
    return np.array(values, object)
