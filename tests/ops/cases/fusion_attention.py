# SPDX-License-Identifier: Apache-2.0
"""Cases of attention written as single nodes, which a pass replaces by one operator."""
import numpy as np
from onnx import parser

from .common import f32, helper, i64
from .fusion import chain


def unfused(own):
    """Attention as single nodes: chains that are fused into one operator, and similar chains that must not be."""
    def add(label, q, k, v, mask=None, scale="Mul", dims=None, weights="Softmax <axis = -1> (masked)"):
        feeds = {"q": q, "k": k, "v": v, **({} if mask is None else {"mask": mask})}
        group, heads = q.shape[1] // k.shape[1], q.shape[1]
        declared = ", ".join(f"float[{','.join(map(str, (dims or {}).get(name, x.shape)))}] {name}" for name, x in feeds.items())
        b, t = k.shape[0], k.shape[2]
        repeat = "".join(f"""{x}1 = Unsqueeze ({x}, two) {x}2 = Expand ({x}1, wide{x}) {x}3 = Reshape ({x}2, many{x})"""
                         if group > 1 else f"{x}3 = Identity ({x})" for x in "kv")
        shapes = "".join(f"""wide{x} = Constant <value = int64[5] {{{b}, {k.shape[1]}, {group}, {t}, {w.shape[3]}}}> ()
                             many{x} = Constant <value = int64[4] {{{b}, {heads}, {t}, {w.shape[3]}}}> ()""" for x, w in (("k", k), ("v", v)))
        text = f"""<ir_version: 8, opset_import: ["" : 17]> attention ({declared}) => (float y) {{
            two = Constant <value = int64[1] {{2}}> () factor = Constant <value = float {{0.3}}> () {shapes} {repeat}
            transposed = Transpose <perm = [0, 1, 3, 2]> (k3) scores = MatMul (q, transposed)
            scaled = {f"{scale} (scores, factor)" if scale else "Identity (scores)"}
            masked = {"Add (scaled, mask)" if mask is not None else "Identity (scaled)"}
            weights = {weights} y = MatMul (weights, v3) }}"""
        own.model("attention_" + label, parser.parse_model(text), list(feeds.items()))
    q, k, v = f32(2, 6, 5, 8), f32(2, 3, 9, 8), f32(2, 3, 9, 4)
    add("grouped", q, k, v)
    add("grouped_mask", q, k, v, f32(5, 9), "Div")
    add("grouped_mask_of_batch", q, k, v, f32(2, 1, 5, 9), None)
    add("grouped_mask_of_keys", q, k, v, f32(1, 1, 1, 9))
    add("grouped_broadcast_mask", q, k, v, f32(2, 1, 5, 1))
    add("grouped_dynamic_mask", q, k, v, f32(2, 1, 5, 1), dims={"mask": ("b", 1, "s", "t")})
    add("alone", f32(2, 3, 70, 8), k, v, f32(70, 9))
    add("one_query", q[:, :, :1], k, v, f32(1, 9), dims={"q": ("b", 6, "s", 8), "k": ("b", 3, "t", 8), "v": ("b", 3, "t", 4)})
    add("keys_for_all_batches", q, k[:1], v[:1], f32(5, 9))
    add("another_axis", f32(2, 3, 9, 8), k, v, weights="Softmax <axis = 2> (masked)")


def between_heads(own):
    """Attention between Reshape and Transpose of the heads, with masks of all shapes that broadcast."""
    def add(label, mask, dims=None, batch=2):
        feeds = {"q": f32(batch, 5, 12), "k": f32(batch, 9, 12), "v": f32(batch, 9, 12), "mask": mask}
        declared = ", ".join(f"float[{','.join(map(str, (dims or {}).get(name, x.shape)))}] {name}" for name, x in feeds.items())
        split = "".join(f"{x}1 = Reshape ({x}, many) {x}2 = Transpose <perm = {perm}> ({x}1)"
                        for x, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])))
        text = f"""<ir_version: 8, opset_import: ["" : 17]> attention ({declared}) => (float y) {{
            many = Constant <value = int64[4] {{0, 0, 3, 4}}> () one = Constant <value = int64[3] {{0, 0, 12}}> ()
            factor = Constant <value = float {{0.4}}> () {split} scores = MatMul (q2, k2) scaled = Mul (scores, factor)
            masked = Add (scaled, mask) weights = Softmax <axis = -1> (masked) mixed = MatMul (weights, v2)
            back = Transpose <perm = [0, 2, 1, 3]> (mixed) y = Reshape (back, one) }}"""
        own.model("attention_" + label, parser.parse_model(text), list(feeds.items()))
    for shape in ((1, 1, 1, 1), (2, 1, 1, 1), (1, 1, 5, 1), (2, 1, 5, 1), (2, 1, 1, 9), (2, 1, 5, 9), (1, 3, 5, 9), (5, 9)):
        add("joined_" + "_".join(map(str, shape)), f32(*shape))
    for shape in ((1, 1, 1, 1), (2, 1, 5, 1), (2, 1, 5, 9)):
        add("joined_dynamic_" + "_".join(map(str, shape)), f32(*shape), {"mask": ("b", 1, "s", "t")})
    add("joined_larger_batch", f32(4, 1, 5, 9), batch=1)


def scale_of_five_axes(own):
    """Found by fuzzing: the scale has more axes than the scores, so the result has five axes and this is not attention."""
    node = helper.make_node
    chain(own, "attention_five_axes", f32(3, 8), [
        node("Reshape", ["x", "shape"], ["h"]), node("Transpose", ["h"], ["k"], perm=[0, 1, 3, 2]), node("MatMul", ["h", "k"], ["p"]),
        node("Mul", ["p", "half"], ["s"]), node("Softmax", ["s"], ["w"]), node("MatMul", ["w", "h"], ["y"])],
          {"half": np.full((1, 1, 1, 1, 1), .5, np.float32), "shape": i64(1, 2, 3, 4)})


CASES = [unfused, between_heads, scale_of_five_axes]
