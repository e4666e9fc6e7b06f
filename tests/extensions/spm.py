# SPDX-License-Identifier: Apache-2.0
"""SentencePiece: unigram, BPE and char models with several normalizers."""
import base64
import io

import corpus
import numpy as np
import sentencepiece
from peer import Pair, strings

MODELS = [dict(model_type="unigram", vocab_size=900), dict(model_type="unigram", vocab_size=700, byte_fallback=True),
          dict(model_type="unigram", vocab_size=800, user_defined_symbols=["<mask>", "the", "日本", "the the"], normalization_rule_name="identity"),
          dict(model_type="unigram", vocab_size=800, add_dummy_prefix=False, remove_extra_whitespaces=False, normalization_rule_name="nfkc_cf"),
          dict(model_type="bpe", vocab_size=900), dict(model_type="bpe", vocab_size=1200, byte_fallback=True, normalization_rule_name="identity"),
          dict(model_type="bpe", vocab_size=900, user_defined_symbols=["<mask>", "qu", "日本"], remove_extra_whitespaces=False),
          dict(model_type="char", vocab_size=300), dict(model_type="unigram", vocab_size=900, treat_whitespace_as_suffix=True)]


def trained(texts, attrs):
    out = io.BytesIO()
    lines = [line for text in texts for line in text.replace("\r", "\n").split("\n") if line.strip() and "\0" not in line and len(line) < 2000]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, minloglevel=2, hard_vocab_limit=False,
                                             character_coverage=0.999, **attrs)
    return out.getvalue()


def texts_for_training():
    """Texts of few different characters."""
    known = set("".join(corpus.WORDS + corpus.FIXED[:20])) | set(map(chr, range(0x20, 0x7F)))
    return [text for text in corpus.texts(6000, 7) if set(text) <= known]


def flags(bos, eos, reverse):
    return [np.array([0], np.int64), np.array([0], np.float32), np.array([bos]), np.array([eos]), np.array([reverse])]


def check(tally, count):
    texts = corpus.texts(count)
    for attrs in MODELS:
        model = trained(texts_for_training(), attrs)
        tally.subject = f"SentencepieceTokenizer {attrs}"
        inputs = [strings("a"), *flags(False, False, False), np.array([False])]
        pair = Pair("SentencepieceTokenizer", inputs, ["int32", "int64", "int32"], model=base64.b64encode(model).decode())
        decoder = Pair("SentencepieceDecoder", [np.zeros(1, np.int64), np.array([False])], ["string"], model=model)
        for i, text in enumerate(texts):
            bos, eos, reverse, fairseq = (bool(i >> k & 1) for k in range(4))
            expected, found = pair.run([strings(text, texts[i // 2]), *flags(bos, eos, reverse), np.array([fairseq])])
            tally.check((text, texts[i // 2], bos, eos, reverse, fairseq), expected, found)
            ids = expected[0].astype(np.int64)
            if len(ids) and not fairseq:
                tally.check(ids.tolist(), *decoder.run([ids, np.array([False])]))
        tally.subject = f"SentencepieceTokenizer, invalid UTF-8 {attrs}"
        for data in corpus.invalid(count // 20):
            inputs = [strings(data), *flags(True, True, False)]
            pair = Pair("SentencepieceTokenizer", inputs, ["int32", "int64", "int32"], constants=[0], model=model)
            tally.check(data, *pair.run(inputs))
        tally.subject = f"SentencepieceDecoder {attrs}"
        size = sentencepiece.SentencePieceProcessor(model_proto=model).vocab_size()
        rng = np.random.default_rng(5)
        for i in range(count // 4):
            ids = rng.integers(3 if i % 2 else 0, min(size, 300) - 1, rng.integers(1, 20))
            tally.check(ids.tolist(), *decoder.run([ids, np.array([i % 2 == 1])]))
