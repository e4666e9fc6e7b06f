# SPDX-License-Identifier: Apache-2.0
"""Inputs for which onnxruntime-extensions 0.15.2 has undefined behaviour or a known bug, so that there is nothing to compare with. Each function
follows the code of the package exactly: it excludes no other input."""
import re

SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


def code_points(data):
    """Yields the characters of bytes as the package reads them, and the number of bytes that it reads after the NUL at the end of the string.
    The first byte alone decides how many bytes a character has."""
    at = 0
    while at < len(data):
        lead = data[at]
        size = 1 if lead < 0x80 else 2 if lead & 0xE0 == 0xC0 else 3 if lead & 0xF0 == 0xE0 else 4
        value = lead if size == 1 else lead & (0x7F >> size)
        for i in range(at + 1, at + size):
            value = value << 6 | (data[i] & 0x3F if i < len(data) else 0)
        yield value, max(0, at + size - 1 - len(data))
        at += size


def reads_past_end(data):
    """Returns true if the last character lacks two bytes or more: the package reads memory after the string."""
    return any(beyond for _, beyond in code_points(data))


def has_empty_character(data):
    """Returns true if the bytes have U+0000 in a longer form, which the package drops when it encodes the word. A word of CLIP may then be empty,
    and the package reads from its end on until the process ends; for other tokenizers with offsets it raises an exception."""
    return any(value == 0 for value, _ in code_points(data))


def clip_text(text):
    """Returns what CLIPTokenizer makes of a text before it looks for added and special tokens."""
    kept = "".join(c for i, c in enumerate(text) if c not in SPACES or i == 0 or text[i - 1] not in SPACES)
    kept = kept[1:] if kept[:1] and kept[0] in SPACES else kept
    kept = kept[:-1] if kept[-1:] and kept[-1] in SPACES else kept
    return kept.replace("\n", "").replace("\r", "").lower()


def plain_parts(text, added, special):
    """Returns the parts of a text between added and special tokens."""
    parts = [text]
    if added:
        parts = re.split("|".join(re.escape(token) for token in sorted(added, key=len, reverse=True)), text)
    for token in special:
        parts = [piece for part in parts for piece in part.split(token)]
    return parts


def has_word_of_space(text, added, special):
    """Returns true if CLIPTokenizer finds a word that is only a space: a space in front of an added or special token. The package removes the space,
    and then reads 2 to the 64 bytes of the empty word, which ends the process."""
    return any(part.endswith(" ") for part in plain_parts(clip_text(text), added, special))


def loses_end(text, added):
    """Returns true if the search for added tokens loses the end of a text: a part of a token that reaches the last or the last but one character
    is not resumed after its first character. Later versions of the package are correct."""
    at = 0
    while added and at < len(text):
        same = 0
        while at + same < len(text) and any(token.startswith(text[at:at + same + 1]) for token in added):
            same += 1
        found = max((len(token) for token in added if text.startswith(token, at)), default=0)
        if found == 0 and at + same + 1 >= len(text):
            return at + 1 < len(text)
        at += max(found, 1)
    return False
