# SPDX-License-Identifier: Apache-2.0
"""Cases of RNN, GRU and LSTM against ONNX Runtime: directions, lengths, peepholes, activations, layouts."""
import numpy as np
import onnx

from .common import T, f32, helper, rng, run_ort

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def operands(op, steps, batch, inputs, hidden, directions, peepholes=False, lengths=None):
    g, small = GATES[op], 0.8
    x = [f32(steps, batch, inputs), f32(directions, g * hidden, inputs, low=-small, high=small),
         f32(directions, g * hidden, hidden, low=-small, high=small), f32(directions, 2 * g * hidden),
         None if lengths is None else np.array(lengths, np.int32), f32(directions, batch, hidden)]
    if op == "LSTM":
        x.append(f32(directions, batch, hidden))
        if peepholes:
            x.append(f32(directions, 3 * hidden))
    return x


def batch_first(own, op, x, outputs, **attrs):
    """Adds a case with layout=1, which ONNX Runtime does not implement: its results with layout=0, transposed."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(x)]
    outs = [f"y{i}" for i in range(outputs)]
    kinds = [helper.make_tensor_value_info(n, T.INT32 if a.dtype == np.int32 else T.FLOAT, a.shape) for n, a in zip(names, x) if n]
    node = helper.make_node(op, names, outs, **attrs)
    graph = helper.make_graph([node], op, kinds, [helper.make_empty_tensor_value_info(o) for o in outs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    result = run_ort(onnx.shape_inference.infer_shapes(model), {n: a for n, a in zip(names, x) if n})
    result = [r.transpose(2, 0, 1, 3) if i == 0 else r.transpose(1, 0, 2) for i, r in enumerate(result)]
    x = [a.transpose(1, 0, 2) if a is not None and i in (0, 5, 6) else a for i, a in enumerate(x)]
    own.add(op, x, opset=14, outputs=outputs, constants=(1, 2), layout=1, reference=result, **attrs)


def layers(own, op):
    n = 3 if op == "LSTM" else 2
    for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        attrs = {"hidden_size": 5, "direction": direction}
        own.add(op, operands(op, 7, 3, 4, 5, count), opset=14, outputs=n, constants=(1, 2, 3), **attrs)
        own.add(op, operands(op, 7, 3, 4, 5, count, lengths=[7, 2, 4]), opset=14, outputs=n, **attrs)
        own.add(op, operands(op, 4, 2, 3, 5, count)[:3], opset=7, outputs=n, constants=(1, 2), **attrs)
        own.add(op, operands(op, 3, 2, 4, 5, count, lengths=[3, 1]), opset=14, outputs=n, **attrs)  # so few steps that the weights are not packed
        batch_first(own, op, operands(op, 6, 3, 4, 5, count), n, **attrs)
        own.add(op, operands(op, 6, 1, 4, 5, count), opset=22, outputs=n, constants=(1, 2), clip=0.5, **attrs)
    own.add(op, operands(op, 9, 2, 70, 130, 2), opset=14, outputs=n, constants=(1, 2, 3), hidden_size=130, direction="bidirectional",
            atol=1e-4)
    own.add(op, operands(op, 5, 1, 40, 64, 1), opset=14, outputs=n, constants=(1, 2, 3), hidden_size=64, atol=1e-4)
    doubles = [a if a is None or a.dtype == np.int32 else a.astype(np.float64) for a in operands(op, 4, 2, 3, 5, 1)]
    own.add(op, doubles, opset=14, outputs=2, hidden_size=5, reference="onnx")


def rnn_gru_and_lstm(own):
    for op in GATES:
        layers(own, op)


def gru_lstm_and_rnn_attributes(own):
    for lbr in (0, 1):
        for direction, count in (("forward", 1), ("bidirectional", 2)):
            own.add("GRU", operands("GRU", 6, 3, 4, 5, count, lengths=[1, 6, 5]), opset=14, outputs=2, hidden_size=5,
                    direction=direction, linear_before_reset=lbr, constants=(1, 2))
    for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        x = operands("LSTM", 6, 3, 4, 5, count, peepholes=True, lengths=[6, 3, 5])
        own.add("LSTM", x, opset=14, outputs=3, hidden_size=5, direction=direction, constants=(1, 2))
    own.add("LSTM", operands("LSTM", 6, 3, 4, 5, 1), opset=14, outputs=3, hidden_size=5, input_forget=1)
    own.add("LSTM", operands("LSTM", 6, 3, 4, 5, 1), opset=14, outputs=3, hidden_size=5, activations=["HardSigmoid", "Softsign", "Relu"],
            activation_alpha=[0.3], activation_beta=[0.4])
    own.add("LSTM", operands("LSTM", 6, 3, 4, 5, 2), opset=14, outputs=3, hidden_size=5, direction="bidirectional",
            activations=["Sigmoid", "Tanh", "Elu", "HardSigmoid", "LeakyRelu", "ScaledTanh"],
            activation_alpha=[0.7, 0.3, 0.05, 1.3], activation_beta=[0.4, 0.6])
    own.add("GRU", operands("GRU", 6, 3, 4, 5, 1), opset=14, outputs=2, hidden_size=5, activations=["Sigmoid", "Softplus"])
    for function, alpha, beta in (("Relu", [], []), ("Affine", [0.7], [0.1]), ("ThresholdedRelu", [0.3], []), ("Elu", [], []),
                                  ("LeakyRelu", [], []), ("HardSigmoid", [], []), ("Softsign", [], []), ("ScaledTanh", [0.8], [0.4])):
        scales = {k: v for k, v in (("activation_alpha", alpha), ("activation_beta", beta)) if v}
        own.add("RNN", operands("RNN", 4, 2, 3, 5, 1), opset=14, outputs=2, hidden_size=5, activations=[function], **scales)


def dynamic_quantize_lstm(own):
    for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        for columns in (1, 4 * 9):
            scales = [f32(count, columns, low=0.002, high=0.01) if columns > 1 else f32(count, low=0.002, high=0.01) for _ in range(2)]
            w, r = (rng.integers(0, 256, (count, n, 36)).astype(np.uint8) for n in (5, 9))
            zero = np.full(scales[0].shape, 128, np.uint8)
            own.microsoft("DynamicQuantizeLSTM", [f32(6, 2, 5), w, r, f32(count, 72), None, f32(count, 2, 9), f32(count, 2, 9), None,
                                            scales[0], zero, scales[1], zero],
               outputs=3, hidden_size=9, direction=direction, constants=(1, 2, 8, 9, 10, 11), rtol=1e-3, atol=1e-3)


def large_dynamic_quantize_lstm(own):
    """Several blocks of columns and of rows; signed weights; scales of each column."""
    for direction, count, batch, kind in (("forward", 1, 1, np.uint8), ("bidirectional", 2, 2, np.int8)):
        hidden, inputs = 75, 130
        low, high = np.iinfo(kind).min, np.iinfo(kind).max + 1
        w, r = (rng.integers(low, high, (count, rows, 4 * hidden)).astype(kind) for rows in (inputs, hidden))
        scales = [f32(count, 4 * hidden, low=0.0005, high=0.002) for _ in range(2)]
        zeros = [np.full((count, 4 * hidden), zero, kind) for zero in ((100, 131) if low == 0 else (0, 0))]
        own.microsoft("DynamicQuantizeLSTM", [f32(7, batch, inputs), w, r, f32(count, 8 * hidden), None, None, None, None,
                                              scales[0], zeros[0], scales[1], zeros[1]],
           outputs=3, hidden_size=hidden, direction=direction, constants=(1, 2, 8, 9, 10, 11), rtol=1e-3, atol=4e-3)


CASES = [rnn_gru_and_lstm, gru_lstm_and_rnn_attributes, dynamic_quantize_lstm, large_dynamic_quantize_lstm]
