# SPDX-License-Identifier: Apache-2.0
"""Cases of tokenizers of onnxruntime-extensions. The expected values are those of version 0.15.2; tests/extensions compares many more."""
import json

import numpy as np

CONTRIB = "ai.onnx.contrib"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##believ", "##able", "the", "Ein", "e", "##e", "!", "日", "本", "ı", "##s", " x", "h"]


def text(*values):
    return np.array(values, object)


def rows(*values):
    return [np.array(value, np.int64) for value in values]


def add(own, op, inputs, expected, domain=CONTRIB, **attrs):
    own.add(op, inputs, opset=1, outputs=len(expected), domain=domain, reference=expected, **attrs)


def refuse(own, op, inputs, why, outputs=1, **attrs):
    own.refuse(op, inputs, why, opset=1, outputs=outputs, domain=CONTRIB, **attrs)


def bert(own):
    vocab = "\n".join(VOCABULARY)
    for value, attrs, ids, offsets in [
            ("unbelievable the!", {}, [2, 5, 6, 7, 8, 12, 3], [[0, 0], [0, 2], [2, 8], [8, 12], [13, 16], [17, 18], [0, 0]]),
            ("日本 UN  unx\tThe", {}, [2, 13, 14, 5, 5, 1, 8, 3], [[0, 0], [0, 3], [4, 7], [8, 10], [11, 13], [14, 15], [16, 19], [0, 0]]),
            ("Ein É é", dict(do_lower_case=0, strip_accents=1), [2, 9, 1, 10, 3], [[0, 0], [0, 3], [4, 5], [6, 7], [0, 0]]),
            ("a\0the", {}, [2, 1, 3], [[0, 0], [0, 1], [0, 0]]),  # a text ends at its first NUL
            ("", {}, [2, 3], [[0, 0], [0, 0]]), ("e" * 101, {}, [2, 1, 3], [[0, 0], [0, 1], [0, 0]]),
            ("\u200be\u0301", {}, [2, 10, 1, 3], [[0, 0], [0, 1], [2, 3], [0, 0]]), ("[SEP]", {}, [2, 1, 1, 1, 3], [[0, 0], [0, 1], [2, 3], [4, 5], [0, 0]])]:
        add(own, "BertTokenizer", [text(value)], rows(ids, [0] * len(ids), [1] * len(ids), offsets), vocab_file=vocab, **attrs)
    add(own, "BertTokenizer", [text("the the the")], rows([2, 8, 3], [0] * 3, [1] * 3), vocab_file=vocab, max_length=3)
    add(own, "BertTokenizer", [text(" x  the")], rows([2, 17, 1, 3], [0] * 4, [1] * 4), vocab_file=vocab, do_basic_tokenize=0)
    add(own, "BertTokenizer", [text("the", "unable")], rows([2, 8, 3, 5, 7, 3], [0, 0, 0, 1, 1, 1], [1] * 6), vocab_file=vocab, max_length=4,
        domain="com.microsoft.extensions")
    for domain in (CONTRIB, "com.microsoft.extensions"):
        add(own, "HfBertTokenizer", [text("the", "unable")], rows([[2, 8, 3, 5, 7, 3]], [[1] * 6], [[0, 0, 0, 1, 1, 1]]), vocab_file=vocab, domain=domain)
    for attrs, words in [({}, ["hello,", "wörld", "日", "本", "x"]), (dict(tokenize_punctuation=1, do_lower_case=0), ["Hello", ",", "Wörld", "日", "本", "x"]),
                         (dict(strip_accents=1, tokenize_chinese_chars=0, remove_control_chars=0), ["hello,", "world", "日本", "\x01x"])]:
        add(own, "BasicTokenizer", [text("Hello, Wörld\u00a0日本 \x01x")], [text(*words)], **attrs)


def bert_decoder(own):
    vocab = "\n".join(VOCABULARY)
    ids = np.array([2, 6, 5, 6, 7, 8, 12, 13, 99, 1, 3], np.int64)
    ranges = np.array([[2, 5], [5, 5], [0, 11]], np.int64)
    for attrs, expected in [({}, ["[CLS]believ unbelievable the! 日 [UNK] [UNK] [SEP]"]), (dict(skip_special_tokens=1), ["unbelievable the! 日 [UNK] [UNK]"]),
                            (dict(clean_up_tokenization_spaces=0), ["[CLS]believ unbelievable the ! 日 [UNK] [UNK] [SEP]"]),
                            (dict(use_indices=1), ["unbelievable", "", "[CLS]believ unbelievable the! 日 [UNK] [UNK] [SEP]"])]:
        for domain in (CONTRIB, "com.microsoft.extensions"):
            add(own, "BertTokenizerDecoder", [ids, ranges], [text(*expected)], vocab_file=vocab, domain=domain, **attrs)


def wordpiece(own):
    vocab = json.dumps({token: i for i, token in enumerate(VOCABULARY)})
    x = text("unbelievable  the", "", "thes zz", "e" * 6)
    tokens = ["un", "##believ", "##able", "the", "the", "##s", "[UNK]", "e", "##e", "##e", "##e", "##e", "##e"]
    attrs = dict(vocab=vocab, suffix_indicator="##", unknown_token="[UNK]")
    add(own, "WordpieceTokenizer", [x, np.zeros(0, np.int64)], [text(*tokens), *rows([0, 4, 4, 7, 13], [0, 4, 4, 7], [4, 4, 7, 13])], **attrs)
    add(own, "WordpieceTokenizer", [x, np.array([0, 2], np.int64)], [text(*tokens), *rows([0, 4, 13], [0, 4], [4, 13])], **attrs)
    add(own, "WordpieceTokenizer", [x, np.zeros(0, np.int64)],
        [text("?", "the", "the", "##s", "?", "?"), *rows([0, 2, 2, 5, 6], [0, 2, 2, 5], [2, 2, 5, 6])], max_input_chars_per_word=5,
        **(attrs | dict(unknown_token="?")))


def rejected(own):
    x = text("a")
    for op in ("BertTokenizer", "BertTokenizerDecoder"):
        inputs = [x] if op == "BertTokenizer" else [np.zeros(1, np.int64), np.zeros((0, 2), np.int64)]
        refuse(own, op, inputs, "attribute 'vocab_file' is missing or empty")
    refuse(own, "BertTokenizer", [x], "lacks the token '[UNK]' of attribute 'unk_token'", vocab_file="a\nb")
    vocab = "\n".join(VOCABULARY)
    refuse(own, "BertTokenizer", [text("a", "b", "c")], "expected one or two texts, found 3", vocab_file=vocab)
    refuse(own, "HfBertTokenizer", [x], "expected two texts, found 1", vocab_file=vocab)
    refuse(own, "BertTokenizer", [np.zeros(1, np.int64)], "does not support", vocab_file=vocab)
    refuse(own, "BasicTokenizer", [text("a", "b")], "expected one text")
    ids, ranges = np.zeros(3, np.int64), np.array([[0, 4]], np.int64)
    refuse(own, "BertTokenizerDecoder", [ids, ranges], "found 0 to 4", vocab_file=vocab, use_indices=1)
    refuse(own, "BertTokenizerDecoder", [ids[None, :, None], ranges], "expected [N] or [1,N]", vocab_file=vocab)
    common = dict(suffix_indicator="##", unknown_token="")
    for vocab, why in [("[1]", "expected an object from token to id, found an array"), ('{"a": "b"}', "token 'a' has an invalid id"),
                       ('{"a": -1}', "expected 0 to"), ('{"a": 1', "line 1 column 8"), ('{"a": 99999999999}', "expected 0 to")]:
        refuse(own, "WordpieceTokenizer", [x, np.zeros(0, np.int64)], why, outputs=4, vocab=vocab, **common)


CASES = [bert, bert_decoder, wordpiece, rejected]
