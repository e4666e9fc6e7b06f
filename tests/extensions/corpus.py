# SPDX-License-Identifier: Apache-2.0
"""Texts for tokenizers and string operators: many scripts, marks, controls, emoji, white space, long words, invalid UTF-8."""
import random

SCRIPTS = [(0x20, 0x7E), (0x20, 0x7E), (0x61, 0x7A), (0xA0, 0xFF), (0x100, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F), (0x531, 0x58F),
           (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x13A0, 0x13FF), (0x1C80, 0x1CBF),
           (0x1D00, 0x1DBF), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x20CF), (0x2100, 0x218F), (0x2460, 0x24FF), (0x2600, 0x27BF),
           (0x2C00, 0x2DFF), (0x2E80, 0x2FDF), (0x3000, 0x30FF), (0x3400, 0x3500), (0x4E00, 0x5100), (0xA640, 0xA7FF), (0xAB70, 0xABBF),
           (0xAC00, 0xAD00), (0xE000, 0xE010), (0xF900, 0xFAFF), (0xFB00, 0xFB4F), (0xFE00, 0xFE2F), (0xFE30, 0xFFEF), (0xFFF9, 0xFFFF),
           (0x10300, 0x1034F), (0x10400, 0x104FF), (0x1D400, 0x1D7FF), (0x1E900, 0x1E95F), (0x1F1E6, 0x1F1FF), (0x1F300, 0x1F6FF),
           (0x1F900, 0x1F9FF), (0x20000, 0x20100), (0x2A6D0, 0x2A720), (0x2B730, 0x2B830), (0x2F800, 0x2FA1F), (0xE0100, 0xE01EF), (0x10FFF0, 0x10FFFF)]
SPACES = " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2003\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
CONTROLS = "".join(map(chr, [*range(1, 32), *range(0x7F, 0xA0), 0xAD, 0x200B, 0x200D, 0x202E, 0x2060, 0xFEFF]))
FIXED = ["", " ", "   ", "\n", "\r\n", "a", "I'm you're we'll they've he'd it's 't 'S 'LL don't", "Hello, World!", "  two  spaces  ", "tab\tand\nline\r\nend ",
         "naïve café Ünïcödé straße İstanbul ŞĞI ǅ ﬁ ß", "e\u0301 a\u0308o\u0302", "日本語のテキスト と English", "汉字 漢字 仮名", "한국어 텍스트", "สวัสดีครับ",
         "नमस्ते दुनिया", "مرحبا بالعالم", "שלום עולם", "Привет, мир!", "Ελληνικά ΣΊΣΥΦΟΣ", "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪", "½ ² ³ ¼ Ⅷ ① ٣ 三 1234567 3.14",
         "http://a.b/c?d=e&f=%20#g", "x" * 99, "x" * 100, "x" * 101, "x" * 201, "ab" * 3000, "é" * 150, "don\u2019t \u201cquote\u201d — – …", "a_b-c.d,e;f:g",
         "<|endoftext|>", "a<|endoftext|>b <s> </s> <pad> <mask> <unk>", "[CLS] a [SEP] [MASK] [UNK] [PAD]", "##a #b ###", "\u2581under\u2581score",
         "\ufeffbom", "\u200bzero\u200dwidth", "\U0001F600" * 40, "$1,234.56 (100%) @user #tag", "'", "''", "'s", " 's", "\u00a0nbsp\u00a0", "</w> a</w>",
         "<0x41> <0x00>", "ﷺ ㍿ ｱｲｳ ＡＢＣ １２３", "Ⅳ㎏㏒ﬀ"]
WORDS = ["the", "quick", "Brown", "fox", "jumps", "over", "lazy", "dogs", "tokenization", "un", "believ", "able", "don't", "we'll", "2023", "x1", "日本", "über",
         "Привет", "😀", "--", "...", "(a)", "é", "\n", "  ", "\t", "token", "ized"]


def texts(count, seed=1):
    """Returns FIXED and `count` random texts."""
    rng = random.Random(seed)
    out = list(FIXED)
    while len(out) < len(FIXED) + count:
        kind = rng.random()
        if kind < .35:
            text = "".join(rng.choice(WORDS) + rng.choice([" ", " ", "", "  ", "-"]) for _ in range(rng.randint(1, 20)))
        elif kind < .7:
            ranges = rng.sample(SCRIPTS, rng.randint(1, 3))
            text = "".join(rng.choice(SPACES) if rng.random() < .12 else chr(rng.randint(*rng.choice(ranges))) for _ in range(rng.randint(1, 40)))
        elif kind < .8:
            text = "".join(rng.choice(SPACES + CONTROLS + "ab.1") for _ in range(rng.randint(1, 30)))
        else:
            text = "".join(chr(rng.choice([rng.randint(1, 0x2FF), rng.randint(1, 0xD7FF), rng.randint(0xE000, 0x10FFFF)])) for _ in range(rng.randint(1, 20)))
        out.append(text)
    return out


def invalid(count, seed=2):
    """Returns texts as bytes, of which most are not valid UTF-8."""
    rng = random.Random(seed)
    out = [b"\xff", b"a\xffb", b"\xc3", b"\xc3(", b"\xe2\x82", b"\xe2(\xa1", b"\xf0\x9f\x98", b"\xf8\x88\x80\x80\x80", b"\xed\xa0\x80", b"\xc0\xaf", b"\x80 a",
           b"\xf7\xbf\xbf\xbf b", b"ok"]
    for _ in range(count):
        data = bytearray("".join(rng.choice(WORDS) for _ in range(rng.randint(1, 6))).encode())
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.choice([rng.randint(0x80, 0xFF), rng.randint(1, 0xFF)])
        out.append(bytes(data))
    return [data for data in out if not reads_outside(data)]


def reads_outside(data):
    """Returns true if the peer reads more than one byte after the end of the text."""
    at = 0
    while at < len(data):
        at += 1 if data[at] < 0x80 else 2 if data[at] & 0xE0 == 0xC0 else 3 if data[at] & 0xF0 == 0xE0 else 4
    return at > len(data) + 1
