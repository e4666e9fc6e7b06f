# SPDX-License-Identifier: Apache-2.0
"""Cases of operators on strings: expected values are those of ONNX Runtime, or as the specification defines them."""
import numpy as np


def text(*values):
    return np.array(values, object)


def string_normalizer(own):
    x = text("Äpfel", "ΔΟΚΙΜΗ", "Привет", "the", "THE", "ÿ")
    for attrs, expected in [
            ({"case_change_action": "LOWER", "stopwords": ["The"]}, ["äpfel", "δοκιμη", "привет", "ÿ"]),
            ({"case_change_action": "UPPER", "stopwords": ["the"], "is_case_sensitive": 1},
             ["ÄPFEL", "ΔΟΚΙΜΗ", "ПРИВЕТ", "THE", "Ÿ"]),
            ({"stopwords": ["привет", "THE"]}, ["Äpfel", "ΔΟΚΙΜΗ", "ÿ"])]:
        own.add("StringNormalizer", [x], opset=10, reference=[text(*expected)], **attrs)
        own.add("StringNormalizer", [x[None]], opset=10, reference=[text(*expected)[None]], **attrs)


def tf_idf_vectorizer(own):
    common = dict(min_gram_length=1, max_gram_length=3, max_skip_count=2, ngram_counts=[0, 3, 7], ngram_indexes=[2, 0, 1, 5, 3, 4])
    for mode in ("TF", "IDF", "TFIDF"):
        for weights in (None, [0.5, 1.5, 2.0, 3.0, 0.25, 1.0]):
            attrs = common | {"mode": mode} | ({"weights": weights} if weights else {})
            pool = [2, 3, 5, 2, 3, 5, 2, 2, 3, 5]
            own.add("TfIdfVectorizer", [np.array([[2, 3, 5, 2, 3], [5, 5, 2, 9, 3]], np.int64)], opset=9, pool_int64s=pool, **attrs)
            own.add("TfIdfVectorizer", [text("b", "c", "e", "b", "z", "c", "e")], opset=9, pool_strings=[" abcdef"[i] for i in pool], **attrs)


def regex_full_match(own):
    x = text("www.google.com", "a\nb", "", "ünï", "aaa")
    for pattern in (r"www\.[a-z]+\.(com|org)", "a.b", "(?s)a.b", "[[:alpha:]]*", "a|aa", "(?i)AAA", r"\pL+"):
        own.add("RegexFullMatch", [x], opset=20, pattern=pattern)


def tokenizer(own):
    """com.microsoft Tokenizer."""
    x = text("hello world", "ab  c", " x ", "", "日本 語 e\u0301", "🙂🙃 Ünï")
    for separators in ([" "], [" ", "l"], [r"\s+"], ["[^a-z]"], ["l|ll|lo", "x*"], ["", "a"], ["e|o", r"\bw", "^h|c$"], ["本"]):
        for mark, shortest in ((0, 1), (1, 1), (1, 2)):
            own.microsoft("Tokenizer", [x], separators=separators, mark=mark, mincharnum=shortest, pad_value="#")
    for expression in ("[a-z]+", "[a-z]*", r"\w+", r"\b\w\w+\b", "..", r"\pL+", "l|lo|o w", "(?i)[ÜH]", "^.", "(l)(d)|(x)"):
        for mark, shortest in ((0, 1), (1, 2)):
            own.microsoft("Tokenizer", [x], tokenexp=expression, mark=mark, mincharnum=shortest, pad_value="")
    own.microsoft("Tokenizer", [text("a\nb", "日本")], tokenexp=".", mark=1, mincharnum=1, pad_value="#")
    own.microsoft("Tokenizer", [x], tokenexp="[a-z]", separators=["b"], mark=0, mincharnum=1, pad_value="#")
    for values in (x, x.reshape(2, 3), text("", ""), text(""), x[:0], x.reshape(2, 3)[:, :0], x.reshape(2, 3)[:0]):
        for mark in (0, 1):
            own.microsoft("Tokenizer", [values], separators=[""], mark=mark, mincharnum=1, pad_value="pad")
            own.microsoft("Tokenizer", [values], separators=[" ", "b"], mark=mark, mincharnum=1, pad_value="pad")
    own.microsoft("Tokenizer", [text("ab" * 3000 + " " + "xy" * 3000)], separators=["(ab)*"], mark=0, mincharnum=1, pad_value="")


def string_split_and_string_concat(own):
    x = text("a b  c", " lead", "trail ", "", "one")
    for attrs in ({}, {"maxsplit": 1}, {"delimiter": " "}, {"delimiter": " ", "maxsplit": 1}, {"delimiter": "  "}):
        own.add("StringSplit", [x], opset=20, outputs=2, reference="onnx", **attrs)
    own.add("StringConcat", [x[:, None], text("x", "", "zz")], opset=20)
    own.add("StringConcat", [np.array("pre", object), x], opset=20)


def rejected(own):
    x = text("a", "b")
    own.refuse("RegexFullMatch", [x], "pattern '(a' is invalid", opset=20, pattern="(a")
    own.refuse("StringNormalizer", [x], "case_change_action: expected", case_change_action="TITLE")
    own.refuse("StringNormalizer", [x[:, None]], "expected [C] or [1,C]")
    common = dict(domain="com.microsoft", mark=0, pad_value="#", mincharnum=1)
    for why, attrs in [("attribute 'mark' is missing", dict(mark=None, separators=[" "])),
                       ("attribute 'pad_value' is missing", dict(pad_value=None, separators=[" "])),
                       ("mincharnum: expected 1 or more, found 0", dict(mincharnum=0, separators=[" "])),
                       ("mincharnum: expected 1 for single characters, found 2", dict(mincharnum=2, separators=[""])),
                       ("'separators' and 'tokenexp', found none", {}), ("'separators' and 'tokenexp', found none", dict(tokenexp="")),
                       ("separator '(' is invalid at byte 1", dict(separators=[" ", "("])), ("tokenexp '[a' is invalid", dict(tokenexp="[a"))]:
        own.refuse("Tokenizer", [x], why, opset=1, **{k: v for k, v in (common | attrs).items() if v is not None})
    own.refuse("Tokenizer", [x[None, None]], "expected [C] or [N,C]", opset=1, **common, separators=[" "])
    own.refuse("Tokenizer", [np.zeros(2, np.float32)], "does not support", opset=1, **common, separators=[" "])
    tfidf = dict(mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0, ngram_counts=[0], ngram_indexes=[0, 1])
    own.refuse("TfIdfVectorizer", [x], "ngram_indexes: expected 1", pool_strings=["a"], **tfidf)
    own.refuse("TfIdfVectorizer", [x], "mode: expected", pool_strings=["a", "b"], **(tfidf | {"mode": "BM25"}))
    own.refuse("TfIdfVectorizer", [x], "ngram_counts[0]", pool_strings=["a", "b"], **(tfidf | {"ngram_counts": [3]}))


def murmur_hash(own):
    words = text("", "a", "ab", "abc", "abcd", "Привет", "x" * 77)
    for positive in (0, 1):
        own.microsoft("MurmurHash3", [words], positive=positive, seed=7)
        for kind in (np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64):
            own.microsoft("MurmurHash3", [np.array([[0, 1, 2], [77, 2**31 - 1, 5]], kind)], positive=positive)
    own.refuse("MurmurHash3", [np.zeros(2, np.int8)], "does not support int8", domain="com.microsoft", opset=1)


CASES = [murmur_hash, string_normalizer, tf_idf_vectorizer, regex_full_match, tokenizer, string_split_and_string_concat, rejected]
