# SPDX-License-Identifier: Apache-2.0
"""Attention, positions, and operators on strings."""
import numpy as np

from .common import K, W, X, generator, indices, single

# batch, heads, queries, keys, size of a head
ATTENTIONS = [(1, 12, 128, 128, 64), (8, 12, 128, 128, 32), (1, 9, 1, 257, 64), (1, 8, 1024, 1024, 40), (1, 6, 197, 197, 64), (1, 12, 1, 16, 64),
              (32, 4, 16, 16, 8), (3, 5, 17, 19, 24), (1, 16, 64, 1500, 64)]


@generator("attention")
def attention():
    for batch, heads, queries, keys, size in ATTENTIONS:
        for dtype in ("f32", "f16"):
            tensors = [X(batch, heads, count, size, low=-1, high=1) for count in (queries, keys, keys)]
            yield single("Attention", dtype, tensors, opset=23)
            if queries == keys:
                yield single("Attention", dtype, tensors, opset=23, is_causal=1)
            rows = [X(batch, count, heads * size, low=-1, high=1) for count in (queries, keys, keys)]
            yield single("MultiHeadAttention", dtype, rows, domain="com.microsoft", num_heads=heads)
        if queries == keys:
            width = heads * size
            yield single("Attention", "f32", [X(batch, queries, width), W(width, 3 * width, low=-0.05, high=0.05), W(3 * width)], domain="com.microsoft",
                         num_heads=heads)
            scale = K(np.float32(0.02))
            yield single("QAttention", "u8i8", [X(batch, queries, width, dtype="u8", low=0, high=255), W(width, 3 * width, dtype="i8", low=-100, high=100),
                                               W(3 * width, dtype="f32"), scale, K(np.float32(0.001)), None, K(np.array(128), "u8"), K(np.array(0), "i8")],
                         domain="com.microsoft", out=["f32"], num_heads=heads)
    for batch, heads, groups, tokens, past, size in ((1, 9, 3, 1, 256, 64), (1, 9, 3, 128, 0, 64), (1, 32, 8, 1, 1023, 128), (2, 8, 8, 1, 64, 64)):
        total = past + tokens
        tensors = [X(batch, tokens, heads * size, low=-1, high=1), *(X(batch, tokens, groups * size, low=-1, high=1) for _ in range(2)),
                   *(X(batch, groups, past, size, low=-1, high=1) for _ in range(2)), K(np.full(batch, total - 1), "i32"), K(np.array(total), "i32")]
        yield single("GroupQueryAttention", "f32", tensors, domain="com.microsoft", outputs=3, num_heads=heads, kv_num_heads=groups, note=f"after {past}")
    for batch, heads, tokens, size in ((1, 8, 64, 64), (1, 8, 1, 64)):
        yield single("LinearAttention", "f32", [*(X(batch, tokens, heads * size, low=-1, high=1) for _ in range(3)), None], opset=27, outputs=2,
                     q_num_heads=heads, kv_num_heads=heads, update_rule="linear")


@generator("attention")
def positions():
    for batch, heads, tokens, size in ((1, 9, 1, 64), (1, 9, 128, 64), (1, 32, 1024, 128), (3, 5, 7, 16)):
        for dtype in ("f32", "f16"):
            tables = [W(2048, size // 2, low=-1, high=1), W(2048, size // 2, low=-1, high=1)]
            places = indices((batch, tokens), 2048)
            yield single("RotaryEmbedding", dtype, [X(batch, heads, tokens, size), *tables, places], opset=23)
            yield single("RotaryEmbedding", dtype, [X(batch, heads, tokens, size), places, *tables], domain="com.microsoft")


@generator("strings")
def strings():
    for shape in ((1,), (32,), (1000,)):
        text = X(*shape, dtype="string")
        yield single("StringConcat", "string", [text, text], opset=20)
        yield single("StringNormalizer", "string", [text], opset=10, case_change_action="LOWER")
        yield single("StringSplit", "string", [text], opset=20, outputs=2, out=["string", "i64"], delimiter=" ")
        yield single("RegexFullMatch", "string", [text], opset=20, out=["bool"], pattern="[a-z]+.*[0-9]")
        yield single("Equal", "string", [text, text], out=["bool"])
        yield single("Tokenizer", "string", [text], domain="com.microsoft", mark=0, mincharnum=1, pad_value="#", separators=[" "])
    for rows, columns in ((1, 20), (32, 100)):
        yield single("TfIdfVectorizer", "i64", [X(rows, columns, low=0, high=50)], out=["f32"], mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=0,
                     ngram_counts=[0, 50], ngram_indexes=list(range(100)), pool_int64s=[*range(50), *(v % 50 for i in range(50) for v in (i, i + 1))])
