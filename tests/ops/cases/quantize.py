# SPDX-License-Identifier: Apache-2.0
"""Cases of quantization, dequantization and quantized elementwise operators."""
import ml_dtypes
import numpy as np

from .common import T, as_proto, f32, helper, ints, rng


def quantize_and_dequantize_linear(own):
    """QuantizeLinear and DequantizeLinear per tensor, per axis and in blocks, with ties and values out of range; DynamicQuantizeLinear."""
    x = f32(3, 20, 35, low=-60, high=60)
    x.flat[:12] = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 300, -300, 1e30, -1e30, np.inf, -np.inf]
    x.flat[20:40] = np.arange(20) * 0.25
    for kind in (np.uint8, np.int8, np.uint16, np.int16):
        opset = 21 if np.dtype(kind).itemsize == 2 else 13
        for axis in (None, 0, 1, 2):
            shape = () if axis is None else (x.shape[axis],)
            scale, zero = np.asarray(f32(*shape, low=0.2, high=0.6), np.float32), ints(kind, *shape)
            if axis is None:
                scale = np.float32(0.5)
            attrs = {} if axis is None else {"axis": axis}
            limits, view = np.iinfo(kind), [1] * 3
            if axis is not None:
                view[axis] = -1
            s, z = scale.reshape(view), zero.astype(np.int64).reshape(view)
            y = np.clip(np.rint((x / s).astype(np.float64)) + z, limits.min, limits.max).astype(kind)
            own.add("QuantizeLinear", [x, scale, zero], opset=opset, reference=[y], constants=(1, 2), **attrs)
            q = ints(kind, *x.shape)
            own.add("DequantizeLinear", [q, scale, zero], opset=opset, rtol=0, atol=0, reference=[(q - z).astype(np.float32) * s], **attrs)
    for axis, block in ((1, 8), (2, 9)):
        shape = list(x.shape)
        shape[axis] = -(-shape[axis] // block)
        scale, zero = f32(*shape, low=0.2, high=0.6), ints(np.int8, *shape)
        spread = lambda v: np.take(np.repeat(v, block, axis), range(x.shape[axis]), axis)  # noqa: E731,B023
        y = np.clip(np.rint((x / spread(scale)).astype(np.float64)) + spread(zero), -128, 127).astype(np.int8)
        own.add("QuantizeLinear", [x, scale, zero], opset=21, axis=axis, block_size=block, reference=[y])
        q = ints(np.int8, *x.shape)
        own.add("DequantizeLinear", [q, scale, zero], opset=21, axis=axis, block_size=block, rtol=0, atol=0,
                reference=[(q - spread(zero).astype(np.int64)).astype(np.float32) * spread(scale)])
    q = rng.integers(-2**30, 2**30, (6, 50), np.int32)
    own.add("DequantizeLinear", [q, f32(6, low=0.1, high=1)], opset=13, axis=0, reference="ort")
    for values in (x[:, :, 12:] * 0.01, np.abs(f32(3, 333)), -np.abs(f32(1, 70001)), np.zeros((2, 5), np.float32)):
        own.add("DynamicQuantizeLinear", [values[np.isfinite(values)]], outputs=3, opset=11)


def microscaling(own):
    """QuantizeLinear and DequantizeLinear in blocks of 4 with scales of float8_e8m0, as in microscaling formats; integer scales."""
    scale = np.array([[0.5, 4], [1, 0.125], [2, 16]], np.float32)
    x = f32(3, 8, low=-12, high=12)
    spread = scale.repeat(4, axis=1)
    for dtype, largest in ((ml_dtypes.float8_e4m3fn, 448), (ml_dtypes.float4_e2m1fn, 6)):
        wanted = np.clip(x / spread, -largest, largest).astype(dtype)
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        powers = scale.astype(ml_dtypes.float8_e8m0fnu)
        own.add("QuantizeLinear", [x, powers], opset=28, reference=[wanted], axis=1, block_size=4, output_dtype=kind)
        own.add("DequantizeLinear", [wanted, powers], opset=28, reference=[wanted.astype(np.float32) * spread], axis=1, block_size=4,
                output_dtype=T.FLOAT)
        own.add("DequantizeLinear", [wanted, powers], opset=28, axis=1, block_size=4, output_dtype=T.FLOAT16,
                reference=[(wanted.astype(np.float32) * spread).astype(np.float16)])
    whole = rng.integers(-900, 900, (4, 5)).astype(np.int32)
    own.add("QuantizeLinear", [whole, np.array(7, np.int32), np.array(3, np.int8)], opset=28,
            reference=[np.clip(np.rint(whole / 7) + 3, -128, 127).astype(np.int8)])


def quantize_linear_packed(own):
    # found by fuzzing: the unused bits of the last byte were not zero
    for name, count in (("uint4", 33), ("int4", 1), ("uint2", 6)):
        x = f32(count, low=0, high=6)
        own.add("QuantizeLinear", [x, np.float32(2), np.ones((), np.dtype(name))], opset=25,
                reference=[np.clip(np.rint(x / 2) + 1, 0, 3 if name == "uint2" else 7).astype(np.dtype(name))])


def qlinear_elementwise(own):
    """QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu, QLinearConcat, QLinearSoftmax."""
    for dtype, zeros in ((np.uint8, (120, 131, 117)), (np.int8, (3, -7, 11))):
        byte = lambda *shape: rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)  # noqa: B023,E731
        s, z = [np.float32(v) for v in (0.0213457, 0.0131173, 0.0302711)], [dtype(v) for v in zeros]
        a, b = byte(2, 3, 5), byte(3, 1)
        own.microsoft("QLinearAdd", [a, s[0], z[0], byte(2, 3, 5), s[1], z[1], s[2], z[2]])
        own.microsoft("QLinearAdd", [a, s[0], z[0], b, s[1], z[1], s[2], z[2]], constants=(1, 2, 4, 5, 6, 7))
        own.microsoft("QLinearMul", [a, s[0], z[0], b, s[1], z[1], s[2], z[2]])
        own.microsoft("QLinearSigmoid", [byte(300), s[0], z[0], np.float32(1 / 256), dtype(np.iinfo(dtype).min)])
        own.microsoft("QLinearLeakyRelu", [byte(300), s[0], z[0], s[1], z[1]], alpha=0.2)
        own.microsoft("QLinearConcat", [s[2], z[2], byte(2, 3, 4), s[0], z[0], byte(2, 5, 4), s[1], z[1], byte(2, 1, 4), s[2], z[2]], axis=1)
        own.microsoft("QLinearSoftmax", [byte(3, 4, 17), s[0], z[0], np.float32(1 / 256), dtype(np.iinfo(dtype).min)], axis=-1, opset=13,
                      constants=(1, 2, 3, 4))


def qlinear_shapes(own):
    """QLinearAdd, QLinearMul and others over whole vectors and their rests, and each way to broadcast."""
    for dtype, zeros in ((np.uint8, (120, 131, 117)), (np.int8, (3, -7, 11))):
        limits = np.iinfo(dtype)
        byte = lambda *shape: rng.integers(limits.min, limits.max + 1, shape).astype(dtype)  # noqa: B023,E731
        s, z = [np.float32(v) for v in (0.0213457, 0.0131173, 0.0302711)], [dtype(v) for v in zeros]
        every = [np.repeat(np.arange(limits.min, limits.max + 1), 256).astype(dtype), np.tile(np.arange(limits.min, limits.max + 1), 256).astype(dtype)]
        for a, b in (every, (byte(7, 300), byte(7, 1)), (byte(300), byte(1)), (byte(1), byte(333)), (byte(9, 1), byte(70)), (byte(2, 65), byte(2, 65))):
            for op in ("QLinearAdd", "QLinearMul"):
                own.microsoft(op, [a, s[0], z[0], b, s[1], z[1], s[2], z[2]], atol=1 if op == "QLinearMul" else 1e-5)
            own.microsoft("QLinearAdd", [a, s[0], z[0], b, s[1], z[1], np.float32(0.0009), z[2]])
        for shape in ((5, 1000), (2, 64), (3, 100, 7)):
            own.microsoft("QLinearSoftmax", [byte(*shape), s[0], z[0], np.float32(1 / 256), dtype(limits.min)], axis=1, opset=13, atol=1)
        parts = [byte(1, 2, 4000), s[0], z[0], byte(1, 3, 4000), s[2], z[2]]
        own.microsoft("QLinearConcat", [s[2], z[2], *parts], axis=1)
        own.microsoft("QLinearConcat", [s[2], z[2], byte(40, 3), s[0], z[0], byte(40, 9), s[1], z[1]], axis=1)


def gather_block_quantized(own):
    """Indices of each rank, out of range and negative; each type of data and place of the axes; zero points in rows of whole bytes."""
    gather = lambda inputs, **more: own.microsoft("GatherBlockQuantized", inputs, constants=(0, *range(2, len(inputs))), **more)  # noqa: E731
    indices = np.array([[3, 0, -1], [1, 20, 2]])
    for bits in (2, 4, 8):
        rows, blocks, block = 5, 3, 32
        data = rng.integers(0, 256, (rows, blocks * block * bits // 8)).astype(np.uint8)
        zeros = rng.integers(0, 256, (rows, -(-blocks * bits // 8))).astype(np.uint8)
        for kind in (np.float32, np.float16):
            scales, more = f32(rows, blocks, low=0.01, high=0.1).astype(kind), {"bits": bits, "block_size": block}
            gather([data, indices, scales, zeros], **more)
            gather([data, indices.astype(np.int32), scales], gather_axis=0, quantize_axis=-1, **more)
            gather([data, np.int64(2), scales], **more)
    data = rng.integers(0, 256, (4, 3, 70)).astype(np.uint8)
    gather([data, np.array([1, 3]), f32(4, 3, 5), rng.integers(0, 256, (4, 3, 5)).astype(np.uint8)], bits=8, block_size=16, quantize_axis=2)
    for kind in (ml_dtypes.uint4, ml_dtypes.int4):
        low = -8 if kind is ml_dtypes.int4 else 0
        small = lambda *shape: rng.integers(low, low + 16, shape).astype(kind)  # noqa: B023,E731
        gather([small(3, 5, 36), np.array([[0, 4], [2, -1]]), f32(3, 5, 3), small(3, 5, 3)], gather_axis=1, quantize_axis=2, block_size=16)
        gather([small(33, 3, 4), np.array([1]), f32(3, 3, 4)], gather_axis=1, quantize_axis=0, block_size=16)
        gather([small(2, 33), np.array([1, 0, 1]), f32(2, 3)], block_size=16)
    for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn):
        data = f32(4, 40).astype(kind)
        wanted = data.astype(np.float32)[[2, 0]]
        add = lambda scales, spread, size: own.add(  # noqa: E731
            "GatherBlockQuantized", [data, np.array([2, 0]), scales], constants=(0, 2), opset=1, domain="com.microsoft", block_size=size,  # noqa: B023
            reference=[wanted * spread])  # noqa: B023
        add(np.full((1, 1), 0.5, np.float32), 0.5, 0)
        scales = f32(4, 3)
        add(scales, scales.repeat(16, 1)[[2, 0], :40], 16)
    rows, scales = np.zeros((4, 32), np.uint8), np.ones((4, 2), np.float32)
    own.refuse("GatherBlockQuantized", [rows, indices, scales], "expected 2, 4", domain="com.microsoft", opset=1, bits=3)
    own.refuse("GatherBlockQuantized", [rows, indices, scales], "power of 2", domain="com.microsoft", opset=1, bits=8, block_size=24)
    own.refuse("GatherBlockQuantized", [rows, indices, scales], "do not match the blocks", domain="com.microsoft", opset=1, bits=8, block_size=32)


def contrib_quantize_and_dequantize(own):
    """QuantizeLinear and DequantizeLinear of com.microsoft, which ONNX Runtime's quantizer writes for types of 16 and 4 bits."""
    x = f32(3, 4, 5, low=-3, high=3)
    for kind in (np.uint8, np.int8, np.uint16, np.int16):
        zero = kind(7)
        limits = np.iinfo(kind)
        own.microsoft("QuantizeLinear", [x, np.float32(0.02), zero],
                      reference=[np.clip(np.rint(x / np.float32(0.02)) + 7, limits.min, limits.max).astype(kind)])
        own.microsoft("DequantizeLinear", [rng.integers(0, 120, (3, 4, 5)).astype(kind), np.float32(0.02), zero], constants=(1, 2))
        own.microsoft("DequantizeLinear", [rng.integers(0, 120, (3, 4, 5)).astype(kind), f32(4, low=0.1, high=1), rng.integers(0, 9, 4).astype(kind)],
                      axis=1, constants=(1, 2))
    # between them, a MatMul becomes an integer GEMM
    nodes = [helper.make_node(*row, domain="com.microsoft") for row in (
        ("DequantizeLinear", ["x", "s", "zx"], ["a"]), ("DequantizeLinear", ["w", "s", "zw"], ["b"]), ("QuantizeLinear", ["p", "t", "zx"], ["y"]))]
    nodes.insert(2, helper.make_node("MatMul", ["a", "b"], ["p"]))
    values = {"s": np.float32(0.02), "t": np.float32(0.3), "zx": np.uint8(120), "zw": np.int8(-3), "w": rng.integers(-128, 128, (40, 9)).astype(np.int8)}
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", T.UINT8, ["n", 40])], [helper.make_tensor_value_info("y", T.UINT8, ["n", 9])],
                              [as_proto(name, np.asarray(value)) for name, value in values.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    own.model("contrib_matmul", made, [("x", rng.integers(0, 256, (6, 40)).astype(np.uint8))], atol=1)


def qlinear_where(own):
    for kind in (np.uint8, np.int8):
        byte = lambda *shape: rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)  # noqa: B023,E731
        scales, zeros = [np.float32(v) for v in (0.02, 0.013, 0.03)], [kind(v) for v in (3, 11, 7)]
        for shapes in (((2, 3, 5), (2, 3, 5), (2, 3, 5)), ((3, 1), (2, 3, 5), (1,)), ((4,), (3, 1), (4,))):
            chosen, x, y = rng.integers(0, 2, shapes[0]).astype(bool), byte(*shapes[1]), byte(*shapes[2])
            own.microsoft("QLinearWhere", [chosen, x, scales[0], zeros[0], y, scales[1], zeros[1], scales[2], zeros[2]],
                          constants=(2, 3, 5, 6, 7, 8))


CASES = [quantize_and_dequantize_linear, microscaling, quantize_linear_packed, qlinear_elementwise, qlinear_shapes, gather_block_quantized,
         contrib_quantize_and_dequantize, qlinear_where]
