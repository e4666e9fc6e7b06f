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


def ecma(own):
    x = text("the cat", "aab\nb", "", "日é")
    for pattern, rewrite, attrs, expected in [
            ("(\\w+) (\\w+)", "$2 $01$3$$$", {}, text("cat the$$", "aab\nb", "", "日é")), ("a*", "-", {}, text("-t-h-e- -c--t-", "--b-\n-b-", "-", None)),
            ("[AB]", "<$`|$&|$'>", dict(ignore_case=1, global_replace=0), text("the c<the c|a|t>t", "<|a|ab\nb>ab\nb", "", "日é")), (".$", "!", {}, text("the ca!", "aab\n!", "", None)),
            (r"\x61|\u0074|\A|\v|\0", "", {}, text("he c", "b\nb", "", "日é")), ("[.[]|é", "e", {}, text("the cat", "aab\nb", "", "日e")), ("(z)|\\1e", "", {}, x),
            ("e(?= )|[]|t{2,}?", "", {}, text("th cat", "aab\nb", "", "日é"))]:
        last = 3 if expected[3] is None else 4  # an expression of bytes divides characters
        add(own, "StringECMARegexReplace", [x[:last], text(pattern), text(rewrite)], [expected[:last]], **attrs)
    for pattern, why in [("(", "missing closing parenthesis"), ("(\\é", "pattern '(é' is invalid at byte 3: missing closing parenthesis"), ("\\", "expected a character after"), ("a++", "a quantifier after a quantifier"), ("(?<=a)", "expected (?:, (?= or (?!"),
                         ("a{x}", "expected a number after {"), ("a{2", "expected }"), ("\\xg0", "expected a hexadecimal digit"), ("[\\1]", "a back reference in a class"),
                         ("", "input 1, the pattern, is empty"), ("\\c", "expected a letter")]:
        refuse(own, "StringECMARegexReplace", [x, text(pattern), text("")], why)
    refuse(own, "StringECMARegexReplace", [x, x, text("")], "expected one text")


def regex_split(own):
    x = text("a, b,c", "", "é ,")
    pieces = [text("a", ",", " b", ",", "c", "é ", ","), *rows([0, 1, 2, 4, 5, 0, 3], [1, 2, 4, 5, 6, 3, 4], [0, 5, 5, 7])]
    for op, pattern in [("StringRegexSplitWithOffsets", "(,)"), ("StringECMARegexSplitWithOffsets", ",")]:
        add(own, op, [x, text(pattern), text(",|;")], pieces)
        add(own, op, [x, text(pattern), text("")], [text("a", " b", "c", "é "), *rows([0, 2, 5, 0], [1, 4, 6, 3], [0, 3, 3, 4])])
        add(own, op, [x[:0], text(pattern), text("")], [text("a")[:0], *rows([], [], [0])])
        refuse(own, op, [x[None], text(","), text("")], "expected a list", outputs=4)
        refuse(own, op, [x, text(",", ";"), text("")], "expected one text each", outputs=4)
        refuse(own, op, [x, text("("), text("")], "is invalid at byte 1", outputs=4)
        refuse(own, op, [x, text(","), text("(")], "is invalid at byte 1", outputs=4)
    add(own, "StringRegexSplitWithOffsets", [x, text(","), text("")], [text("a, b,c", "é ,"), *rows([0, 0], [6, 4], [0, 1, 1, 2])])  # no group
    add(own, "StringRegexSplitWithOffsets", [text("xay"), text("a(y)"), text("")], [text("xa"), *rows([0], [2], [0, 1])])
    add(own, "StringECMARegexSplitWithOffsets", [text("xAy"), text("a?"), text(".*")], [text("", "x", "A", "", "y", ""), *rows([0, 0, 1, 2, 2, 3], [0, 1, 2, 2, 3, 3], [0, 6])], ignore_case=1)
    refuse(own, "StringRegexSplitWithOffsets", [x, text("(,?)"), text("")], "it matches an empty text at byte 0", outputs=4)
    refuse(own, "StringRegexSplitWithOffsets", [x, text("(;)|,"), text("")], "group 1 is not part of the match at 1", outputs=4)
    refuse(own, "StringRegexSplitWithOffsets", [x, text(""), text("")], "input 1, the pattern, is empty", outputs=4)


def equal_and_hashes(own):
    a = text("a", "b", "é", "a\0x", "", "b").reshape(2, 3)
    add(own, "StringEqual", [a, a[:, :1]], [np.array([[True, False, False], [True, False, False]])])
    add(own, "StringEqual", [text("a", ""), a], [np.array([[True, False, False], [False, True, False]])])  # aligned with the first axis
    add(own, "StringEqual", [np.array("a", object), np.array("a", object)], [np.array(True)])
    add(own, "StringEqual", [a[:0], a[:0]], [np.zeros((0, 3), bool)])
    refuse(own, "StringEqual", [a, text("a", "b", "c")], "do not broadcast from the first axis")
    refuse(own, "StringEqual", [a, np.zeros((2, 3), np.int64)], "does not support")
    x = text("abcdefghi", "abcdefgh", "", "é")
    for op, expected in [("StringToHashBucket", [2154505082538699157, 3961850774789352408, 1199181284569803295, 3701471315553960761]),
                         ("StringToHashBucketFast", [3813583889069017775, 4052593029619947707, 1530823170545035886, 1956883465756198773])]:
        add(own, op, [x, *rows([2**62])], [np.array(expected, np.int64)])
        refuse(own, op, [x, *rows([0])], "expected more than 0, found 0")
        refuse(own, op, [x, *rows([1, 2])], "expected one number of buckets")
        refuse(own, op, [x, np.ones(1, np.int32)], "does not support")


def ragged(own):
    none, (offsets, values) = np.zeros(0, np.int64), rows([0, 2, 2, 5], [1, 2, 3, 4, 5])
    add(own, "RaggedTensorToSparse", [offsets], [*rows([[0, 0], [0, 1], [2, 0], [2, 1], [2, 2]], [3, 3])])
    add(own, "RaggedTensorToSparse", [offsets[:1]], [np.zeros((0, 2), np.int64), *rows([0, 0])])
    add(own, "RaggedTensorToDense", [none, values, *rows([-1]), offsets], [*rows([[1, 2, -1], [-1, -1, -1], [3, 4, 5]])])
    words, names = text("a", "é", "c", "d", "e"), text("", "", "", "")
    add(own, "StringRaggedTensorToDense", [none, words, offsets, names], [text("a", "é", "", "", "", "", "c", "d", "e").reshape(3, 3)])
    refuse(own, "RaggedTensorToSparse", [none], "expected a list of one offset or more", outputs=2)
    refuse(own, "RaggedTensorToSparse", rows([1, 2]), "offset 0 is invalid: expected 0, found 1", outputs=2)
    refuse(own, "RaggedTensorToSparse", rows([0, 2, 1]), "offset 2 is out of range: expected 2 or more, found 1", outputs=2)
    refuse(own, "RaggedTensorToDense", [none, values[:4], *rows([-1]), offsets], "expected at most 4, the number of values, found 5")
    refuse(own, "RaggedTensorToDense", [none, values, none, offsets], "expected one value")
    refuse(own, "RaggedTensorToDense", [none, values, *rows([-1]), np.array([0.5], np.float32)], "does not support")
    refuse(own, "StringRaggedTensorToDense", [none, words, offsets, names[:1]], "expected inputs 2 and 3 of the same size")


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


CASES = [one_for_one, vectors, split_and_join, regex_replace, ecma, regex_split, equal_and_hashes, ragged, rejected]
