#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows per second of batch inference with Ray Data on two nodes of this machine: Kelp, ONNX Runtime in its place, and a plain loop of Kelp.

    ray_batch.py [--model FILE] [--rows N] [--batch N] [--rounds N]

PYTHONPATH must contain the package kelp; ray[data] and onnxruntime must be installed. Each round measures all three in turn. The time of Ray is that
from the start of the first batch to the end of the last one, without the start of the actors. Each actor has one thread. The results of both runtimes
are compared. Prints medians and quartiles.
"""
import argparse
import logging
import os
import statistics
import time

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import kelp
import numpy as np
import pyarrow as pa
import ray
from kelp.ray import BatchPredictor, array_of, table
from ray.cluster_utils import Cluster

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Timed:
    """Adds the times at which a batch began and ended to its rows."""

    def __call__(self, batch):
        begin = time.time()
        found = super().__call__(batch)
        times = {"begin": np.full(len(batch["id"]), begin), "end": np.full(len(batch["id"]), time.time())}
        if isinstance(found, dict):
            return {**found, **times}
        for name, values in times.items():
            found = found.append_column(name, pa.array(values))
        return found


class Kelp(Timed, BatchPredictor):
    pass


class OrtPredictor:
    """What users of ONNX Runtime write."""

    def __init__(self, model):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.inputs = [value.name for value in self.session.get_inputs()]
        self.outputs = [value.name for value in self.session.get_outputs()]

    def __call__(self, batch):
        return {"id": batch["id"], **dict(zip(self.outputs, self.session.run(None, {name: batch[name] for name in self.inputs})))}


class OnnxRuntime(Timed, OrtPredictor):
    pass


def with_ray(dataset, kind, batch_format, options):
    """Returns rows per second and the sorted results."""
    found = dataset.map_batches(kind, fn_constructor_args=[options.model], batch_format=batch_format, batch_size=options.batch, num_cpus=1,
                                compute=ray.data.ActorPoolStrategy(size=2), scheduling_strategy="SPREAD").materialize()
    results = pa.concat_tables(ray.get(found.to_arrow_refs()))
    order = np.argsort(results["id"].to_numpy())
    seconds = results["end"].to_numpy().max() - results["begin"].to_numpy().min()
    names = [name for name in sorted(results.column_names) if name not in ("id", "begin", "end")]
    return len(results) / seconds, [array_of(name, results[name])[order] for name in names]


def with_loop(session, columns, options):
    begin = time.time()
    for at in range(0, options.rows, options.batch):
        session.run(None, {name: values[at:at + options.batch] for name, values in columns.items()})
    return options.rows / (time.time() - begin)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=ROOT + "/examples/models/digits/1/model.onnx")
    parser.add_argument("--rows", type=int, default=100000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    one_thread = kelp.SessionOptions()
    one_thread.intra_op_num_threads = 1
    session, rng = kelp.InferenceSession(options.model, one_thread), np.random.default_rng(1)
    columns = {value.name: rng.random((options.rows, *value.shape[1:]), dtype=np.float32) for value in session.get_inputs()}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    cluster.add_node(num_cpus=2)
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    rows = table(id=np.arange(options.rows), **columns)
    blocks = max(options.rows // 16, options.batch)
    dataset = ray.data.from_arrow([rows.slice(at, blocks) for at in range(0, options.rows, blocks)])
    rates = {"Kelp, Ray Data": [], "ONNX Runtime, Ray Data": [], "Kelp, plain loop": []}
    for _ in range(options.rounds):
        rate, ours = with_ray(dataset, Kelp, "pyarrow", options)
        rates["Kelp, Ray Data"].append(rate)
        rate, theirs = with_ray(dataset, OnnxRuntime, "numpy", options)
        rates["ONNX Runtime, Ray Data"].append(rate)
        rates["Kelp, plain loop"].append(with_loop(session, columns, options))
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-5)
    for name, values in rates.items():
        print(f"{name:<24}{statistics.median(values):12,.0f} rows/s   from {min(values):,.0f} to {max(values):,.0f}")
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
