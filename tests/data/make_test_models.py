#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the small ONNX models that tests read, with inputs and ONNX Runtime's answers.

Under --out (default: models/ beside this script; its contents are committed):

  NAME.onnx              a model that must load and run
  NAME/input_X.npy       a case for it: one file for each graph input
  NAME/expected_Y.npy    and for each graph output, computed by ONNX Runtime on the CPU
  NAME/caseN/...         further cases, with other sizes of the symbolic dimensions
  NAME.onnx, bad/*.onnx  models that must be refused in words
  uncovered_op.tsv       each uncovered node of uncovered_op.onnx: domain, operator, version,
                         node, where
  index.tsv              all of them: file, 'good' or 'bad', and what it is there for

Strings are stored as numpy byte strings (|S), UTF-8, padded with NUL. The models are written in
ONNX's text form, so that a test's graph can be read here.

Needs: pip install -r tools/requirements-models.txt
"""
import argparse
import sys
from pathlib import Path

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as e:
    sys.exit(f"make_test_models: '{e.name}' is missing: "
             "pip install -r tools/requirements-models.txt")

F32, I64 = np.float32, np.int64
HEAD = ('<ir_version: 8, opset_import: ["" : 17], '
        'producer_name: "kelp tests/data/make_test_models.py">\n')
REPO = Path(__file__).resolve().parents[2]


def rng_of(name):
    return np.random.default_rng(list(name.encode()))


def parsed(text, weights=None, head=HEAD):
    model = onnx.parser.parse_model(head + text)
    for name, array in (weights or {}).items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


class Writer:
    def __init__(self, out):
        self.out, self.rows = out, []
        (out / "bad").mkdir(parents=True, exist_ok=True)

    def note(self, file, kind, what):
        self.rows.append((file, kind, what))

    def bad(self, name, content, what):
        data = content if isinstance(content, bytes) else content.SerializeToString()
        (self.out / f"{name}.onnx").write_bytes(data)
        self.note(f"{name}.onnx", "bad", what)

    def good(self, name, model, cases, what, save=None, exact=None):
        """`exact` computes outputs that ONNX Runtime rounds (it takes them through double)."""
        onnx.checker.check_model(model, full_check=True)
        path = self.out / f"{name}.onnx"
        (save or (lambda m, p: p.write_bytes(m.SerializeToString())))(model, path)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        for n, inputs in enumerate(cases):
            folder = self.out / name / (f"case{n + 1}" if n else "")
            folder.mkdir(parents=True, exist_ok=True)
            arrays = dict(zip((f"expected_{o}" for o in names), session.run(names, inputs)))
            arrays.update((f"expected_{k}", v) for k, v in (exact(inputs) if exact else {}).items())
            arrays.update((f"input_{k}", v) for k, v in inputs.items())
            for k, v in arrays.items():
                v = np.asarray(v)
                if v.dtype.kind in "OU":
                    v = np.char.encode(v.astype(str), "utf-8")
                np.save(folder / f"{k}.npy", v)
        self.note(f"{name}.onnx", "good", what)

    def finish(self):
        text = "".join("\t".join(r) + "\n" for r in sorted(self.rows))
        (self.out / "index.tsv").write_text("# SPDX-License-Identifier: Apache-2.0\n" + text)


# ---------------------------------------------------------------- models that run

def mlp(w):
    r = rng_of("mlp")
    model = parsed("""mlp (float[batch, 6] x) => (float[batch, 3] y) {
        [hidden] h = Gemm <alpha = 0.5> (x, w1, b1)
        [relu] a = Relu (h)
        [out] y = Gemm <transB = 1> (a, w2, b2)
    }""", {"w1": r.standard_normal((6, 9), F32), "b1": r.standard_normal(9, F32),
           "w2": r.standard_normal((3, 9), F32), "b2": r.standard_normal((1, 3), F32)})
    w.good("mlp_f32", model, [{"x": r.standard_normal((n, 6), F32)} for n in (1, 5, 0)],
           "Gemm and Relu, with scaling and a transposed weight; batches of 1, 5 and none")


def running_sum(w):
    r = rng_of("running_sum")
    model = parsed("""running_sum (float[batch, 4] x, float[batch, 4] sum, float[batch, 1] start)
        => (float[batch, 4] y, float[batch, 4] next) {
        next = Add (x, sum)
        y = Mul (next, start)
    }""")
    w.good("running_sum", model,
           [{"x": r.standard_normal((n, 4), F32), "sum": r.standard_normal((n, 4), F32),
             "start": r.standard_normal((n, 1), F32)} for n in (1, 3)],
           "a state and a control input, for models that batch sequences")


def dynamic_reshape(w):
    r = rng_of("dynamic_reshape")
    model = parsed("""dynamic_reshape (float[b, s, 12] x)
        => (float[b, 4, s, 3] heads, float[n, 12] rows, int64[3] dims)
    <int64 zero = {0}, int64 one = {1}, int64[1] four = {4}, int64[1] three = {3},
     int64[1] axis = {0}, int64[1] rest = {-1}, int64[1] last = {2}, int64[1] end = {3}> {
        dims = Shape (x)
        b = Gather <axis = 0> (dims, zero)
        s = Gather <axis = 0> (dims, one)
        b1 = Unsqueeze (b, axis)
        s1 = Unsqueeze (s, axis)
        to = Concat <axis = 0> (b1, s1, four, three)
        split = Reshape (x, to)
        heads = Transpose <perm = [0, 2, 1, 3]> (split)
        width = Slice (dims, last, end)
        flat = Concat <axis = 0> (rest, width)
        rows = Reshape (x, flat)
    }""")
    w.good("dynamic_reshape", model,
           [{"x": r.standard_normal((b, s, 12), F32)} for b, s in ((2, 5), (1, 1), (3, 2))],
           "shapes computed at run time: Shape, Gather, Unsqueeze, Concat, Slice, Reshape")


def broadcast(w):
    r = rng_of("broadcast")
    kinds = {"float": F32, "double": np.float64, "int32": np.int32, "int64": I64}
    ins, outs, body, feed = [], [], [], {}
    for k, t in kinds.items():
        ins += [f"{k}[b, 1, 4] a_{k}", f"{k}[3, 1] b_{k}", f"{k} c_{k}"]
        outs += [f"{k}[b, 3, 4] {o}_{k}" for o in ("sum", "mix", "max")]
        outs += [f"bool[b, 3, 4] less_{k}"]
        body.append(f"""
        sum_{k} = Add (a_{k}, b_{k})
        d_{k} = Sub (c_{k}, a_{k})
        q_{k} = Div (d_{k}, b_{k})
        mix_{k} = Mul (q_{k}, sum_{k})
        max_{k} = Max (a_{k}, b_{k}, c_{k})
        less_{k} = Less (a_{k}, b_{k})""")
        for n, shape in (("a", (2, 1, 4)), ("b", (3, 1)), ("c", ())):
            v = r.integers(1, 60, shape) * r.choice([-1, 1], shape)
            feed[f"{n}_{k}"] = np.asarray(v / 8 if t in (F32, np.float64) else v, t)
    text = f"broadcast ({', '.join(ins)}) => ({', '.join(outs)}) {{{''.join(body)}\n}}"
    larger = {k: np.concatenate([v, v[::-1]]) if k.startswith("a_") else v for k, v in feed.items()}
    w.good("broadcast", parsed(text), [feed, larger],
           "elementwise arithmetic with broadcasting both ways and scalars, in four dtypes")


def logic(w):
    r = rng_of("logic")
    model = parsed("""logic (float[n, 4] x, float[4] y, uint8[n, 4] u, float16[n, 4] h)
        => (bool[n, 4] both, bool[n, 4] either, bool[n, 4] other, bool[n, 4] same,
            int8[n, 4] narrow,
            float[n, 4] wide, bool[n, 4] truth, int32[n, 4] whole, float16[n, 4] half) {
        g = Greater (x, y)
        l = LessOrEqual (x, y)
        p = Cast <to = 9> (u)
        both = And (g, p)
        either = Or (l, p)
        other = Xor (g, p)
        n = Not (p)
        same = Equal (n, g)
        narrow = Cast <to = 3> (u)
        wide = Cast <to = 1> (h)
        truth = Cast <to = 9> (x)
        whole = Cast <to = 6> (x)
        half = Cast <to = 10> (x)
    }""")
    def case(n):
        x = r.integers(-9, 10, (n, 4)).astype(F32) / 2
        return {"x": x, "y": np.array([0, 1, -1, .5], F32),
                "u": r.integers(0, 3, (n, 4)).astype(np.uint8),
                "h": r.standard_normal((n, 4)).astype(np.float16)}
    w.good("logic_cast", model, [case(3), case(1)],
           "comparisons, boolean operators and casts among dtypes")


def strings(w):
    model = parsed("""string_identity (string[n] s) => (string[n] t, string[m] u)
        <string[2] more = {"fixed", "grün"}> {
        t = Identity (s)
        u = Concat <axis = 0> (t, more)
    }""")
    w.good("string_identity", model,
           [{"s": np.array(["kelp", "", "Zürich 湖", "a\tb"], object)},
            {"s": np.array(["one"], object)}],
           "string tensors: Identity and Concat, an empty one, UTF-8, and a string initializer")


def int64_arithmetic(w):
    model = parsed("""int64_arithmetic (int64[n] a, int64[n] b)
        => (int64[n] sum, int64[n] difference, int64[n] product, int64[n] quotient, int64[n] modulo,
            int64[n] remainder, int64[n] negative, int64[n] magnitude, int64[n] larger,
            int64[n] smaller,
            bool[n] equal, int64 total) {
        sum = Add (a, b)
        difference = Sub (a, b)
        product = Mul (a, b)
        quotient = Div (a, b)
        modulo = Mod (a, b)
        remainder = Mod <fmod = 1> (a, b)
        negative = Neg (a)
        magnitude = Abs (a)
        larger = Max (a, b)
        smaller = Min (a, b)
        equal = Equal (a, b)
        total = ReduceSum <keepdims = 0> (a)
    }""")
    a = np.array([2**53 + 1, -(2**53) - 1, 7, -7, 7, -7, 0, 2**61, -9, 5], I64)
    b = np.array([3, 5, 2, 2, -2, -2, 9, -2, -9, 5], I64)
    w.good("int64_arithmetic", model, [{"a": a, "b": b}],
           "64-bit integers past what a double holds; division and modulo of every pair of signs",
           exact=lambda given: {"remainder": np.fmod(given["a"], given["b"])})


def movement(w):
    r = rng_of("movement")
    model = parsed("""movement (float[n, 6, 5] x, bool[n, 1, 5] keep, int64[2, 2] at)
        => (float[n, 6, 5] chosen, float[n, 3, 5] back, float[n, 2, 3] inner, float[n, 1, 5] s0,
            float[n, 3, 5] s1,
            float[n, 2, 5] s2, float[n, 11, 5] joined, float[n, 6, 5] spread,
            float[n, 2, 2, 5] gathered,
            float[n, 5, 6] turned, float[n, 6, 5, 1] wide, float[n, 8, 6] padded,
            float[n, 6, 10] tiled, float[n, 30] flat)
        <float zero = {0.0}, int64[1] first = {-1}, int64[1] stop = {-7}, int64[1] axis = {1},
         int64[1] step = {-2},
         int64[2] lo = {1, -4}, int64[2] hi = {3, 9223372036854775807}, int64[2] axes = {1, 2},
         int64[2] steps = {1, 1},
         int64[3] parts = {1, 3, 2}, int64[3] to = {1, 6, 5}, int64[1] end = {-1},
         int64[6] pads = {0, 1, 0, 0, 1, 1}, int64[3] times = {1, 1, 2}> {
        chosen = Where (keep, x, zero)
        back = Slice (x, first, stop, axis, step)
        middle = Slice (x, lo, hi, axes, steps)
        ends = Slice (middle, lo_1, hi_1, axis_2)
        inner = Identity (ends)
        s0, s1, s2 = Split <axis = 1> (x, parts)
        joined = Concat <axis = -2> (x, s1, s2)
        row = Slice (s0, zero_1, one_1, zero_1)
        spread0 = Expand (row, to)
        spread = Add (spread0, x)
        gathered = Gather <axis = 1> (x, at)
        turned = Transpose <perm = [0, 2, 1]> (x)
        wide = Unsqueeze (x, end)
        padded = Pad (x, pads, zero)
        tiled = Tile (x, times)
        flat = Flatten (x)
    }""", {"lo_1": np.array([0], I64), "hi_1": np.array([3], I64), "axis_2": np.array([2], I64),
           "zero_1": np.array([0], I64), "one_1": np.array([1], I64)})
    def case(n):
        return {"x": r.standard_normal((n, 6, 5), F32),
                "keep": r.integers(0, 2, (n, 1, 5)).astype(bool),
                "at": np.array([[0, -1], [3, 2]], I64)}
    w.good("movement", model, [case(2), case(1)],
           "Where Slice Split Concat Expand Gather Transpose Unsqueeze Pad Tile Flatten, "
           "negative steps and axes")


def floor(w):
    r = rng_of("floor")
    model = parsed("""floor (float[n, 4] x, float[n, 4] y)
        => (float[n, 4] arithmetic, float[n, 4] powers, float[n, 3] product, float[n, 1] sums,
            float[n] means,
            float[4] largest, float smallest, float[2, n, 2] reshaped, float[n, 2] part,
            float[n, 2] other,
            float[n, 6] joined, float[n, 4] lifted, float[2, 4] gathered, int64[n, 4] whole,
            float[n, 4] chosen,
            bool[n, 4] equal, bool[n, 4] less) {
        [constant] c = Constant <value = float[4] {0.5, 1.0, 1.5, 2.0}> ()
        [c_weight] weight = Constant <
            value = float[4, 3] {1.0, -2.0, 0.5, 0.25, 1.0, -1.0, 2.0, 0.0, 3.0, -0.5, 1.5, 1.0}> ()
        [c_one] one = Constant <value = int64[1] {1}> ()
        [c_three] three = Constant <value = int64[1] {3}> ()
        [c_to] to = Constant <value = int64[3] {-1, 2, 2}> ()
        [c_sizes] sizes = Constant <value = int64[2] {2, 2}> ()
        [c_rows] rows = Constant <value = int64[2] {0, -1}> ()
        [add] a = Add (x, c)
        [sub] s = Sub (a, y)
        [mul] m = Mul (s, x)
        [div] d = Div (m, c)
        [neg] arithmetic = Neg (d)
        [abs] b = Abs (arithmetic)
        [sqrt] q = Sqrt (b)
        [pow] p = Pow (q, c)
        [log] g = Log (p)
        [exp] powers = Exp (g)
        [matmul] product = MatMul (x, weight)
        [reducesum] sums = ReduceSum <keepdims = 1> (x, one)
        [reducemean] means = ReduceMean <axes = [1], keepdims = 0> (x)
        [reducemax] largest = ReduceMax <axes = [0], keepdims = 0> (x)
        [reducemin] smallest = ReduceMin <keepdims = 0> (x)
        [reshape] split = Reshape (x, to)
        [transpose] reshaped = Transpose <perm = [1, 0, 2]> (split)
        [split] part, other = Split <axis = 1> (x, sizes)
        [slice] cut = Slice (x, one, three, one)
        [concat] joined = Concat <axis = 1> (cut, x)
        [unsqueeze] up = Unsqueeze (joined, one)
        [squeeze] down = Squeeze (up, one)
        [identity] same = Identity (y)
        [lift] lifted = Mul (same, c)
        [gather] gathered = Gather (x, rows)
        [cast] whole = Cast <to = 7> (x)
        [greater] more = Greater (x, y)
        [where] chosen = Where (more, x, y)
        [equal] equal = Equal (chosen, x)
        [less] less = Less (x, y)
    }""")
    # 'down' is used as an output too, so that no node is dead.
    model.graph.output.append(helper.make_tensor_value_info("down", TensorProto.FLOAT, ["n", 6]))
    kinds = {n.op_type for n in model.graph.node}
    assert kinds == set("""Add Sub Mul Div Neg Abs Sqrt Pow Exp Log MatMul ReduceSum ReduceMean
        ReduceMax ReduceMin Reshape Transpose Concat Slice Split Squeeze Unsqueeze Identity Cast
        Equal Greater Less Where Constant Gather""".split()), kinds
    def case(n):
        return {"x": r.uniform(0.2, 4, (n, 4)).astype(F32),
                "y": -r.uniform(0.2, 4, (n, 4)).astype(F32)}
    first, second = case(3), case(1)
    first["y"][0] = first["x"][0] * np.array([1, 2, .5, 1], F32)
    w.good("floor", model, [first, second],
           "the 30 operators that every opset backend covers, in one graph")


def conv_pool(w):
    r = rng_of("conv_pool")
    model = parsed("""conv_pool (float[n, 3, h, v] x)
        => (float[n, 6, p, q] y, float[n, 6, 1, 1] mean, float[n, 4, s, t] up) {
        c1 = Conv <kernel_shape = [3, 3], pads = [1, 0, 1, 2], strides = [2, 1]> (x, w1, b1)
        n1 = BatchNormalization <epsilon = 0.001> (c1, scale, shift, average, variance)
        r1 = LeakyRelu <alpha = 0.1> (n1)
        c2 = Conv <kernel_shape = [3, 3], pads = [2, 2, 2, 2], dilations = [2, 2],
                   group = 2> (r1, w2)
        r2 = Clip (c2, low, high)
        c3 = Conv <auto_pad = "SAME_UPPER", group = 6> (r2, w3, b3)
        a = AveragePool <kernel_shape = [2, 3], pads = [0, 1, 1, 1], count_include_pad = 0> (c3)
        y = MaxPool <kernel_shape = [3, 2], strides = [1, 2], ceil_mode = 1> (a)
        mean = GlobalAveragePool (c3)
        up = Conv (r1, w4)
    }""", {"w1": r.standard_normal((6, 3, 3, 3), F32) / 4, "b1": r.standard_normal(6, F32),
           "scale": r.uniform(.5, 2, 6).astype(F32), "shift": r.standard_normal(6, F32),
           "average": r.standard_normal(6, F32), "variance": r.uniform(.5, 2, 6).astype(F32),
           "w2": r.standard_normal((6, 3, 3, 3), F32) / 4,
           "w3": r.standard_normal((6, 1, 2, 2), F32),
           "b3": r.standard_normal(6, F32), "w4": r.standard_normal((4, 6, 1, 1), F32),
           "low": np.array(-1, F32), "high": np.array(1.5, F32)})
    w.good("conv_pool", model,
           [{"x": r.standard_normal((n, 3, h, v), F32)} for n, h, v in ((2, 9, 8), (1, 7, 11))],
           "convolutions: plain, dilated, grouped, depthwise, pointwise; pooling; "
           "normalization; odd sizes")


def attention_block(w):
    r = rng_of("attention_block")
    model = parsed("""attention_block (float[b, s, 8] x, int64[b, s] mask)
        => (float[b, s, 8] y, float[b, 2, s, s] weights)
        <int64[4] split = {0, 0, 2, 4}, int64[3] join = {0, 0, 8}, float one = {1.0},
         float half = {0.5},
         float scale = {2.0}, float low = {-10000.0}, float root = {1.4142135},
         int64[2] axes = {1, 2}> {
        n = LayerNormalization <axis = -1, epsilon = 0.00001> (x, gain, bias)
        q0 = MatMul (n, wq)
        q1 = Reshape (q0, split)
        q = Transpose <perm = [0, 2, 1, 3]> (q1)
        k0 = MatMul (n, wk)
        k1 = Reshape (k0, split)
        k = Transpose <perm = [0, 2, 3, 1]> (k1)
        v1 = Reshape (n, split)
        v = Transpose <perm = [0, 2, 1, 3]> (v1)
        e0 = MatMul (q, k)
        e = Div (e0, scale)
        m0 = Cast <to = 1> (mask)
        m1 = Unsqueeze (m0, axes)
        m2 = Sub (one, m1)
        m = Mul (m2, low)
        em = Add (e, m)
        weights = Softmax <axis = -1> (em)
        c0 = MatMul (weights, v)
        c1 = Transpose <perm = [0, 2, 1, 3]> (c0)
        c = Reshape (c1, join)
        f0 = MatMul (c, wf)
        f = Add (f0, bf)
        g0 = Div (f, root)
        g1 = Erf (g0)
        g2 = Add (g1, one)
        g3 = Mul (f, g2)
        g = Mul (g3, half)
        h = MatMul (g, wo)
        y = Add (h, x)
    }""", {"gain": r.uniform(.5, 2, 8).astype(F32), "bias": r.standard_normal(8, F32),
           "bf": r.standard_normal(16, F32), "wf": r.standard_normal((8, 16), F32),
           "wo": r.standard_normal((16, 8), F32), "wq": r.standard_normal((8, 8), F32),
           "wk": r.standard_normal((8, 8), F32)})
    def case(b, s):
        mask = np.ones((b, s), I64)
        mask[-1, (s + 1) // 2:] = 0
        return {"x": r.standard_normal((b, s, 8), F32), "mask": mask}
    w.good("attention_block", model, [case(2, 5), case(1, 1), case(3, 9)],
           "a small transformer block: LayerNormalization, batched MatMul, Softmax with a "
           "mask, Erf")


def control_flow(w):
    r = rng_of("control_flow")
    model = parsed("""control_flow (float[n] x, bool c) => (float[n] y, float[n] z)
        <float one = {1.0}, float two = {2.0}> {
        y = If (c) <then_branch = yes () => (float[n] t) { t = Add (x, one) },
                    else_branch = no () => (float[n] e) { u = Mul (x, two)  e = Neg (u) }>
        z = kelp.test.TwicePlus (y, one)
    }
    <domain: "kelp.test", opset_import: ["" : 17]>
    TwicePlus (a, b) => (r) { d = Add (a, a)  r = Add (d, b) }
    """, head=HEAD.replace('["" : 17]', '["" : 17, "kelp.test" : 1]'))
    w.good("control_flow", model, [{"x": r.standard_normal(n).astype(F32), "c": np.array(c)}
                                   for n, c in ((4, True), (3, False))],
           "If whose branches read the outer graph, and a function that the model brings along")


def bodies(w):
    """Branches and loops whose answers a few lines of C give: see tests/engine/test_bodies.c."""
    turn = "int64 i, bool go, float[{}] a"
    model = parsed("""bodies (float[n, 3] x, int64 count, int64 rate, float limit)
                           => (float[n, 3] y, float[c, n, 3] rows, float[m, 3] grown, float[n, 3] sum)
        <float one = {1.0}, float two = {2.0}, int64 sixteen = {16}, int64 pair = {2}, int64 none = {0}, bool yes = {1}> {
        fast = Equal (rate, sixteen)
        h = If (fast) <then_branch = add () => (float[n, 3] t) { t = Add (x, one) },
                       else_branch = mul () => (float[n, 3] e) { d = Mul (x, two)  e = Neg (d) }>
        y, rows = Loop <body = alternate (TURN) => (bool next, float[n, 3] b, float[n, 3] row) {
            odd = Mod (i, pair)
            even = Equal (odd, none)
            b = If (even) <then_branch = plus () => (float[n, 3] p) { p = Add (a, x) },
                           else_branch = minus () => (float[n, 3] q) { q = Sub (a, h) }>
            row = Mul (b, two)
            next = Identity (go)
        }> (count, yes, h)
        grown = Loop <body = longer (LONG) => (bool next, float[k, 3] b) {
            b = Concat <axis = 0> (a, x)
            next = Identity (go)
        }> (count, yes, x)
        sum = Loop <body = until (TURN) => (bool next, float[n, 3] b) {
            b = Add (a, x)
            s = ReduceSum <keepdims = 0> (b)
            next = Less (s, limit)
        }> (count, yes, x)
    }""".replace("TURN", turn.format("n, 3")).replace("LONG", turn.format("m, 3")))
    onnx.checker.check_model(model)
    (w.out / "bodies.onnx").write_bytes(model.SerializeToString())
    w.note("bodies.onnx", "bodies", "If and Loop, nested, over what graphs around them hold")


def external_data(w):
    r = rng_of("external")
    weight = r.standard_normal((8, 4), F32)
    text = """external_data (float[n, 8] x) => (float[n, 4] y) {
        m = MatMul (x, weight)
        y = Add (m, bias)
    }"""
    weights = {"weight": weight, "bias": np.arange(4, dtype=F32)}

    def referring(location, offset=0, length=None):
        model = parsed(text, weights)
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for k, v in (("location", location), ("offset", offset),
                     ("length", length or weight.nbytes)):
            entry = tensor.external_data.add()
            entry.key, entry.value = k, str(v)
        return model

    # The tensor does not begin at the file's first byte: an offset that is ignored shows.
    (w.out / "external_data.bin").write_bytes(b"\xff" * 64 + weight.tobytes())
    (w.out.parent / "secret.bin").write_bytes(weight.tobytes())
    cases = [{"x": r.standard_normal((n, 8), F32)} for n in (1, 3)]
    plain = parsed(text, weights)
    w.good("external_data", plain, cases, "a weight kept in external_data.bin, 64 bytes into it",
           save=lambda _, p: p.write_bytes(referring("external_data.bin", 64).SerializeToString()))
    w.bad("external_escape", referring("../secret.bin"),
          "external data in '../secret.bin', which is there and must not be read")
    w.bad("bad/external_absolute", referring("/dev/zero"), "external data at an absolute path")
    w.bad("bad/external_short", referring("external_short.bin", 64),
          "external data past the end of its file")
    (w.out / "bad/external_short.bin").write_bytes(b"\0" * 100)
    w.bad("bad/external_missing", referring("no_such_file.bin"),
          "external data in a file that is not there")
    w.bad("bad/external_length", referring("external_short.bin", 0, 96),
          "external data whose length does not fit the tensor's shape")
    w.bad("bad/external_offset", referring("external_short.bin", 2**64 - 64),
          "external data whose offset and length overflow")


# ---------------------------------------------------------------- models that must be refused

def uncovered(w):
    model = parsed("""uncovered_op (float[n] x, bool c) => (float[n] y, float[n] z, float[n] v) {
        [top] f = com.example.Frobnicate <level = 3> (x)
        [fine] r = Relu (f)
        [choice] y = If (c) <
            then_branch = yes () => (float[n] t) { [inner] t = com.example.Twiddle (r) },
            else_branch = no () => (float[n] e) { [plain] e = Neg (r) }>
        [call] z = com.example.fn.Wrapped (r)
        [again] v = com.example.Frobnicate (z)
    }
    <domain: "com.example.fn", opset_import: ["" : 17, "com.example" : 2]>
    Wrapped (a) => (b) { [step] s = com.example.Grind (a)  [last] b = Abs (s) }
    """, head=HEAD.replace('["" : 17]', '["" : 17, "com.example" : 2, "com.example.fn" : 1]'))
    onnx.checker.check_model(model)
    w.bad("uncovered_op", model, "valid, but four nodes are covered by nobody: two at the top, "
          "one in a branch of If, one in a function; uncovered_op.tsv lists them")
    (w.out / "uncovered_op.tsv").write_text(
        "# SPDX-License-Identifier: Apache-2.0\n"
        "com.example\tFrobnicate\t2\ttop\tgraph uncovered_op\n"
        "com.example\tTwiddle\t2\tinner\tgraph yes\n"
        "com.example\tGrind\t2\tstep\tfunction com.example.fn.Wrapped\n"
        "com.example\tFrobnicate\t2\tagain\tgraph uncovered_op\n")
    w.bad("bad/unknown_op",
          parsed("g (float[n] x) => (float[n] y) { [odd] y = NoSuchOperator (x) }"),
          "an operator that ai.onnx never had")


def custom(w):
    """Valid, and covered only by a backend that a test registers itself."""
    model = parsed("""custom_op (float[n] x) => (float[n] y) {
        [first] a = Abs (x)
        [mine] b = com.example.Twice <times = 3> (a)
        [last] y = Neg (b)
    }""", head=HEAD.replace('["" : 17]', '["" : 17, "com.example" : 2]'))
    onnx.checker.check_model(model)
    w.bad("custom_op", model, "valid, but com.example::Twice is covered by nobody until a test "
          "registers a backend for it")


def lists(w):
    """A sequence goes in and comes out longer; kelp.run cannot give one."""
    model = parsed("""lists (seq(float[n]) s, float[n] x) => (seq(float[n]) longer, float[m] joined) {
        a = Abs (x)
        longer = SequenceInsert (s, a)
        joined = ConcatFromSequence <axis = 0> (longer)
    }""")
    onnx.checker.check_model(model)
    (w.out / "lists.onnx").write_bytes(model.SerializeToString())
    w.note("lists.onnx", "lists", "takes and gives a sequence")
    model = parsed("""gives_lists (float[2, 2] x) => (seq(float[n]) parts) {
        parts = SplitToSequence <axis = 0, keepdims = 0> (x)
    }""")
    onnx.checker.check_model(model)
    (w.out / "gives_lists.onnx").write_bytes(model.SerializeToString())
    w.note("gives_lists.onnx", "lists", "gives a sequence")


def toolbox(w):
    """Operators that are kernels of examples/kernels/toolbox.c: a blurred picture, and the picture added."""
    names = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["h", "w"]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("box_blur", ["x"], ["b"], domain="toolbox", radius=1),
                               helper.make_node("add", ["b", "x"], ["y"], domain="toolbox")], "toolbox", names[:1], names[1:])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("toolbox", 1)])
    (w.out / "toolbox_ops.onnx").write_bytes(model.SerializeToString())


def malformed(w):
    digits = REPO / "examples/models/digits/1/model.onnx"
    if not digits.is_file():
        sys.exit(f"make_test_models: '{digits}' is missing: run tools/train_digits.py first")
    w.bad("truncated", digits.read_bytes()[:3000], "the digits example, cut after 3000 bytes")
    w.bad("bad/empty", b"", "no bytes at all")
    w.bad("bad/not_onnx", b"This is a text and no model.\n", "a text file")
    hollow = helper.make_model(onnx.GraphProto(), ir_version=8,
                               opset_imports=[helper.make_opsetid("", 17)])
    w.bad("bad/no_graph", hollow, "a graph with neither name, nodes nor outputs")
    one = "g (float[n, 4] x) => (float[n, 4] y) "

    def changed(body, change, weights=None):
        model = parsed(one + body, weights)
        change(model)
        return model

    def shorten(model):
        model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-2]

    def negative(model):
        model.graph.initializer[0].dims[0] = -4

    def huge(model):
        del model.graph.initializer[0].dims[:]
        model.graph.initializer[0].dims.extend([2**40, 2**40])

    def dtype(model):
        model.graph.initializer[0].data_type = 99

    def later(model):
        model.opset_import[0].version = 999

    def unimported(model):
        model.graph.node[0].domain = "com.example"

    def anonymous(model):
        model.graph.node[0].op_type = ""
    w4 = {"w": np.ones(4, F32)}
    add = "{ [sum] y = Add (x, w) }"
    for name, model, what in (
            ("cycle", parsed(one + "{ [first] a = Add (x, b)  [second] b = Relu (a) "
                                   "[third] y = Neg (b) }"),
             "two nodes that wait for each other"),
            ("missing_input", parsed(one + "{ [lost] y = Add (x, nowhere) }"),
             "a value that nothing produces"),
            ("missing_output", parsed(one + "{ [other] z = Relu (x) }"),
             "a graph output that nothing produces"),
            ("duplicate_output", parsed(one + "{ [one] y = Relu (x)  [two] y = Neg (x) }"),
             "one name produced by two nodes"),
            ("shape_mismatch", parsed("g (float[2, 4] x) => (float[2, 3] y) "
                                      "{ [clash] y = MatMul (x, w) }",
                                      {"w": np.ones((5, 3), F32)}), "MatMul of [2,4] with [5,3]"),
            ("type_mismatch", parsed(one + add, {"w": np.ones(4, I64)}), "Add of float and int64"),
            ("arity", parsed(one + "{ [alone] y = Add (x) }"), "Add with one input"),
            ("attribute_type", parsed(one + '{ [soft] y = Softmax <axis = "last"> (x) }'),
             "an attribute that is a string where an integer is due"),
            ("attribute_missing", parsed(one + "{ [cast] y = Cast (x) }"),
             "Cast without the attribute 'to'"),
            ("initializer_short", changed(add, shorten, w4), "raw data two bytes short"),
            ("initializer_negative", changed(add, negative, w4),
             "an initializer with a negative dimension"),
            ("initializer_huge", changed(add, huge, w4),
             "dimensions whose product overflows 64 bits"),
            ("initializer_dtype", changed(add, dtype, w4), "a data type that does not exist"),
            ("future_opset", changed("{ y = Relu (x) }", later), "opset 999"),
            ("domain_not_imported", changed("{ [stray] y = Relu (x) }", unimported),
             "a node of a domain that the model does not import"),
            ("no_op_type", changed("{ [blank] y = Relu (x) }", anonymous),
             "a node without an operator")):
        w.bad(f"bad/{name}", model, what)
    recursive = parsed("""g (float[n] x) => (float[n] y) { y = kelp.test.A (x) }
        <domain: "kelp.test", opset_import: ["" : 17, "kelp.test" : 1]>
        A (a) => (b) { b = kelp.test.B (a) }
        <domain: "kelp.test", opset_import: ["" : 17, "kelp.test" : 1]>
        B (a) => (b) { b = kelp.test.A (a) }
        """, head=HEAD.replace('["" : 17]', '["" : 17, "kelp.test" : 1]'))
    w.bad("bad/recursive_function", recursive, "two functions that call each other")
    w.bad("bad/deep", deep(3000),
          "If nested 3000 deep, hand-made: a reader that recurses must stop in time")


def deep(levels):
    """A ModelProto in which If nests to the given depth; built from bytes, inside out."""
    def field(number, body):
        size, out = len(body), bytes([number << 3 | 2])
        while size > 127:
            out, size = out + bytes([size & 127 | 128]), size >> 7
        return out + bytes([size]) + body
    graph = b""
    for _ in range(levels):
        attribute = field(1, b"a") + field(6, graph)
        graph = field(1, field(4, b"If") + field(5, attribute))
    return b"\x08\x08" + field(7, graph + field(2, b"g")) + field(8, b"\x0a\x00\x10\x11")


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "models")
    args = ap.parse_args()
    onnxruntime.set_default_logger_severity(3)
    writer = Writer(args.out)
    for make in (mlp, running_sum, dynamic_reshape, broadcast, logic, strings, int64_arithmetic, movement,
                 floor,
                 conv_pool,
                 attention_block, control_flow, bodies, external_data, uncovered, custom, lists, toolbox, malformed):
        make(writer)
    writer.finish()
    print(f"written: {args.out}, {len(writer.rows)} models")


if __name__ == "__main__":
    main()
