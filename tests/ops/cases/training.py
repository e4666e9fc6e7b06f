# SPDX-License-Identifier: Apache-2.0
"""Cases of optimizers, against the reference implementation of ONNX."""
import numpy as np

from .common import f32, helper, run_onnx

TRAINING = "ai.onnx.preview.training"


def adagrad_adam_and_momentum(own):
    for dtype in (np.float32, np.float64):
        sizes = [(3, 5), (7,)]
        x, g = [f32(*s).astype(dtype) for s in sizes], [f32(*s).astype(dtype) for s in sizes]
        v, h = [f32(*s, low=0.1).astype(dtype) for s in sizes], [f32(*s, low=0.1).astype(dtype) for s in sizes]
        rate = np.array(0.1, dtype)
        for count in (0, 3):
            lead = [rate, np.array(count, np.int64)]
            own.add("Adagrad", [*lead, *x, *g, *v], opset=1, outputs=4, domain=TRAINING, reference="onnx",
                    epsilon=1e-5, decay_factor=0.1, norm_coefficient=0.01)
            if dtype == np.float32:  # the reference always returns float32
                own.add("Adam", [*lead, *x, *g, *v, *h], opset=1, outputs=6, domain=TRAINING, reference="onnx",
                        epsilon=1e-5, alpha=0.8, beta=0.9, norm_coefficient=0.01, norm_coefficient_post=0.02)
                if count == 0:  # with bias correction it returns float64
                    own.add("Adam", [*lead, x[0], g[0], v[0], h[0]], opset=1, outputs=3, domain=TRAINING, reference="onnx")
            else:
                lead32, all32 = [rate.astype(np.float32), lead[1]], [a.astype(np.float32) for a in (*x, *g, *v, *h)]
                model = helper.make_model(helper.make_graph(
                    [helper.make_node("Adam", [f"x{i}" for i in range(10)], [f"y{i}" for i in range(6)], domain=TRAINING)], "g",
                    [helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                     for i, a in enumerate([*lead32, *all32])],
                    [helper.make_empty_tensor_value_info(f"y{i}") for i in range(6)]),
                    opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(TRAINING, 1)])
                single = run_onnx(model, {f"x{i}": a for i, a in enumerate([*lead32, *all32])})
                own.add("Adam", [*lead, *x, *g, *v, *h], opset=1, outputs=6, domain=TRAINING, reference=[a.astype(np.float64) for a in single])
            for mode in ("standard", "nesterov"):
                own.add("Momentum", [*lead, *x, *g, *v], opset=1, outputs=4, domain=TRAINING, reference="onnx",
                        alpha=0.9, beta=0.5, mode=mode, norm_coefficient=0.01)
    own.refuse("Momentum", [*lead, x[0], g[0]], "needs 5 inputs", opset=1, domain=TRAINING, alpha=0.9, beta=0.5, mode="standard", norm_coefficient=0.0)
    own.refuse("Momentum", [*lead, x[0], g[0], v[0]], "found 'fast'", domain=TRAINING, outputs=2, opset=1, alpha=0.9, beta=0.5, mode="fast",
               norm_coefficient=0.0)


CASES = [adagrad_adam_and_momentum]
