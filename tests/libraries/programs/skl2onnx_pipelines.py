# SPDX-License-Identifier: Apache-2.0
"""skl2onnx: predictions of converted pipelines."""
import warnings

import numpy as np
import onnxruntime
import results
from skl2onnx import to_onnx
from skl2onnx.common.data_types import StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

TEXTS = ["the server takes a request", "the model returns a response", "cats eat fish", "dogs and cats eat meat", "a request waits in the queue",
         "fish swim in the sea", "the response has a status code", "dogs bark at cats"]
LABELS = [1, 1, 0, 0, 1, 0, 1, 0]


def run(model, feeds):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return {output.name: [output.type, value] for output, value in zip(session.get_outputs(), session.run(None, feeds))}


warnings.simplefilter("ignore")
x, y = load_iris(return_X_y=True)
x = x.astype(np.float32)
found = {}
for kind in (RandomForestClassifier(20, random_state=0), GradientBoostingClassifier(n_estimators=20, random_state=0), KNeighborsClassifier(),
             SVC(probability=True, random_state=0), make_pipeline(StandardScaler(), LogisticRegression())):
    name = type(kind).__name__
    found[name] = run(to_onnx(kind.fit(x[::2], y[::2]), x[:1]), {"X": x})
    found[name + " tensors"] = run(to_onnx(kind, x[:1], options={"zipmap": False}), {"X": x})
x, y = load_diabetes(return_X_y=True)
x = x.astype(np.float32)
found["regressor"] = run(to_onnx(GradientBoostingRegressor(random_state=0).fit(x, y), x[:1]), {"X": x})
words = np.array([["red", "small"], ["blue", "large"], ["red", "large"], ["green", "small"]], object)
columns = make_pipeline(ColumnTransformer([("words", OneHotEncoder(handle_unknown="ignore"), [0, 1])]), LogisticRegression())
columns.fit(words, [0, 1, 1, 0])
found["columns"] = run(to_onnx(columns, initial_types=[("X", StringTensorType([None, 2]))]), {"X": words})
# ONNX Runtime needs a locale that the system has
for name, settings in (("words", {}), ("pairs", {"ngram_range": (1, 2)}), ("letters", {"analyzer": "char", "ngram_range": (1, 3)})):
    text = make_pipeline(TfidfVectorizer(**settings), LogisticRegression()).fit(TEXTS, LABELS)
    model = to_onnx(text, initial_types=[("X", StringTensorType([None, 1]))], options={TfidfVectorizer: {"locale": "C.UTF-8"}})
    found[name] = run(model, {"X": np.array(TEXTS, object).reshape(-1, 1)})
results.save(**found)
