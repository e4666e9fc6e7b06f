# SPDX-License-Identifier: Apache-2.0
"""Cases of HfJsonTokenizer and SpmTokenizer. The expected values are those of onnxruntime-extensions 0.15.2; tests/extensions compares many more."""
import json

import numpy as np

from .tokenize import CONTRIB, add, refuse, rows, text

NONE = 2**32 - 1  # the id of a token that the vocabulary lacks
VOCABULARY = {token: i for i, token in enumerate(["<unk>", "<s>", "</s>", "▁", "a", "▁a", "<0xC3>", "<0xA9>", "b", "ab"])}


def spm(own):
    attrs = dict(vocab=json.dumps(VOCABULARY), merges="▁ a\na b")
    for domain in (CONTRIB, "com.microsoft.extensions"):
        add(own, "SpmTokenizer", [text("a ab é", "b", " a</s>")],
            rows([[1, 5, 5, 8, 3, 6, 7], [1, 3, 8] + [NONE] * 4, [1, 3, 5, 2] + [NONE] * 3], [[1] * 7, [1] * 3 + [0] * 4, [1] * 4 + [0] * 3]), domain=domain, **attrs)
    add(own, "SpmTokenizer", [text("a ab é")],
        rows([[1, 5, 5, 8, 3, 6, 7]], [[1] * 7], [[[0, 0], [0, 4], [4, 6], [6, 7], [7, 8], [8, 9], [9, 10]]]), **attrs)
    add(own, "SpmTokenizer", [text("ab"), np.array([False])], rows([[5, 8]], [[1, 1]]), model_name="Gemma", **attrs)
    add(own, "SpmTokenizer", [text("a a a a")], rows([[1, 5, 5]], [[1] * 3]), padding_length=3, **attrs)
    add(own, "SpmTokenizer", [text("xab")], rows([[1, 3, NONE, 9]], [[1] * 4]), **(attrs | dict(merges="a b")))
    refuse(own, "SpmTokenizer", [text("a")], "model_name: expected GPT2, CodeGen, Roberta, CLIP, Llama or Gemma, found 'Phi'", model_name="Phi", **attrs)
    refuse(own, "SpmTokenizer", [text("a")], "attribute 'merges' is missing or empty", vocab="{}")


def config(name, **members):
    return json.dumps(dict(tokenizer_class=name, bos_token="<s>", eos_token="</s>", unk_token="<unk>") | members)


def hf_bpe(own):
    tokens = [{"id": i, "content": token, "special": True, "rstrip": i == 2} for i, token in enumerate(["<unk>", "<s>", "</s>"])]
    vocab = {token: i for i, token in enumerate(["<unk>", "<s>", "</s>", "a", "Ġ", "Ġa", "1", "11", "Ċ"])}
    root = {"added_tokens": tokens, "model": {"type": "BPE", "vocab": vocab, "merges": [["Ġ", "a"], "1 1"]}}
    for domain in (CONTRIB, "com.microsoft.extensions"):
        add(own, "HfJsonTokenizer", [text("a a</s> \n a", "111")], rows([[3, 5, 2, 3], [7, 6, 0, 0]], [[1] * 4, [1, 1, 0, 0]]),
            tokenizer_config=config("GPT2TokenizerFast", pad_token=None), tokenizer_vocab=json.dumps(root), domain=domain)
    split = {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": r"\p{N}|[^\r\n\p{L}\p{N}]?\p{L}+|\s+(?!\S)|\s+"}}, {"type": "ByteLevel"}]}
    add(own, "HfJsonTokenizer", [text("11 a!\n")], rows([[1, 6, 6, 5, 8, 2]], [[1] * 6], [[[0, 0], [0, 1], [1, 2], [3, 4], [4, 5], [0, 0]]]),
        tokenizer_config=config("Qwen2Tokenizer", add_bos_token=True, add_eos_token=True), tokenizer_vocab=json.dumps(root | {"pre_tokenizer": split}))
    marks = {"decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}}, {"type": "Strip", "content": " "}]},
             "added_tokens": tokens, "model": {"vocab": VOCABULARY, "merges": [["▁", "a"], ["a", "b"]]}}
    add(own, "HfJsonTokenizer", [text("a ab é")], rows([[1, 5, 5, 8, 3, 6, 7]]), tokenizer_config=config("LlamaTokenizer", add_bos_token=True),
        tokenizer_vocab=json.dumps(marks))


def hf_unigram(own):
    vocab = [["<unk>", 0.0], ["<s>", 0.0], ["</s>", 0.0], ["▁a", -1.5], ["▁", -2.0], ["a", -2.0], ["aa", -2.5], ["<0x62>", -1.0], ["[gMASK]", 0.0], ["<sop>", 0.0], ["<n>", -1.0]]
    root = json.dumps({"added_tokens": [{"id": 2, "content": "</s>", "special": True}], "model": {"unk_id": 0, "vocab": vocab}})
    for value, ids in [(" aa  azzb</s>", [3, 5, 3, 0, 7, 2, 2]), ("", []), ("  ", [])]:
        add(own, "HfJsonTokenizer", [text(value)], rows(ids), tokenizer_config=config("T5Tokenizer"), tokenizer_vocab=root)
    add(own, "HfJsonTokenizer", [text("a")], rows([1, 3, 2]), tokenizer_config="{}", tokenizer_vocab=root)
    add(own, "HfJsonTokenizer", [text("a  az\n")], rows([3, 4, 3, 10, 8, 9]), tokenizer_config=config("ChatGLMTokenizer"), tokenizer_vocab=root)
    attrs = dict(tokenizer_config=config("T5Tokenizer"), tokenizer_vocab=root)
    refuse(own, "HfJsonTokenizer", [text("a", "b")], "expected a list of one text", **attrs)
    refuse(own, "HfJsonTokenizer", [text("a")], "output 1 is unsupported for a unigram model", outputs=2, **attrs)


def hf_rejected(own):
    x, good = text("a"), config("GPT2Tokenizer")
    for attrs, why in [({}, "attribute 'tokenizer_config' is missing or empty"), (dict(tokenizer_config=good), "attribute 'tokenizer_vocab' is missing or empty"),
                       (dict(tokenizer_config="{", tokenizer_vocab="{}"), "tokenizer_config:1:2"), (dict(tokenizer_config=good, tokenizer_vocab="[1"), "tokenizer.json:1:3"),
                       (dict(tokenizer_config=config("MarianTokenizer"), tokenizer_vocab="{}"), "the tokenizer_class 'MarianTokenizer' is unsupported"),
                       (dict(tokenizer_config=good, tokenizer_vocab='{"model": {"vocab": {}, "merges": [1]}}'), "'model.merges[0]' is malformed")]:
        refuse(own, "HfJsonTokenizer", [x], why, **attrs)


CASES = [spm, hf_bpe, hf_unigram, hf_rejected]
