# SPDX-License-Identifier: Apache-2.0
"""Attention and what stands around it in transformers; the normalizations of groups."""
import numpy as np
from common import f32, i64, rng
from onnx import parser


def attention(own):
    q, k, v = f32(2, 6, 70, 20), f32(2, 3, 150, 20), f32(2, 3, 150, 12)
    add = lambda inputs, **attrs: own.add("Attention", inputs, opset=attrs.pop("opset", 24), **attrs)  # noqa: E731
    add([q, k, v])
    add([q, k, v], is_causal=1, scale=0.3)
    add([q, k, v, f32(70, 150)], softcap=2.0)
    add([q, k, v, rng.random((2, 1, 70, 150)) < 0.7], is_causal=1)
    add([q, k, v, rng.random((6, 1, 150)) < 0.7], reference="onnx")
    add([q, k, v, f32(2, 6, 70, 170), f32(2, 3, 20, 20), f32(2, 3, 20, 12)], outputs=3, is_causal=1)
    add([f32(2, 5, 24), f32(2, 9, 12), f32(2, 9, 10)], q_num_heads=4, kv_num_heads=2)
    add([f32(2, 1, 24), f32(2, 1, 12), f32(2, 1, 10), None, f32(2, 2, 33, 6), f32(2, 2, 33, 5)], q_num_heads=4, kv_num_heads=2,
        outputs=3, is_causal=1)
    add([f32(1, 2, 3, 131), f32(1, 2, 9, 131), f32(1, 2, 9, 3)])
    for mode in range(4):
        add([f32(2, 2, 7, 5), f32(2, 2, 9, 5), f32(2, 2, 9, 6), f32(7, 9)], outputs=4, qk_matmul_output_mode=mode, softcap=1.5 * (mode > 0),
            reference="onnx")
    lengths = i64(90, 150)
    add([q, k, v, None, None, None, lengths], is_causal=1, reference="onnx")
    add([q, k, v], opset=25, left_window_size=20, right_window_size=3, reference="onnx")
    add([q, k, v, f32(70, 140), None, None, i64(140, 77)], opset=25, left_window_size=9, is_causal=1, reference="onnx")
    for dtype in (np.float64, np.float16):
        add([x.astype(dtype) for x in (q, k, v)], is_causal=1, reference="onnx", rtol=1e-3 if dtype == np.float64 else 2e-2, atol=1e-3)


def spelled(own):
    """Attention from single steps: what is fused into one operator answers as the steps do, and what must not be fused too."""
    def add(label, q, k, v, mask=None, scale="Mul", dims=None, share="Softmax <axis = -1> (masked)"):
        feeds = {"q": q, "k": k, "v": v, **({} if mask is None else {"mask": mask})}
        group, heads = q.shape[1] // k.shape[1], q.shape[1]
        declared = ", ".join(f"float[{','.join(map(str, (dims or {}).get(name, x.shape)))}] {name}" for name, x in feeds.items())
        b, t = k.shape[0], k.shape[2]
        repeat = "".join(f"""{x}1 = Unsqueeze ({x}, two) {x}2 = Expand ({x}1, wide{x}) {x}3 = Reshape ({x}2, many{x})"""
                         if group > 1 else f"{x}3 = Identity ({x})" for x in "kv")
        shapes = "".join(f"""wide{x} = Constant <value = int64[5] {{{b}, {k.shape[1]}, {group}, {t}, {w.shape[3]}}}> ()
                             many{x} = Constant <value = int64[4] {{{b}, {heads}, {t}, {w.shape[3]}}}> ()""" for x, w in (("k", k), ("v", v)))
        text = f"""<ir_version: 8, opset_import: ["" : 17]> spelled ({declared}) => (float y) {{
            two = Constant <value = int64[1] {{2}}> () factor = Constant <value = float {{0.3}}> () {shapes} {repeat}
            turned = Transpose <perm = [0, 1, 3, 2]> (k3) scores = MatMul (q, turned)
            scaled = {f"{scale} (scores, factor)" if scale else "Identity (scores)"}
            masked = {"Add (scaled, mask)" if mask is not None else "Identity (scaled)"}
            share = {share} y = MatMul (share, v3) }}"""
        own.model(label, parser.parse_model(text), list(feeds.items()))
    q, k, v = f32(2, 6, 5, 8), f32(2, 3, 9, 8), f32(2, 3, 9, 4)
    add("grouped", q, k, v)
    add("grouped_mask", q, k, v, f32(5, 9), "Div")
    add("grouped_mask_of_images", q, k, v, f32(2, 1, 5, 9), None)
    add("grouped_mask_of_keys", q, k, v, f32(1, 1, 1, 9))
    add("grouped_spread_mask", q, k, v, f32(2, 1, 5, 1))
    add("grouped_open_mask", q, k, v, f32(2, 1, 5, 1), dims={"mask": ("b", 1, "s", "t")})
    add("alone", f32(2, 3, 70, 8), k, v, f32(70, 9))
    add("one_query", q[:, :, :1], k, v, f32(1, 9), dims={"q": ("b", 6, "s", 8), "k": ("b", 3, "t", 8), "v": ("b", 3, "t", 4)})
    add("keys_for_all_images", q, k[:1], v[:1], f32(5, 9))
    add("another_axis", f32(2, 3, 9, 8), k, v, share="Softmax <axis = 2> (masked)")


def joined(own):
    """The same between heads that are split and joined around it; masks of all shapes that Add takes."""
    def add(label, mask, dims=None, batch=2):
        feeds = {"q": f32(batch, 5, 12), "k": f32(batch, 9, 12), "v": f32(batch, 9, 12), "mask": mask}
        declared = ", ".join(f"float[{','.join(map(str, (dims or {}).get(name, x.shape)))}] {name}" for name, x in feeds.items())
        split = "".join(f"{x}1 = Reshape ({x}, many) {x}2 = Transpose <perm = {perm}> ({x}1)"
                        for x, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])))
        text = f"""<ir_version: 8, opset_import: ["" : 17]> joined ({declared}) => (float y) {{
            many = Constant <value = int64[4] {{0, 0, 3, 4}}> () one = Constant <value = int64[3] {{0, 0, 12}}> ()
            factor = Constant <value = float {{0.4}}> () {split} scores = MatMul (q2, k2) scaled = Mul (scores, factor)
            masked = Add (scaled, mask) share = Softmax <axis = -1> (masked) mixed = MatMul (share, v2)
            back = Transpose <perm = [0, 2, 1, 3]> (mixed) y = Reshape (back, one) }}"""
        own.model(label, parser.parse_model(text), list(feeds.items()))
    for shape in ((1, 1, 1, 1), (2, 1, 1, 1), (1, 1, 5, 1), (2, 1, 5, 1), (2, 1, 1, 9), (2, 1, 5, 9), (1, 3, 5, 9), (5, 9)):
        add("joined_" + "_".join(map(str, shape)), f32(*shape))
    for shape in ((1, 1, 1, 1), (2, 1, 5, 1), (2, 1, 5, 9)):
        add("joined_open_" + "_".join(map(str, shape)), f32(*shape), {"mask": ("b", 1, "s", "t")})
    add("joined_more_images", f32(4, 1, 5, 9), batch=1)


def rotary(own):
    cos, sin = f32(50, 8, low=-1, high=1), f32(50, 8, low=-1, high=1)
    at = rng.integers(0, 50, (2, 7))
    for interleaved in (0, 1):
        own.add("RotaryEmbedding", [f32(2, 3, 7, 16), cos, sin, at], opset=23, interleaved=interleaved)
        own.add("RotaryEmbedding", [f32(2, 7, 60), cos, sin, at], opset=23, interleaved=interleaved, num_heads=3, rotary_embedding_dim=16)
        own.add("RotaryEmbedding", [f32(2, 7, 48), at, cos, sin], opset=1, domain="com.microsoft", interleaved=interleaved)
        own.add("RotaryEmbedding", [f32(2, 3, 7, 16), i64(11), cos, sin], opset=1, domain="com.microsoft", interleaved=interleaved)
    own.add("RotaryEmbedding", [f32(2, 7, 60), at, cos, sin], opset=1, domain="com.microsoft", num_heads=3, rotary_embedding_dim=16)


def lrn(x, size, alpha, beta, bias):  # ORT takes odd sizes alone; ONNX's reference leaves channels out
    squares = np.stack([(x[:, max(0, c - (size - 1) // 2):c + size // 2 + 1] ** 2).sum(1) for c in range(x.shape[1])], 1)
    return (x / (bias + alpha / size * squares) ** beta).astype(np.float32)


def typed_rows(own):
    for dtype, rtol in ((np.float64, 1e-9), (np.float16, 2e-3)):
        x, n = f32(3, 4, 37).astype(dtype), 37
        own.add("LayerNormalization", [x, f32(n).astype(dtype), f32(n).astype(dtype)], rtol=rtol, atol=1e-3 if rtol > 1e-6 else 1e-9)
        own.add("Softmax", [x], rtol=rtol, reference="onnx")
        own.add("LogSoftmax", [x], axis=1, rtol=max(rtol, 1e-6) * 5, reference="onnx")
        own.add("RMSNormalization", [x, f32(n).astype(dtype)], opset=23, rtol=rtol, reference="onnx", atol=1e-3 if rtol > 1e-6 else 1e-6)


def group_norms(own):
    x = f32(3, 6, 7, 5)
    own.add("GroupNormalization", [x, f32(3), f32(3)], opset=18, num_groups=3, epsilon=1e-2)
    own.add("GroupNormalization", [x, f32(6), f32(6)], opset=21, num_groups=2)
    own.add("GroupNormalization", [f32(2, 6), f32(6), f32(6)], opset=21, num_groups=2, reference="onnx")
    for size in (1, 3):
        own.add("LRN", [x], size=size, alpha=0.2, beta=0.75, bias=1.5)
    own.add("LRN", [x], size=5, alpha=0.2, beta=0.6)
    own.add("LRN", [x], size=4, alpha=0.2, beta=0.6, bias=2.0, reference=[lrn(x, 4, 0.2, 0.6, 2.0)])
    own.add("MeanVarianceNormalization", [x])
    own.add("MeanVarianceNormalization", [x], axes=[1, 3], reference="onnx")
    for axis in (0, 1, -1):
        own.add("LpNormalization", [x], axis=axis, p=2)
        own.add("LpNormalization", [x], axis=axis, p=1)


def cases(own):
    attention(own)
    spelled(own)
    joined(own)
    rotary(own)
    typed_rows(own)
    group_norms(own)
