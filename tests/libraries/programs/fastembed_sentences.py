# SPDX-License-Identifier: Apache-2.0
"""fastembed: sentence embeddings of MiniLM from a local directory."""
import os

import results
from fastembed import TextEmbedding

SENTENCES = ["A man is eating food.", "The girl is carrying a baby.", "Someone in a gorilla costume plays a set of drums.",
             "Zürich's café closes at 5 p.m.!", "Short.", "An inference server takes requests, waits until a batch is worth running, "
             "hands it to the backend that the model names, and sends the responses back."]

model = TextEmbedding("sentence-transformers/all-MiniLM-L6-v2", specific_model_path=os.environ["KELP_MINILM"])
results.save(batch=list(model.embed(SENTENCES)), one=list(model.embed(SENTENCES[0])), query=list(model.query_embed("Who eats?")))
