# SPDX-License-Identifier: Apache-2.0
"""String operators."""
import corpus
import kelp
import numpy as np
import onnx
from onnx import helper
from peer import Pair, Peer, model_of, strings


def check(tally, count):
    texts = corpus.texts(count)
    batch = strings(*texts)
    for op, kind in (("StringLower", "string"), ("StringUpper", "string"), ("StringLength", "int64"), ("StringStrip", "string")):
        tally.subject = op
        for values in (batch, batch[:0]):
            tally.check(op, *Pair(op, [values], [kind]).run([values]))
        square = batch[:36].reshape(3, 2, 6)
        tally.check(op, *Pair(op, [square], [kind]).run([square]))
    tally.subject = "StringLength, invalid UTF-8"
    data = strings(*corpus.invalid(count // 4))
    tally.check("invalid", *Pair("StringLength", [data], ["int64"], constants=[0]).run([data]))
    tally.subject = "StringConcat"
    pair = Pair("StringConcat", [batch, batch], ["string"])
    tally.check("", *pair.run([batch, batch[::-1].copy()]))
    tally.subject = "StringJoin"
    for values in (batch, batch[:24].reshape(2, 3, 4), batch[:12].reshape(3, 4), batch[:1], batch[:0]):
        for axis in range(values.ndim):
            inputs = [values, strings("-|é"), np.array([axis], np.int64)]
            tally.check((values.shape, axis), *Pair("StringJoin", inputs, ["string"]).run(inputs))
    tally.subject = "StringSplit"
    ascii_texts = strings(*[t for t in texts if t.isascii()])
    for values, separators in ((batch, " "), (batch, " \n-"), (batch, "e,"), (ascii_texts, ""), (batch[:0], " ")):
        for skip in (False, True):
            inputs = [values, strings(separators), np.array([skip])]
            tally.check((separators, skip), *Pair("StringSplit", inputs, ["int64", "string", "int64"]).run(inputs))
    tally.subject = "MaskedFill"
    mask = np.random.default_rng(1).random(len(texts)) < .5
    tally.check("", *Pair("MaskedFill", [batch, mask], ["string"]).run([batch, mask]))
    tables(tally, texts)
    regular_expressions(tally, texts)
    ecma(tally, texts)
    random_patterns(tally, count * 2)
    splits(tally, texts)
    equal_and_hashes(tally, texts)
    ragged(tally, count)


def regular_expressions(tally, texts):
    batch = strings(*texts)
    for pattern, rewrite in [(" ", "_"), (r"(\w+) (\w+)", r"\2 \1"), ("[aeiou]*", "<\\0>"), (r"[^a-z]+", ""), ("x*", "-"), ("^.|.$", "#"), (r"(a)|(b)", r"[\1|\2]"),
                             (r"(?i)THE", r"\\"), (r"\bq", "Q"), (r"a", r"\3"), ("(the|t)", r"{\1}"), ("日", "é")]:
        for all in (0, 1):
            tally.subject = f"StringRegexReplace {pattern!r} {rewrite!r} {all}"
            inputs = [batch, strings(pattern), strings(rewrite)]
            expected, found = Pair("StringRegexReplace", inputs, ["string"], global_replace=all).run(inputs)
            bad = [(t, a, b) for t, a, b in zip(texts, expected[0], found[0]) if a != b][:3]
            tally.check(bad, [np.zeros(0)], [np.zeros(len(bad))])


def tables(tally, texts):
    keys = [t for t in dict.fromkeys(texts) if t.strip("\t\n\0 ") and not set(t) & set("\t\n\0")][:200]
    batch = strings(*texts)
    tally.subject = "StringMapping"
    pair = Pair("StringMapping", [batch], ["string"], map="\n".join(f"{k}\t{k[::-1]}" for k in keys))
    tally.check("", *pair.run([batch]))
    for length in (1, 3):
        vectors = [" ".join(str((i * 7 + k) % 50 - 5) for k in range(length)) for i in range(len(keys))]
        table = "\n".join(f"{k}\t{v}" for k, v in zip(keys, vectors)) + "\n\n"
        tally.subject = f"StringToVector {length}"
        tally.check("", *Pair("StringToVector", [batch], ["int64"], map=table, unk=" ".join(["-1"] * length)).run([batch]))
        tally.subject = f"VectorToString {length}"
        x = np.random.default_rng(2).integers(-6, 50, (40, length))
        tally.check("", *Pair("VectorToString", [x], ["string"], map=table, unk="?").run([x]))
        if length == 1:
            tally.check("", *Pair("VectorToString", [x[:, 0]], ["string"], map=table, unk="").run([x[:, 0].copy()]))


ECMA = [" ", r"(\w+) (\w+)", "[aeiou]*", r"[^a-z]+", "x*", "^.|.$", "(a)|(b)", r"\bq", r"\B", "(the|t)", "日", r"(.)\1", r"[\w.]+@?", r"a{2,3}?", r"\d+(?=\w)", r"o(?!v)",
        r"\x61|\u0062", r"[[:upper:]]+", r"[^\s]", r"[\]\[a]", ".", r"\.", r"\A|\Z", "(?:a|b)+?", r"\s*", r"[]", r"[^]", r"(a*)(b)?", r"\0|\t|\v", "$", "^", r"\/", r"e|\n|\r",
        r"(a)|\1e", "[^\n]*", "é+", r"[a-f0-9]{2}", "}|]"]


def ecma(tally, texts):
    """Expressions of ECMAScript, of bytes."""
    rewrites = ["_", r"[$1|$2]", "$&$&", "<$`>", "$'", "$$1$", r"$01$10$3\0"]
    batch = strings(*[text for text in texts if len(text) < 1000])
    for i, pattern in enumerate(ECMA):
        for flags in (dict(global_replace=0), dict(ignore_case=1), {}):
            for rewrite in (rewrites[i % 4], rewrites[4 + i % 3]):
                if rewrite in ("<$`>", "$'") and flags == {}:
                    continue  # large
                tally.subject = f"StringECMARegexReplace {pattern!r} {rewrite!r} {flags}"
                model = model_of("StringECMARegexReplace", [batch, strings(pattern), strings(rewrite)], ["string"], constants=[0, 1, 2], **flags)
                each(tally, batch, model)


def random_patterns(tally, count):
    """Random expressions: both find the same matches, or both reject the expression."""
    rng = np.random.default_rng(12)
    letters = np.array(list("ab.*+?{}[]()|\\^$-:=!<,123xuc0dwsbBte é"), object)
    texts = strings("the cat aab", "=xb 123", "")  # matches of bytes divide other characters
    pair = Pair("StringECMARegexReplace", [texts, strings("a"), strings("b")], ["string"])
    tally.subject = "StringECMARegexReplace, random expressions"
    for _ in range(count):
        pattern = "".join(rng.choice(letters, rng.integers(1, 8)))
        feeds = {"x0": texts, "x1": strings(pattern), "x2": strings("[$1$&]")}
        results = []
        for run in (lambda feeds: pair.kelp.run(None, feeds), pair.peer.run):
            try:
                results.append(run(feeds)[0].tolist())
            except UnicodeDecodeError:
                results.append("not UTF-8")
            except Exception as failure:  # pylint: disable=broad-exception-caught
                results.append("invalid" if "a quantifier after a quantifier" not in str(failure) else None)  # a documented difference
        if results[0] is not None:
            tally.check(pattern, [np.array(True)], [np.array(results[0] == results[1])])


def each(tally, batch, model):
    """Compares texts as hashes, since results may be no UTF-8."""
    model = onnx.load_model_from_string(model)
    del model.graph.output[:]
    model.graph.node.append(helper.make_node("StringToHashBucket", ["y0", "buckets"], ["h"], domain="ai.onnx.contrib"))
    model.graph.initializer.append(helper.make_tensor("buckets", 7, [1], [2**62]))
    model.graph.output.append(helper.make_tensor_value_info("h", 7, None))
    model = model.SerializeToString()
    expected, found = Peer(model).run({})[0], kelp.InferenceSession(model).run(None, {})[0]
    bad = [text for text, a, b in zip(batch, expected, found) if a != b][:3]
    tally.check(bad, [np.zeros(0)], [np.zeros(len(bad))])


def splits(tally, texts):
    batch = strings(*[text for text in texts if len(text) < 1000])
    plain = strings(*[text for text in batch if text.isascii()])
    for pattern in ("( )", r"([ \t]+)", r"([aeiou])", r"(\w)[ \n]", "a(b)", "(é|日)", r"(\W)+", "(^.)", "x", "(,|the)"):
        for keep in ("", pattern, "[a-z ]", ".+"):
            tally.subject = f"StringRegexSplitWithOffsets {pattern!r} {keep!r}"
            inputs = [batch, strings(pattern), strings(keep)]
            tally.check("", *Pair("StringRegexSplitWithOffsets", inputs, ["string", "int64", "int64", "int64"]).run(inputs))
    for pattern in ECMA:
        for i, keep in enumerate(("", pattern, "[a-z ]", ".*")):
            tally.subject = f"StringECMARegexSplitWithOffsets {pattern!r} {keep!r}"
            inputs = [plain, strings(pattern), strings(keep)]
            tally.check("", *Pair("StringECMARegexSplitWithOffsets", inputs, ["string", "int64", "int64", "int64"], ignore_case=i % 2).run(inputs))


def equal_and_hashes(tally, texts):
    rng = np.random.default_rng(8)
    few = strings(*texts[:7])
    for left, right in [((5,), (5,)), ((5,), (1,)), ((1,), (5,)), ((2, 3), (2, 1)), ((2, 3), (2,)), ((2, 3, 4), (1, 3)), ((3,), (3, 2, 2)), ((2, 3, 2), (2, 3, 2)),
                        ((2, 3, 2), (2, 1, 2)), ((0,), (0,)), ((1, 4), (1, 1))]:
        tally.subject = f"StringEqual {left} {right}"
        for _ in range(10):
            inputs = [rng.choice(few, left), rng.choice(few, right)]
            tally.check("", *Pair("StringEqual", inputs, ["bool"]).run(inputs))
    batch = strings(*texts, *("abcdefghijklmnopqrstuvwxyz"[:n] for n in range(26)))
    for op in ("StringToHashBucket", "StringToHashBucketFast"):
        for buckets in (1, 7, 2**31, 2**63 - 1):
            tally.subject = f"{op} {buckets}"
            inputs = [batch, np.array([buckets], np.int64)]
            tally.check("", *Pair(op, inputs, ["int64"]).run(inputs))


def ragged(tally, count):
    rng = np.random.default_rng(9)
    none = np.zeros(0, np.int64)
    sparse = Pair("RaggedTensorToSparse", [none], ["int64", "int64"])
    dense = Pair("RaggedTensorToDense", [none] * 4, ["int64"])
    texts = Pair("StringRaggedTensorToDense", [none, strings("a"), none, strings("a")], ["string"])
    for _ in range(count // 4):
        offsets = np.cumsum([0, *rng.integers(0, 5, rng.integers(0, 8))]).astype(np.int64)
        values = rng.integers(-9, 9, offsets[-1] + rng.integers(0, 3))
        tally.subject = "RaggedTensorToSparse"
        tally.check(offsets.tolist(), *sparse.run([offsets]))
        tally.subject = "RaggedTensorToDense"
        tally.check(offsets.tolist(), *dense.run([none, values, np.array([-1, 5], np.int64), offsets]))
        tally.subject = "StringRaggedTensorToDense"
        words = np.array([f"é{v}" for v in values], object)
        tally.check(offsets.tolist(), *texts.run([none, words, offsets, np.array(["x"] * len(offsets), object)]))
