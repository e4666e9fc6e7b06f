# SPDX-License-Identifier: Apache-2.0
"""Byte-level BPE: GPT-2, CLIP, RoBERTa, and the decoder."""
import json

import corpus
import numpy as np
import undefined
import vocabularies
from peer import Pair, strings
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

SPECIAL = {"GPT2Tokenizer": ["<|endoftext|>"], "CLIPTokenizer": ["<|startoftext|>", "<|endoftext|>"],
           "RobertaTokenizer": ["<s>", "</s>", "<unk>", "<pad>"]}


def trained(texts, op, size=1500):
    """Returns a vocabulary and merges, as text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    suffix = {"end_of_word_suffix": "</w>"} if op == "CLIPTokenizer" else {}
    trainer = trainers.BpeTrainer(vocab_size=size, **suffix, special_tokens=SPECIAL[op], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    vocab = model["vocab"]
    if op == "CLIPTokenizer":
        for letter in pre_tokenizers.ByteLevel.alphabet():
            vocab.setdefault(letter + "</w>", len(vocab))
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    return json.dumps(vocab), "#version: 0.2\n" + "\n".join(merges) + "\n"


def check(tally, count):
    every_character(tally)
    texts = corpus.texts(count)
    for op in SPECIAL:
        vocab, merges = trained(texts, op)
        tokenizer(tally, op, texts, vocab, merges)
        decoder(tally, vocab, count)
        invalid(tally, op, count // 4, vocab, merges)
        real(tally, op, texts)


def invalid(tally, op, count, vocab, merges):
    for data in corpus.invalid(count):
        if undefined.reads_past_end(data) or (op == "CLIPTokenizer" and undefined.has_empty_character(data)):
            tally.excluded += 1
            continue
        tally.subject = f"{op}, invalid UTF-8"
        pair = Pair(op, [strings(data)], ["int64"] * 2, constants=[0], vocab=vocab, merges=merges)
        tally.check(data, *pair.run([]))


def real(tally, op, texts):
    """The vocabulary of the model itself."""
    found = vocabularies.OF[op]()
    if found is None:
        return
    tally.subject = f"{op}, vocabulary of the model"
    ids, offsets = (Pair(op, [strings("a")], ["int64"] * count, vocab=found[0], merges=found[1]) for count in (2, 3))
    for text in texts:
        if is_undefined(op, text, []):
            tally.excluded += 1
            continue
        tally.check(text, *ids.run([strings(text)]))
        if has_offsets(op, text, []):
            tally.check(text, *offsets.run([strings(text)]))


def decoder(tally, vocab, count):
    """BpeDecoder, for byte-level BPE and for pieces of SentencePiece."""
    tokens = [token for token, _ in sorted(json.loads(vocab).items(), key=lambda item: item[1])]
    letters = {ord(c): b for b, c in vocabularies.letters().items()}
    table = "\n".join(f"{c}\t{b}" for c, b in letters.items())
    pieces = ["▁a", "b▁", "<0x41>", "<0x0a>", "<0xZ1>", "", "日", "<s>"] * 40
    rng = np.random.default_rng(6)
    for name, words, rows in [("bytes", [*tokens, "日本"], table), ("pieces", pieces, table + f"\n{0x2581}\t32")]:
        for attrs in ({}, dict(skip_special_tokens=1), dict(whitespace_token=1), dict(unk_token="?", added_tokens="5\tADDED\n900000\t<x>\n7")):
            tally.subject = f"BpeDecoder {name} {attrs}"
            attrs = dict(id_vocab="\n".join(words) + "\n", byte_decoder=rows, all_special_ids="0\n1\n12\n40") | attrs
            pair = Pair("BpeDecoder", [np.zeros(1, np.int64)], ["string"], **attrs)
            for i in range(count):
                ids = rng.integers(-1 if i % 7 == 0 else 0, len(words) + (2 if i % 5 == 0 else 0), rng.integers(1, 12))
                ids[rng.random(len(ids)) < .3] = rng.choice([0, 1, 12, 40, 5, 900000])
                try:
                    expected, found = pair.run([ids])
                except UnicodeDecodeError:
                    continue  # the bytes are no text
                tally.check(ids.tolist(), expected, found)


def is_undefined(op, text, added):
    if op != "CLIPTokenizer":
        return undefined.loses_end(text, added)
    return undefined.has_word_of_space(text, added, SPECIAL[op]) or undefined.loses_end(undefined.clip_text(text), added)


def has_offsets(op, text, added):
    """Returns true if the package sets all offsets. It has none for special and added tokens, and none for the ends of a text without words."""
    if op == "CLIPTokenizer":
        text = undefined.clip_text(text)
    if any(token in text for token in [*SPECIAL[op], *added]):
        return False
    return op == "GPT2Tokenizer" or (text != "" and not (op == "CLIPTokenizer" and text.strip(undefined.SPACES) == ""))


ADDED = {"foo": 70000, "foobar": 70001, " the": 70002, "日本": 70003, "fo": 70004}


def tokenizer(tally, op, texts, vocab, merges):
    small = dict(list(json.loads(vocab).items())[:300])  # lacks bytes, special tokens and results of merges
    for attrs in ({}, dict(added_token="foo=70000\nfoobar=70001\r\n the=70002\n日本=70003\nfo=70004\n"), dict(padding_length=6 if op == "GPT2Tokenizer" else 60),
                  dict(vocab=json.dumps(small)), dict(merges="h e\nhe l\n\r\nq zz\nĠ t\r\nx y z\nh e")):
        added = list(ADDED) if "added_token" in attrs else []
        subject, padding = f"{op} {[*attrs]}", attrs.get("padding_length")
        attrs = dict(vocab=vocab, merges=merges) | attrs
        pair = Pair(op, [strings("a")], ["int64"] * 2, **attrs)
        exact = Pair(op, [strings("a")], ["int64"] * 3, **attrs)
        whole = Pair(op, [strings("a")], ["int64"] * 2, vocab=vocab, merges=merges)  # without padding
        for i, text in enumerate(texts):
            # CLIP reads a space in front of the added token as a word
            batch = [text, texts[i // 2], "foob fo日本 foobar the foo the." if op != "CLIPTokenizer" else "foob日本x foobar the, fo."]
            tally.subject = subject
            kept = [member for member in batch if not is_undefined(op, member, added)]
            tally.excluded += len(batch) - len(kept)
            batch = kept
            # the package writes the end token of a truncated text behind its row
            if padding and op != "GPT2Tokenizer" and whole.kelp.run(None, {"x0": strings(*batch)})[1].sum(1).max() > padding:
                kept = [member for member in batch if whole.kelp.run(None, {"x0": strings(member)})[1].sum() <= padding]
                tally.excluded += len(batch) - len(kept)
                batch = kept
            if batch:
                tally.check(batch, *pair.run([strings(*batch)]))
            if text in batch and has_offsets(op, text, added) and not padding:
                tally.check(text, *exact.run([strings(text)]))
    for flag in (False, True):
        tally.subject = f"{op} add_special_tokens {flag}"
        ends = np.array([flag])
        pair = Pair(op, [strings("a"), ends], ["int64"] * 2, vocab=vocab, merges=merges)
        for text in texts[::5]:
            if is_undefined(op, text, []):
                tally.excluded += 1
            else:
                tally.check(text, *pair.run([strings(text), ends]))


def every_character(tally):
    """Classes and lower case of all characters: words with a leading space have other offsets, so that offsets show the words."""
    vocab, merges = trained(corpus.texts(10), "CLIPTokenizer", 600)
    for op in ("GPT2Tokenizer", "CLIPTokenizer"):
        tally.subject = f"{op}, every character"
        pair = Pair(op, [strings("a")], ["int64"] * 3, vocab=vocab, merges=merges if op == "CLIPTokenizer" else "q zz")
        for first in range(1, 0x110000, 4096):
            texts = [f" {chr(c)}a1 {chr(c)}{chr(c)}" for c in range(first, first + 4096) if not 0xD800 <= c < 0xE000 and c < 0x110000]
            if not texts:
                continue
            expected, found = pair.run([strings(*texts)])
            if np.array_equal(expected[0], found[0]):
                valid = int(expected[1].sum())  # the peer does not set the others
                tally.check(hex(first), [expected[2].reshape(-1, 2)[:valid]], [found[2].reshape(-1, 2)[:valid]])
                continue
            for text, a, b in zip(texts, expected[0], found[0]):
                if not np.array_equal(a, b):
                    tally.check([hex(ord(c)) for c in text], [a], [b])
