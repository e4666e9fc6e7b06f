# SPDX-License-Identifier: Apache-2.0
"""Cases of tokenizers of onnxruntime-extensions. The expected values are those of version 0.15.2; tests/extensions compares many more."""
import base64
import json
import struct

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


def bpe_vocabulary(merges, special, ends=()):
    """Returns the attributes vocab and merges of a vocabulary of ASCII letters, é, and the results of merges."""
    tokens = [*"abcdefghijklmnopqrstuvwxyz'1!", "Ġ", "Ã", "©", "Ċ", *ends]
    tokens += [m.replace(" ", "") for m in merges] + special
    vocab = {}
    for token in tokens:
        vocab.setdefault(token, len(vocab))
    return dict(vocab=json.dumps(vocab, ensure_ascii=False), merges="#version: 0.2\n" + "\n".join(merges)), vocab


def gpt2(own):
    merges = ["h e", "l l", "he ll", "Ġ w", "o r", "Ġw or", "Ã ©", "' t"]
    attrs, vocab = bpe_vocabulary(merges, ["<|endoftext|>"])
    none = 2**32 - 1
    for value, words, offsets in [
            ("hello world", ["hell", "o", "Ġwor", "l", "d"], [[0, 4], [4, 5], [6, 10], [10, 10], [10, 10]]),
            ("can't  é\n", ["c", "a", "n", "'t", "Ġ", "Ġ", "Ã©", "Ċ"], [[0, 1], [1, 2], [2, 3], [3, 5], [6, 6], [7, 8], [8, 11], [11, 12]]),
            ("11 Z!", ["1", "1", "Ġ", None, "!"], None), ("", [], None), ("a\0b", ["a"], [[0, 1]])]:
        ids = [vocab.get(word, none) for word in words]
        expected = rows(np.reshape(ids, (1, -1)), np.ones((1, len(ids))))
        add(own, "GPT2Tokenizer", [text(value)], expected + (rows([offsets]) if offsets else []), **attrs)
    for domain in (CONTRIB, "com.microsoft.extensions"):
        a, b, end = vocab["a"], vocab["b"], vocab["<|endoftext|>"]
        add(own, "GPT2Tokenizer", [text("a<|endoftext|>b", "b")], rows([[a, end, b], [b, 0, 0]], [[1, 1, 1], [1, 0, 0]]), domain=domain, **attrs)
    add(own, "GPT2Tokenizer", [text("hello", "a").reshape(2, 1)],
        rows([[[vocab["hell"], vocab["o"], 0]], [[vocab["a"], 0, 0]]], [[[1, 1, 0]], [[1, 0, 0]]]), padding_length=3, **attrs)
    add(own, "GPT2Tokenizer", [text("aa")], rows([[vocab["a"]]], [[1]]), padding_length=1, **attrs)
    add(own, "GPT2Tokenizer", [text("a<x>b<x><xy>!")], rows([[a, 900, b, 900, 901, vocab["!"]]], [[1] * 6]), added_token="<x>=900\r\n<xy>=901\n", **attrs)


def clip(own):
    start, end = "<|startoftext|>", "<|endoftext|>"
    attrs, vocab = bpe_vocabulary(["h e", "l l", "he ll", "hell o</w>", "Ã ©</w>"], [start, end], [*(c + "</w>" for c in "abdom!"), "©</w>"])
    s, e = vocab[start], vocab[end]
    for domain in (CONTRIB, "com.microsoft.extensions"):
        add(own, "CLIPTokenizer", [text("  HELLO \t É!", "a\nb", " ")],
            rows([[s, vocab["hello</w>"], vocab["Ã©</w>"], vocab["!</w>"], e], [s, vocab["a"], vocab["b</w>"], e, e], [s, e, e, e, e]],
                 [[1] * 5, [1, 1, 1, 1, 0], [1, 1, 0, 0, 0]]), domain=domain, **attrs)
    add(own, "CLIPTokenizer", [text("hello a"), np.array([False])], rows([[vocab["hello</w>"], vocab["a</w>"]]], [[1, 1]]), **attrs)
    add(own, "CLIPTokenizer", [text("Hello a")], rows([[s, vocab["hello</w>"], vocab["a</w>"], e]], [[1] * 4], [[[0, 0], [0, 5], [6, 7], [0, 0]]]), **attrs)


def roberta(own):
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    attrs, vocab = bpe_vocabulary(["Ġ a", "b b"], special)
    s, pad, e, _ = (vocab[token] for token in special)
    for domain in (CONTRIB, "com.microsoft.extensions"):
        add(own, "RobertaTokenizer", [text("a a", "bb<pad>bbb b")],
            rows([[s, vocab["a"], vocab["Ġa"], e, pad, pad, pad, pad], [s, vocab["bb"], pad, vocab["bb"], vocab["b"], vocab["Ġ"], vocab["b"], e]],
                 [[1, 1, 1, 1, 0, 0, 0, 0], [1] * 8]), domain=domain, **attrs)
    add(own, "RobertaTokenizer", [text("a a")], rows([[s, vocab["a"], vocab["Ġa"], e]], [[1] * 4], [[[0, 0], [0, 1], [2, 3], [0, 0]]]), **attrs)
    add(own, "RobertaTokenizer", [text("a a")], rows([[vocab["a"], vocab["Ġa"]]], [[1] * 2]), model_name="GPT2", **attrs)
    small = dict(vocab='{"a": 0, "b": 1}', merges="a b")  # special tokens get the ids that follow
    add(own, "RobertaTokenizer", [text("ab", "")], rows([[3, 0, 1, 4], [3, 4, 5, 5]], [[1] * 4, [1, 1, 0, 0]]), **(small | dict(merges="x y")))


def bpe_decoder(own):
    table = f"{ord('Ġ')}\t32\n{ord('Ã')}\t195\n{ord('©')}\t169"
    common = dict(id_vocab="a\nĠb\nc</w>\n\nÃ\n©\n<s>\n日", byte_decoder=table)
    for ids, attrs, expected in [([0, 1, 2, 3, 4, 5], {}, "a bc</w>é"), ([6, 0, 7, 99, -1], {}, "<s>a<|endoftext|><|endoftext|><|endoftext|>"),
                                 ([6, 0, 7, 99, 6], dict(skip_special_tokens=1, all_special_ids="6\n2"), "a"), ([0, 6, 0, 6], dict(whitespace_token=1, all_special_ids="6"), "a <s> a <s>"),
                                 ([2, 90, 3], dict(added_tokens="2\tX Y\n90\t!", unk_token="?"), "X Y!")]:
        for domain in (CONTRIB, "com.microsoft.extensions"):
            add(own, "BpeDecoder", [np.array(ids, np.int64)], [text(expected)], domain=domain, **(common | attrs))
    marks = dict(id_vocab="▁a\n<0x41>\nb▁c", byte_decoder=table + f"\n{0x2581}\t32")
    add(own, "BpeDecoder", [np.array([[0, 1, 2]], np.int64)], [text(" aAb c")], **marks)
    own.add("BpeDecoder", [np.array([[0, 1], [1, 0]], np.int64)], opset=1, domain=CONTRIB, reference=[text(" aA", "A a")], **marks)  # the package joins rows
    ids = np.zeros(1, np.int64)
    refuse(own, "BpeDecoder", [ids], "attribute 'byte_decoder' is missing or empty")
    refuse(own, "BpeDecoder", [ids], "attribute 'id_vocab' is missing or empty", byte_decoder=table)
    refuse(own, "BpeDecoder", [ids], "expected a number, found 'x'", byte_decoder="x", id_vocab="a")
    refuse(own, "BpeDecoder", [ids], "expected a character and a byte, found '5' and '256'", byte_decoder="5\t256", id_vocab="a")
    refuse(own, "BpeDecoder", [ids], "attribute 'added_tokens' is malformed", added_tokens="\n", **common)
    refuse(own, "BpeDecoder", [ids[0]], "expected [N]", **common)


def bpe_rejected(own):
    x, vocab = text("a"), '{"a": 0}'
    for attrs, why in [({}, "attribute 'vocab' is missing or empty"), (dict(vocab=vocab), "attribute 'merges' is missing or empty"),
                       (dict(vocab=vocab, merges="a a\nab"), "line 2 of the merges is malformed"), (dict(vocab="[", merges="a a"), "expected an object"),
                       (dict(vocab=vocab, merges="a a", padding_length=0), "padding_length: expected"),
                       (dict(vocab=vocab, merges="a a", model_name="Phi"), "model_name: expected"),
                       (dict(vocab=vocab, merges="a a", added_token="a=1\nx"), "expected TOKEN=ID, found 'x'"),
                       (dict(vocab=vocab, merges="a a", added_token="x=y"), "expected TOKEN=ID"),
                       (dict(vocab=vocab, merges="a a", added_token="=1"), "expected TOKEN=ID")]:
        refuse(own, "GPT2Tokenizer", [x], why, **attrs)
    refuse(own, "GPT2Tokenizer", [x, np.zeros(2, bool)], "expected one value", vocab=vocab, merges="a a")
    refuse(own, "GPT2Tokenizer", [x, np.zeros(1, np.int64)], "does not support", vocab=vocab, merges="a a")


NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE, WORD, CHAR = range(1, 5)


def field(number, value):
    """A field of a protobuf message."""
    if isinstance(value, (bytes, str)):
        data = value.encode() if isinstance(value, str) else value
        assert len(data) < 2**14
        size = bytes([len(data)]) if len(data) < 128 else bytes([len(data) & 127 | 128, len(data) >> 7])
        return (bytes([number << 3 | 2]) if number < 16 else bytes([(number << 3 | 2) & 127 | 128, number >> 4])) + size + data
    if isinstance(value, float):
        return bytes([number << 3 | 5]) + struct.pack("<f", value)
    return (bytes([number << 3]) if number < 16 else bytes([(number << 3) & 127 | 128, number >> 4])) + bytes([value])


def charsmap(rules):
    """A precompiled_charsmap of rules from one byte: a double array of a root and one child and leaf for each rule."""
    units, texts = [0] * 1024, b""
    units[0] = 256 << 10  # children of the root: 256 ^ byte
    for i, (byte, text) in enumerate(rules.items()):
        child, leaf = 256 ^ byte, 600 + i
        units[child] = (child ^ leaf) << 10 | 1 << 8 | byte
        units[leaf] = 1 << 31 | len(texts)
        texts += text.encode() + b"\0"
    return struct.pack("<I", 4 * len(units)) + struct.pack(f"<{len(units)}I", *units) + texts


def sentencepiece_model(pieces, kind=UNIGRAM, trainer=b"", normalizer=b""):
    body = b"".join(field(1, field(1, text) + field(2, float(score)) + field(3, which)) for text, score, which in pieces)
    return body + field(2, field(3, kind) + trainer) + field(3, normalizer)


PIECES = [("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL), ("</s>", 0, CONTROL), ("▁", -2, NORMAL), ("a", -3, NORMAL), ("b", -3.5, NORMAL), ("ab", -4, NORMAL),
          ("▁a", -4.5, NORMAL), ("bb", -9, NORMAL), ("<m>", 0, USER), ("aba", -1, UNUSED), ("é", -5, NORMAL)]


def spm_feeds(values, bos=False, eos=False, reverse=False, fairseq=None):
    flags = [bos, eos, reverse] + ([] if fairseq is None else [fairseq])
    return [text(*values), np.array([0], np.int64), np.array([0], np.float32), *(np.array([flag]) for flag in flags)]


def spm_rows(ids, instances, begins):
    return [np.array(ids, np.int32), np.array(instances, np.int64), np.array(begins, np.int32)]


def sentencepiece(own):
    unigram = sentencepiece_model(PIECES)
    encoded = base64.b64encode(unigram)
    for domain in (CONTRIB, "com.microsoft.extensions"):
        add(own, "SentencepieceTokenizer", spm_feeds(["  ab  bb ", "a<m>zz\0a", ""], bos=True, eos=True),
            spm_rows([1, 3, 6, 3, 5, 5, 2, 1, 7, 9, 0, 2, 1, 2], [0, 7, 12, 14], [0, 2, 2, 4, 6, 7, 9, 0, 0, 1, 4, 6, 0, 0]), model=unigram, domain=domain)
    add(own, "SentencepieceTokenizer", spm_feeds(["aba b"], bos=True, reverse=True), spm_rows([5, 3, 4, 6, 3, 1], [0, 6], [4, 3, 2, 0, 0, 0]), model=encoded)
    add(own, "SentencepieceTokenizer", spm_feeds(["é a", "<m>"], bos=True, eos=True, fairseq=True),
        spm_rows([0, 4, 12, 8, 2, 0, 4, 10, 2], [0, 5, 9], [0, 0, 0, 2, 4, 0, 0, 0, 3]), model=unigram)
    bpe = sentencepiece_model(PIECES, BPE)
    add(own, "SentencepieceTokenizer", spm_feeds(["abab ab", "aba<m>ab"]), spm_rows([3, 6, 4, 5, 3, 6, 3, 6, 4, 9, 6], [0, 6, 11], [0, 0, 2, 3, 4, 5, 0, 0, 2, 3, 6]), model=bpe)
    chars = sentencepiece_model(PIECES, CHAR)
    add(own, "SentencepieceTokenizer", spm_feeds(["ab<m>é"]), spm_rows([3, 4, 5, 9, 11], [0, 5], [0, 0, 1, 2, 5]), model=chars)
    rules = sentencepiece_model(PIECES, normalizer=field(2, charsmap({ord("A"): "a", ord("-"): " ", ord("x"): "", ord("B"): "bb"})))
    add(own, "SentencepieceTokenizer", spm_feeds(["--A-xB-x"]), spm_rows([7, 3, 5, 5], [0, 4], [2, 3, 5, 5]), model=rules)
    plain = sentencepiece_model(PIECES, normalizer=field(3, 0) + field(4, 0))
    add(own, "SentencepieceTokenizer", spm_feeds([" a  b "]), spm_rows([7, 3, 3, 5, 3], [0, 5], [0, 2, 3, 4, 5]), model=plain)
    suffix = sentencepiece_model(PIECES, trainer=field(24, 1))
    add(own, "SentencepieceTokenizer", spm_feeds(["ab b "]), spm_rows([6, 3, 5, 3], [0, 4], [0, 2, 3, 4]), model=suffix)
    byte = [(f"<0x{b:02X}>", 0, BYTE) for b in range(256)]
    fallback = sentencepiece_model(PIECES + byte, trainer=field(35, 1))
    add(own, "SentencepieceTokenizer", spm_feeds(["a日!"]), spm_rows([7, 12 + 0xE6, 12 + 0x97, 12 + 0xA5, 12 + 0x21], [0, 5], [0, 1, 1, 1, 4]), model=fallback)
    for domain in (CONTRIB, "com.microsoft.extensions"):
        ids = np.array([1, 7, 6, 3, 0, 12 + 0xE6, 12 + 0x97, 12 + 0xA5, 12 + 0x97, 9, 2], np.int64)
        add(own, "SentencepieceDecoder", [ids], [text("aab  ⁇ 日\ufffd<m>")], model=fallback, domain=domain)
    add(own, "SentencepieceDecoder", [np.array([4, 7], np.int64), np.array([True])], [text("b e")], model=sentencepiece_model([*PIECES[:3], ("▁b", 0, NORMAL), ("c", 0, NORMAL), ("d", 0, NORMAL), ("▁e", 0, NORMAL)]))
    surface = sentencepiece_model(PIECES, trainer=field(44, "?"), normalizer=field(3, 0) + field(4, 0))
    add(own, "SentencepieceDecoder", [np.array([7, 0, 4], np.int64)], [text(" a?a")], model=surface)


def sentencepiece_rejected(own):
    feeds = spm_feeds(["a"])
    for model, why in [(b"", "attribute 'model' is missing or empty"), (b"\x0a\xff", "expected a protobuf message"), (b"\x0a\x02\x0a\xff", "expected a piece"),
                       (sentencepiece_model(PIECES[1:]), "it has no unknown piece"), (sentencepiece_model([*PIECES, PIECES[0]]), "occurs twice"),
                       (sentencepiece_model([*PIECES, ("<u>", 0, UNKNOWN)]), "it has two unknown pieces"), (sentencepiece_model([*PIECES, ("a", 0, NORMAL)]), "'a' occurs twice"),
                       (sentencepiece_model([*PIECES, ("", 0, NORMAL)]), "a piece is empty"), (sentencepiece_model([*PIECES, ("z", 0, 9)]), "has the invalid type 9"),
                       (sentencepiece_model([*PIECES, ("z", float("nan"), NORMAL)]), "a score is not a number"),
                       (sentencepiece_model([*PIECES, ("<0xG0>", 0, BYTE)]), "expected a byte piece such as <0x0A>, found '<0xG0>'"),
                       (sentencepiece_model(PIECES, trainer=field(35, 1)), "byte_fallback needs 256 byte pieces"),
                       (sentencepiece_model(PIECES, WORD), "model_type of the SentencePiece model is unsupported"),
                       (sentencepiece_model(PIECES, normalizer=field(2, b"\0\0")), "the size of precompiled_charsmap is wrong"),
                       (sentencepiece_model(PIECES, normalizer=field(2, b"\xff\0\0\0")), "the size of precompiled_charsmap is wrong"),
                       (sentencepiece_model(PIECES) + field(5, field(2, b"x")), "denormalizer with rules")]:
        refuse(own, "SentencepieceTokenizer", feeds, why, outputs=2, **({"model": model} if model else {}))
    model = sentencepiece_model(PIECES)
    refuse(own, "SentencepieceTokenizer", [*feeds[:3], np.array([1], np.int64), *feeds[4:]], "input 3 is invalid: expected one bool", outputs=2, model=model)
    refuse(own, "SentencepieceDecoder", [np.array([99], np.int64)], "id 99 of element 0 is not in the vocabulary", model=model)
    refuse(own, "SentencepieceDecoder", [np.zeros((2, 2), np.int64)], "expected [N] or [1,N]", model=model)


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


CASES = [bert, bert_decoder, wordpiece, gpt2, clip, roberta, bpe_decoder, bpe_rejected, sentencepiece, sentencepiece_rejected, rejected]
