# SPDX-License-Identifier: Apache-2.0
"""sentence-transformers: embeddings and similarities of MiniLM with its ONNX backend."""
import os

import results
from sentence_transformers import SentenceTransformer

TEXTS = ["A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby.", "Short.",
         "Someone in a gorilla costume plays a set of drums.", "Zürich's café closes at 5 p.m.!"]

model = SentenceTransformer(os.environ["KELP_MINILM"], backend="onnx", device="cpu",
                            model_kwargs={"file_name": "model.onnx", "provider": "CPUExecutionProvider"})
embeddings = model.encode(TEXTS, batch_size=4)
results.save(embeddings=embeddings, similarities=model.similarity(embeddings, embeddings).numpy())
