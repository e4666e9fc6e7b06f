# SPDX-License-Identifier: Apache-2.0
"""optimum: features of MiniLM from torch tensors, numpy arrays and a pipeline, with and without bindings."""
import os

import results
from optimum.onnxruntime import ORTModelForFeatureExtraction
from optimum.pipelines import pipeline
from transformers import AutoTokenizer

TEXTS = ["A man is eating food.", "Someone in a gorilla costume plays a set of drums.", "Zürich's café closes at 5 p.m.!"]

directory = os.environ["KELP_MINILM"]
tokenizer = AutoTokenizer.from_pretrained(directory)
found = {}
for binding in (False, True):
    model = ORTModelForFeatureExtraction.from_pretrained(directory, file_name="model.onnx", use_io_binding=binding)
    assert model.use_io_binding == binding
    for tensors in ("pt",) if binding else ("np", "pt"):  # optimum binds torch tensors only
        found[f"{tensors} {binding}"] = model(**tokenizer(TEXTS, padding=True, return_tensors=tensors)).last_hidden_state[:, :, ::16].tolist()
found["pipeline"] = [row[0][0] for row in pipeline("feature-extraction", model=model, tokenizer=tokenizer, accelerator="ort")(TEXTS)]
results.save(**found)
