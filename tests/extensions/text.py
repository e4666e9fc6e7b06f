# SPDX-License-Identifier: Apache-2.0
"""String operators."""
import corpus
import numpy as np
from peer import Pair, strings


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
