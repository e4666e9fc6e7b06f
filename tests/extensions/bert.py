# SPDX-License-Identifier: Apache-2.0
"""BERT and WordPiece."""
import json

import corpus
import numpy as np
from peer import Pair, strings

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def vocabulary(texts):
    """Frequent words, their beginnings and ends, and all characters of some of the texts."""
    tokens = dict.fromkeys([*SPECIAL, "##", "#", "a"])
    for text in texts[::2]:
        for word in text.replace("\r", " ").replace("\n", " ").split():
            for part in (word, word.lower(), word[:1], "##" + word[-2:], "##" + word[1:2], word.lower()[:3], "##" + word[2:5].lower()):
                tokens.setdefault(part)
    return [t for t in tokens if t and "\0" not in t]


def check(tally, count):
    texts = corpus.texts(count)
    tokens = vocabulary(texts)
    text = strings("a")
    for attrs in ({}, dict(do_lower_case=0), dict(strip_accents=1), dict(strip_accents=1, do_lower_case=0), dict(tokenize_chinese_chars=0),
                  dict(max_length=8), dict(max_length=2), dict(suffix_indicator="#"), dict(unk_token="a"), dict(do_basic_tokenize=0)):
        outputs = ["int64"] * (3 if attrs.get("do_basic_tokenize") == 0 else 4)
        if "max_length" in attrs:  # the peer writes offsets beyond the end
            outputs = outputs[:3]
        tally.subject = f"BertTokenizer {attrs}"
        pair = Pair("BertTokenizer", [text], outputs, vocab_file="\n".join(tokens), **attrs)
        for i, t in enumerate(texts):
            tally.check(t, *pair.run([strings(t)]))
            if i % 5 == 0:
                expected, found = pair.run([strings(t, texts[i // 2])])
                tally.check((t, texts[i // 2]), expected[:3], found[:3])
    tally.subject = "HfBertTokenizer"
    pair = Pair("HfBertTokenizer", [strings("a", "b")], ["int64"] * 3, vocab_file="\r\n".join(tokens))
    for i, t in enumerate(texts):
        tally.check(t, *pair.run([strings(t, texts[i // 3])]))
    tally.subject = "BertTokenizer, invalid UTF-8"
    for data in corpus.invalid(count // 10):
        pair = Pair("BertTokenizer", [strings(data)], ["int64"] * 4, constants=[0], vocab_file="\n".join(tokens))
        tally.check(data, *pair.run([strings(data)]))
    for attrs in ({}, dict(do_lower_case=0), dict(strip_accents=1), dict(tokenize_punctuation=1, remove_control_chars=0), dict(tokenize_chinese_chars=0)):
        tally.subject = f"BasicTokenizer {attrs}"
        pair = Pair("BasicTokenizer", [text], ["string"], **attrs)
        for t in texts:
            tally.check(t, *pair.run([strings(t)]))
    wordpiece(tally, texts, tokens)
    decoder(tally, tokens, count)


def wordpiece(tally, texts, tokens):
    vocab = json.dumps({t: i for i, t in enumerate(tokens)})
    for attrs in ({}, dict(max_input_chars_per_word=5), dict(suffix_indicator="", unknown_token="")):
        attrs = dict(suffix_indicator="##", unknown_token="[UNK]") | attrs
        tally.subject = f"WordpieceTokenizer {attrs}"
        pair = Pair("WordpieceTokenizer", [strings("a"), np.zeros(0, np.int64)], ["string", "int64", "int64", "int64"], vocab=vocab, **attrs)
        for i in range(0, len(texts) - 3, 3):
            tally.check(texts[i:i + 3], *pair.run([strings(*texts[i:i + 3]), np.zeros(0, np.int64)]))
            tally.check(texts[i:i + 3], *pair.run([strings(*texts[i:i + 3]), np.array([0, 2], np.int64)]))


def decoder(tally, tokens, count):
    rng = np.random.default_rng(3)
    for attrs in ({}, dict(skip_special_tokens=1), dict(clean_up_tokenization_spaces=0), dict(use_indices=1)):
        tally.subject = f"BertTokenizerDecoder {attrs}"
        vocab = "\n".join(t for t in tokens if t != "##")
        pair = Pair("BertTokenizerDecoder", [np.zeros(1, np.int64), np.zeros((0, 2), np.int64)], ["string"], vocab_file=vocab, **attrs)
        for _ in range(count):
            ids = rng.integers(-1 if rng.random() < .2 else 0, len(tokens) if rng.random() < .5 else 40, rng.integers(1, 20))
            ranges = np.sort(rng.integers(0, len(ids) + 1, (rng.integers(1, 4), 2)), 1)
            tally.check(ids.tolist(), *pair.run([ids, ranges]))
