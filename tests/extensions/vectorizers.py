# SPDX-License-Identifier: Apache-2.0
"""TfidfVectorizer and CountVectorizer of scikit-learn, converted by skl2onnx: com.microsoft Tokenizer."""
import warnings

import corpus
import kelp
import numpy as np
import onnxruntime
from skl2onnx import to_onnx
from skl2onnx.common.data_types import StringTensorType
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

SETTINGS = [(TfidfVectorizer, {}), (TfidfVectorizer, dict(ngram_range=(1, 2))), (TfidfVectorizer, dict(analyzer="char")),
            (TfidfVectorizer, dict(analyzer="char", ngram_range=(2, 3), lowercase=False)), (CountVectorizer, dict(stop_words=["the", "fox"])),
            (TfidfVectorizer, dict(token_pattern=r"[a-zA-Z]+", sublinear_tf=True, norm="l1"))]


def check(tally, count):
    warnings.simplefilter("ignore")
    # ONNX Runtime converts the case as the C library does, of which newer ones have letters of Unicode 14
    newer = {chr(c) for c in (0x2C2F, 0x2C5F, 0xA7C0, 0xA7C1, 0xA7D0, 0xA7D1, 0xA7D6, 0xA7D7, 0xA7D8, 0xA7D9)}
    texts = [text for text in corpus.texts(count) if not newer & set(text) and len(text) < 1000]
    x = np.array(texts, object).reshape(-1, 1)
    for kind, settings in SETTINGS:
        tally.subject = f"{kind.__name__} {settings}"
        model = to_onnx(kind(**settings).fit(texts[::2]), initial_types=[("x", StringTensorType([None, 1]))], options={kind: {"locale": "C.UTF-8"}})
        expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
        found = kelp.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
        bad = [texts[i] for i in np.flatnonzero(np.abs(expected - found).max(1) > 1e-5)][:3] if expected.shape == found.shape else "shape"
        tally.check(bad, [np.array([], object)], [np.array(bad, object)])
