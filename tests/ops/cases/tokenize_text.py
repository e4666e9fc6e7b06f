# SPDX-License-Identifier: Apache-2.0
"""Cases of string operators of onnxruntime-extensions. The expected values are those of version 0.15.2."""
import numpy as np

from .tokenize import add, refuse, rows, text


def one_for_one(own):
    x = text("Äpfel ΣΟΚΙ", " \tabc\n ", "ПРИ Ωß", "a\0b", "", " \n", "日本🙂")
    for op, expected in [("StringLower", text("äpfel Σοκι", " \tabc\n ", "при Ωß", "a", "", " \n", "日本🙂")),
                         ("StringUpper", text("ÄPFEL ΣΟΚΙ", " \tABC\n ", "ПРИ Ωß", "A", "", " \n", "日本🙂")),
                         ("StringStrip", text("Äpfel ΣΟΚΙ", "abc", "ПРИ Ωß", "a", "", " \n", "日本🙂")), ("StringLength", rows([10, 7, 6, 1, 0, 2, 3])[0])]:
        add(own, op, [x], [expected])
        add(own, op, [x[:6].reshape(2, 3)], [expected[:6].reshape(2, 3)])
        add(own, op, [x[:0]], [expected[:0]])
    add(own, "StringConcat", [text("a", "", "é\0z"), text("b", "c", "")], [text("ab", "c", "é")])
    add(own, "StringMapping", [text("a", "b", "", "c d")], [text("1", "b", "", "x y")], map="a\t1\n\nc d\tx y\n")


def vectors(own):
    table = "a\t1 2\nb c\t-3 4\n"
    add(own, "StringToVector", [text("a", "b c", "z")], rows([[1, 2], [-3, 4], [0, 9]]), map=table, unk="0 9")
    add(own, "StringToVector", [np.array("a", object)], rows([1, 2]), map=table, unk="0 9")
    add(own, "VectorToString", rows([[1, 2], [-3, 4], [2, 1]]), [text("a", "b c", "?")], map=table, unk="?")
    add(own, "VectorToString", rows([5, 6]), [text("x", "")], map="x\t5", unk="")


def split_and_join(own):
    x = text("a b  c", "", " d", "é")
    for skip, words, places, columns in [(False, ["a", "b", "", "c", "", "d", "é"], [[0, 0], [0, 1], [0, 2], [0, 3], [2, 0], [2, 1], [3, 0]], 4),
                                         (True, ["a", "b", "c", "d", "é"], [[0, 0], [0, 1], [0, 2], [2, 0], [3, 0]], 3)]:
        expected = rows(places)[0], text(*words), rows([4, columns])[0]
        add(own, "StringSplit", [x, text(" "), np.array([skip])], list(expected))
    add(own, "StringSplit", [text("a,b;c"), text(";,"), np.array([True])], [rows([[0, 0], [0, 1], [0, 2]])[0], text("a", "b", "c"), rows([1, 3])[0]])
    add(own, "StringSplit", [text("ab", ""), text(""), np.array([True])], [rows([[0, 0], [0, 1]])[0], text("a", "b"), rows([2, 2])[0]])
    y = text("a", "b", "c", "d", "e", "f").reshape(2, 3)
    for axis, expected in [(0, text("a-d", "b-e", "c-f")), (1, text("a-b-c", "d-e-f"))]:
        add(own, "StringJoin", [y, text("-"), *rows([axis])], [expected])
    add(own, "StringJoin", [text("a", "b"), text(", "), *rows([0])], [text("a, b")])
    add(own, "StringJoin", [text("a")[:0], text(", "), *rows([0])], [text("")])
    add(own, "MaskedFill", [text("a", "b", "c"), np.array([True, False, True])], [text("a", "c")])


def regex_replace(own):
    x = text("the cat", "aab\nb", "", "日本 é")
    for pattern, rewrite, attrs, expected in [("(\\w+) (\\w+)", r"\2 \1\\", {}, text("cat the\\", "aab\nb", "", "日本 é")), ("a*", "-", {}, text("-t-h-e- -c-t-", "-b-\n-b-", "-", "-日-本- -é-")),
                                              ("[ab]", "", dict(global_replace=0), text("the ct", "ab\nb", "", "日本 é")), ("b$", "!", {}, text("the cat", "aab\n!", "", "日本 é")),
                                              ("a", r"\1", {}, x), ("(x)|é", r"<\1\0>", {}, text("the cat", "aab\nb", "", "日本 <é>"))]:
        add(own, "StringRegexReplace", [x, text(pattern), text(rewrite)], [expected], **attrs)
    refuse(own, "StringRegexReplace", [x, text("("), text("")], "pattern '(' is invalid at byte 1")
    refuse(own, "StringRegexReplace", [x, text(""), text("")], "input 1, the pattern, is empty")
    refuse(own, "StringRegexReplace", [x, text("a"), text("\\x")], "expected a digit or")
    refuse(own, "StringRegexReplace", [x, x, text("")], "expected one text")


def rejected(own):
    x = text("a", "b")
    refuse(own, "StringLower", [np.zeros(2, np.int64)], "does not support")
    refuse(own, "StringLength", [np.zeros(2, np.int64)], "does not support")
    refuse(own, "StringConcat", [x, x[:1]], "the shapes differ")
    refuse(own, "StringSplit", [x[None], text(" "), np.array([True])], "expected a list", outputs=3)
    refuse(own, "StringSplit", [x, x, np.array([True])], "expected one value each", outputs=3)
    refuse(own, "StringSplit", [x, text(" "), np.array([1], np.int64)], "does not support", outputs=3)
    refuse(own, "StringJoin", [x, text(" "), np.array([1], np.int64)], "the axis is out of range: expected 0 to 0, found 1")
    refuse(own, "StringJoin", [x, x, np.array([0], np.int64)], "expected one value each")
    refuse(own, "StringJoin", [x, text(" "), np.array([0], np.int32)], "does not support")
    refuse(own, "MaskedFill", [x, np.array([True])], "expected lists of the same length, or scalars")
    refuse(own, "MaskedFill", [x, np.array([1, 0], np.int64)], "does not support")
    refuse(own, "StringMapping", [x], "attribute 'map' is missing or empty")
    refuse(own, "StringMapping", [x], "expected KEY<tab>VALUE, found 'a'", map="b\tc\na")
    refuse(own, "StringToVector", [x], "attribute 'map' has no vectors", map="\n", unk="0")
    refuse(own, "StringToVector", [x], "expected vectors of 2 integers, found '1'", map="a\t1 2\nb\t1", unk="0 0")
    refuse(own, "StringToVector", [x], "expected integers, found 'z'", map="a\t1 z", unk="0 0")
    refuse(own, "StringToVector", [x], "expected vectors of 2 integers, found ''", map="a\t1 2")
    refuse(own, "VectorToString", [np.zeros((2, 3), np.int64)], "not the length of the vectors", map="a\t1 2", unk="")


CASES = [one_for_one, vectors, split_and_join, regex_replace, rejected]
