# SPDX-License-Identifier: Apache-2.0
"""Models in Ray: batch inference on datasets of Ray Data, and deployments of Ray Serve.

    dataset.map_batches(kelp.ray.BatchPredictor, fn_constructor_args=["model.onnx"], batch_format="pyarrow",
                        batch_size=256, num_cpus=1, compute=ray.data.ActorPoolStrategy(size=2))

    serve.run(kelp.ray.deployment("model.onnx", num_replicas=2))

Each actor or replica loads the model from its file, which the processes of a machine share in memory, and uses as many threads as Ray
assigns CPUs to it.
"""
import copy
import json

import numpy
import ray
from ray import serve

from ._error import Code, KelpError
from ._options import SessionOptions
from ._session import InferenceSession
from ._types import NUMPY_TYPES, TRITON_TYPES

__all__ = ["BatchPredictor", "deployment", "table"]


def load(model, sess_options):
    """Returns a session with one thread for each CPU that Ray assigns to this actor, unless the options state a number.

    Outside of an actor, it has a thread for each CPU of the machine."""
    options = copy.copy(sess_options) if sess_options is not None else SessionOptions()
    if options.intra_op_num_threads == 0 and ray.is_initialized() and ray.get_runtime_context().get_actor_id() is not None:
        options.intra_op_num_threads = max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1)))
    return InferenceSession(model, options)


# ---- Arrow ----

def array_of(name, column):
    """Returns a column of a pyarrow.Table as an array of numpy. Columns of one chunk are used in place, but for strings and bits."""
    import pyarrow
    chunk = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(chunk, pyarrow.ChunkedArray):  # of an extension type with several chunks, or none
        return numpy.concatenate([array_of(name, pyarrow.chunked_array([part])) for part in chunk.chunks])
    if chunk.null_count:
        raise ValueError(f"column '{name}' has {chunk.null_count} null values: models have no nulls")
    kind = chunk.type
    if hasattr(chunk, "to_numpy_ndarray"):
        return chunk.to_numpy_ndarray()
    if isinstance(kind, pyarrow.ExtensionType):
        return chunk.to_numpy(zero_copy_only=True)
    if pyarrow.types.is_fixed_size_list(kind):
        return chunk.flatten().to_numpy(zero_copy_only=True).reshape(len(chunk), kind.list_size)
    if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        return numpy.array(chunk.to_pylist(), dtype=object)
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
        return numpy.array(chunk.to_pylist())
    return chunk.to_numpy(zero_copy_only=not pyarrow.types.is_boolean(kind))


def column_of(array):
    """Returns an array as a column of Arrow. Numbers are not copied."""
    import pyarrow
    if array.ndim == 1 or array.dtype == object:
        return pyarrow.array(array.tolist() if array.dtype == object else array)
    return pyarrow.FixedShapeTensorArray.from_numpy_ndarray(numpy.ascontiguousarray(array))


def table(**columns):
    """Returns a pyarrow.Table with arrays of numpy as columns; the first dimension is the row. Numbers are not copied."""
    import pyarrow
    return pyarrow.table({name: column_of(numpy.asarray(array)) for name, array in columns.items()})


# ---- Ray Data ----

class BatchPredictor:
    """Runs a model on batches of a dataset: the class for `map_batches` of Ray Data.

    model: the path of an ONNX model that exists on all nodes, or its bytes.
    inputs: a dict from names of inputs to names of columns; by default, the column has the name of the input.
    outputs: the names of the outputs that become columns; None: all.
    keep: the names of columns that the result keeps; None: all columns that are not inputs.
    sess_options: kelp.SessionOptions. By default, a session has a thread for each CPU of the actor.

    Batches are tables of pyarrow (`batch_format="pyarrow"`) or dicts of numpy arrays, and so are the results. The first dimension of each
    input is the batch. The model reads columns of a table in place if Arrow has them in one piece: numbers, lists of a fixed size, and
    tensors. Raises KelpError if types or shapes are wrong, ValueError if a column is missing or has null values.
    """

    def __init__(self, model, *, inputs=None, outputs=None, keep=None, sess_options=None):
        self._session = load(model, sess_options)
        self._inputs = {value.name: value.name for value in self._session.get_inputs()}
        for name, column in (inputs or {}).items():
            if name not in self._inputs:
                raise ValueError(f"the model has no input '{name}'; it has {', '.join(map(repr, self._inputs))}")
            self._inputs[name] = column
        self._outputs = list(outputs) if outputs is not None else [value.name for value in self._session.get_outputs()]
        self._keep = keep

    def __call__(self, batch):
        """Returns the outputs for a batch, with the columns that are kept."""
        is_table = not isinstance(batch, dict)
        names = batch.column_names if is_table else list(batch)
        keep = self._keep if self._keep is not None else [name for name in names if name not in self._inputs.values()]
        for column in (*self._inputs.values(), *keep):
            if column not in names:
                raise ValueError(f"the dataset has no column '{column}'; it has {', '.join(map(repr, names))}")
        feed = {name: array_of(column, batch[column]) if is_table else batch[column] for name, column in self._inputs.items()}
        results = dict(zip(self._outputs, self._session.run(self._outputs, feed)))
        found = {name: batch[name] for name in keep if name not in results}
        if not is_table:
            return {**found, **results}
        import pyarrow
        return pyarrow.table({**found, **{name: column_of(result) for name, result in results.items()}})


# ---- Ray Serve ----

def decode(tensor, index):
    """Returns the name and the array of an input of a request in JSON."""
    for field in ("name", "datatype", "shape", "data"):
        if field not in tensor:
            raise ValueError(f"inputs[{index}]: expected a member '{field}', found {', '.join(map(repr, tensor))}")
    name, kind = tensor["name"], tensor["datatype"]
    if kind == "BYTES":
        array = numpy.array(tensor["data"], dtype=object)
    elif kind in NUMPY_TYPES and kind != "BF16":
        array = numpy.array(tensor["data"], dtype=NUMPY_TYPES[kind])
    else:
        raise ValueError(f"input '{name}': unknown datatype '{kind}'")
    return name, array.reshape(tensor["shape"])


def encode(name, array):
    """Returns an output as a member of a response in JSON."""
    kind = "BYTES" if array.dtype == object else TRITON_TYPES[array.dtype.name]
    return {"name": name, "datatype": kind, "shape": list(array.shape), "data": array.ravel().tolist()}


class Replica:
    """A replica of a deployment. See deployment."""

    def __init__(self, model, sess_options, max_batch_size, batch_wait_timeout_s):
        self._session = load(model, sess_options)
        self._names = [value.name for value in self._session.get_outputs()]
        self._submit = self._run
        if max_batch_size > 1:
            self._submit = serve.batch(max_batch_size=max_batch_size, batch_wait_timeout_s=batch_wait_timeout_s)(self._run_batch)

    async def _run(self, feed):
        return dict(zip(self._names, await self._session.run_async(None, feed)))

    async def _run_batch(self, feeds):
        """Runs requests together whose inputs have the same names, types and shapes but for the first dimension."""
        groups = {}
        for index, feed in enumerate(feeds):
            groups.setdefault(tuple((name, array.dtype.str, array.shape[1:]) for name, array in sorted(feed.items())), []).append(index)
        results = [None] * len(feeds)
        for members in groups.values():
            try:
                joined = {name: numpy.concatenate([feeds[index][name] for index in members]) for name in feeds[members[0]]}
                outputs = await self._run(joined)
            except (KelpError, ValueError) as error:
                if len(members) == 1:
                    results[members[0]] = error
                    continue
                for index in members:  # one request must not make the others fail
                    results[index] = (await self._run_batch([feeds[index]]))[0]
                continue
            at = 0
            for index in members:
                rows = len(next(iter(feeds[index].values())))
                results[index] = {name: output[at:at + rows] for name, output in outputs.items()}
                at += rows
        return results

    async def infer(self, inputs):
        """Runs the model on a dict from names to arrays and returns a dict of the outputs, for calls with a handle."""
        found = await self._submit({name: numpy.asarray(value) for name, value in inputs.items()})
        if isinstance(found, Exception):
            raise found
        return found

    async def __call__(self, request):
        """Processes an inference request in the JSON of the KServe v2 protocol."""
        from starlette.responses import JSONResponse
        try:
            body = json.loads(await request.body())
            if not isinstance(body, dict) or not isinstance(body.get("inputs"), list):
                raise ValueError("expected an object with a list 'inputs'")
            found = await self.infer(dict(decode(tensor, index) for index, tensor in enumerate(body["inputs"])))
            asked = [output["name"] for output in body.get("outputs", [])] or self._names
            for name in asked:
                if name not in found:
                    raise ValueError(f"the model has no output '{name}'; it has {', '.join(map(repr, self._names))}")
        except (KelpError, ValueError, TypeError, KeyError) as error:
            is_internal = isinstance(error, KelpError) and error.code in (Code.INTERNAL, Code.RESOURCE_EXHAUSTED)
            return JSONResponse({"error": str(error)}, status_code=500 if is_internal else 400)
        response = {"outputs": [encode(name, found[name]) for name in asked]}
        if "id" in body:
            response["id"] = body["id"]
        return JSONResponse(response)


def deployment(model, *, sess_options=None, max_batch_size=1, batch_wait_timeout_s=0.0, **options):
    """Returns an application of Ray Serve with a model, for `serve.run`.

    model: the path of an ONNX model that exists on all nodes, or its bytes.
    max_batch_size: above 1, a replica runs up to this number of waiting requests together. The first dimension of all inputs and outputs
    must be the batch. batch_wait_timeout_s: seconds that a request waits for others.
    options: those of `serve.deployment`, such as name, num_replicas, ray_actor_options, max_ongoing_requests.

    Over HTTP, requests and responses have the JSON of inference in the KServe v2 protocol. A handle has the method `infer`, which takes and
    returns a dict from names to arrays: `await handle.infer.remote({"x": array})`.
    """
    return serve.deployment(Replica, **{"name": "kelp", **options}).bind(model, sess_options, max_batch_size, batch_wait_timeout_s)
