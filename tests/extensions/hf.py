# SPDX-License-Identifier: Apache-2.0
"""HfJsonTokenizer with tokenizer.json of several classes, and SpmTokenizer."""
import base64
import io
import json

import corpus
import numpy as np
import sentencepiece
import spm
import undefined
import vocabularies
from peer import Pair, strings
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
WORDS = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+", r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*")
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PHI4 = "|".join(word + "(?i:'s|'t|'re|'ve|'m|'ll|'d)?" for word in WORDS) + r"|\p{N}{1,3}" + REST
MISTRAL = "|".join(WORDS) + r"|\p{N}" + REST
QWEN = LLAMA3.replace("{1,3}", "")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"  # spaces belong to no word
SPECIAL = ["<|endoftext|>", "<s>", "</s>", "<|start|>"]


def byte_level(texts, expression, strip=False, size=1500):
    """Returns a tokenizer.json of byte-level BPE."""
    tokenizer = Tokenizer(models.BPE())
    byte = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=expression is None)
    tokenizer.pre_tokenizer = byte if expression is None else pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(expression), "isolated"), byte])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken("foobar", rstrip=strip), AddedToken("foo"), AddedToken("日本", rstrip=strip, lstrip=strip)])
    return tokenizer


def marked(texts, prefix):
    """Returns a tokenizer.json as that of Llama 2: marks instead of spaces, and bytes."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256))]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence(([normalizers.Prepend("▁")] if prefix else []) + [normalizers.Replace(" ", "▁")])
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=1200, special_tokens=pieces, limit_alphabet=150, max_token_length=12, show_progress=False))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if prefix else []))
    out = json.loads(tokenizer.to_str())
    out["added_tokens"] = out["added_tokens"][:3]  # the bytes are no added tokens
    return out


def pairs(tally, name, config, tokenizer, texts, outputs, added):
    """Compares texts; `added`: tokens at whose beginnings the package loses the end of a text."""
    tally.subject = f"HfJsonTokenizer {name}"
    attrs = dict(tokenizer_config=json.dumps(config), tokenizer_vocab=json.dumps(tokenizer, ensure_ascii=False))
    pair = Pair("HfJsonTokenizer", [strings("a")], ["int64"] * outputs, **attrs)
    is_clip = config["tokenizer_class"].startswith("CLIP")
    for i, text in enumerate(texts):
        members = [text, texts[i // 2], "x foo foobar y 日本\n z </s> a<s>b", "a"][:1 + 3 * (outputs > 1)]
        kept = []
        for member in members:
            plain = undefined.clip_text(member) if is_clip else member
            bad = undefined.loses_end(plain, added) or (is_clip and undefined.has_word_of_space(member, added, []))
            tally.excluded += bad
            if not bad:
                kept.append(member)
        if kept:
            tally.check(kept, *pair.run([strings(*kept)]))


def check(tally, count):
    texts = ["HTTPServer iPhone's McDONALD'S X'LL ABC\u0301d \u0301a Ab\u4e2d\u6587Cd ǅab /x//\n", *corpus.texts(count)]
    added = [*SPECIAL, "foobar", "foo", "日本"]
    plain = dict(bos_token="<s>", eos_token={"content": "</s>"}, unk_token="<|endoftext|>", pad_token="<|endoftext|>")
    for name, expression, config in [
            ("GPT2Tokenizer", None, {}), ("PreTrainedTokenizerFast", LLAMA3, dict(add_bos_token=True)), ("Qwen2Tokenizer", QWEN, dict(bos_token=None, eos_token="<|endoftext|>")),
            ("CodeGenTokenizer", GPT2, dict(add_eos_token=True)), ("WhisperTokenizerFast", CLIP, {}), ("PreTrainedTokenizer", PHI4, {}), ("PreTrainedTokenizerFast", MISTRAL, {}), ("LlamaTokenizerFast", None, dict(add_bos_token=True, add_eos_token=True)),
            ("GPTNeoXTokenizerFast", None, dict(bos_token="<|endoftext|>", eos_token="<|endoftext|>")), ("CLIPTokenizer", None, dict(add_bos_token=True, add_eos_token=True))]:
        for strip in (False, True):
            tokenizer = byte_level(texts, expression, strip)
            if strip:
                tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
            model = json.loads(tokenizer.to_str())
            if not strip:  # merges as lines
                model["model"]["merges"] = [" ".join(merge) for merge in model["model"]["merges"]]
            pairs(tally, f"{name} {strip}", plain | config | dict(tokenizer_class=name), model, texts, 2, added)
    for name, prefix, flag in [("LlamaTokenizer", True, True), ("GemmaTokenizer", False, True), ("PreTrainedTokenizerFast", True, False), ("Phi3Tokenizer", False, False)]:
        model = marked(spm.texts_for_training(), prefix)
        config = dict(tokenizer_class=name, bos_token="<s>", eos_token="</s>", unk_token="<unk>", add_bos_token=flag)
        pairs(tally, f"{name}, marks", config, model, texts, 2, ["<s>", "</s>", "<unk>"])
        spm_tokenizer(tally, "Gemma" if name.startswith("Gemma") else "Llama", model, texts)
    unigrams(tally, texts)


def spm_tokenizer(tally, name, model, texts):
    lines = [" ".join(merge) for merge in model["model"]["merges"] if not set("".join(merge)) & set("\r\n ")]
    attrs = dict(vocab=json.dumps(model["model"]["vocab"], ensure_ascii=False), merges="\n".join(lines))
    added = {"foo": 5000, "<s>": 1, "</s>": 2}
    for extra in ({}, dict(added_token="\n".join(f"{k}={v}" for k, v in added.items())), dict(padding_length=9), dict(vocab=json.dumps(dict([*model["model"]["vocab"].items()][3:600])))):
        tally.subject = f"SpmTokenizer {name} {[*extra]}"
        pair = Pair("SpmTokenizer", [strings("a")], ["int64"] * 2, model_name=name, **(attrs | extra))
        exact = Pair("SpmTokenizer", [strings("a")], ["int64"] * 3, model_name=name, **(attrs | extra))
        names = [*added] if "added_token" in extra else []
        for i, text in enumerate(texts):
            kept = [t for t in (text, texts[i // 2], "a foo</s> b") if not undefined.loses_end(t, names)]
            tally.excluded += 3 - len(kept)
            tally.check(kept, *pair.run([strings(*kept)]))
            if text and "padding_length" not in extra and not any(token in text for token in (*added, "<unk>")) and text in kept:
                tally.check(text, *exact.run([strings(text)]))
    for flag in (False, True):
        pair = Pair("SpmTokenizer", [strings("a"), np.array([flag])], ["int64"] * 2, **attrs)
        for text in texts[::7]:
            tally.check(text, *pair.run([strings(text), np.array([flag])]))


def unigram(model):
    """Returns a tokenizer.json of a SentencePiece model, as transformers converts it."""
    proto = sentencepiece.sentencepiece_model_pb2 if hasattr(sentencepiece, "sentencepiece_model_pb2") else None
    if proto is None:
        from sentencepiece import sentencepiece_model_pb2 as proto
    message = proto.ModelProto()
    message.ParseFromString(model)
    vocab = [[piece.piece, piece.score] for piece in message.pieces]
    charsmap = base64.b64encode(message.normalizer_spec.precompiled_charsmap).decode()
    return vocab, charsmap


def unigrams(tally, texts):
    texts = [text for text in texts if not {"\ufffe", "\uffff"} & set(text)]  # the package rejects these as invalid UTF-8
    for number, attrs in enumerate(spm.MODELS):
        if attrs["model_type"] != "unigram":
            continue
        vocab, charsmap = unigram(spm.trained(spm.texts_for_training(), attrs))
        normalizer = [{"type": "Precompiled", "precompiled_charsmap": charsmap}, {"type": "Strip"}][:1 if charsmap else 0]
        for name, config in [("T5Tokenizer", {}), ("", {}), ("XLMRobertaTokenizer", dict(add_bos_token=True)), ("ChatGLMTokenizer", {}), ("DebertaV2TokenizerFast", dict(add_eos_token=True))]:
            tokens = [*vocab, ["[gMASK]", 0.0], ["<sop>", 0.0], ["<n>", -3.0], ["<|tab|>", -3.5], ["<|blank_3|>", -3.0], ["abc12d", -1.0], ["<0x41>", -2.0], vocab[9]]
            model = {"added_tokens": [{"id": i, "content": vocab[i][0], "special": True} for i in range(3)] + [{"id": 9, "content": "the fox", "special": False}],
                     "normalizer": {"type": "Sequence", "normalizers": normalizer} if number % 2 else {"precompiled_charsmap": charsmap} if charsmap else None,
                     "model": {"type": "Unigram", "unk_id": 0, "vocab": tokens}}
            config = dict(tokenizer_class=name, bos_token="<s>", eos_token="</s>", unk_token="<unk>") | config
            pairs(tally, f"unigram {number} {name}", config, model, texts, 1, [])
