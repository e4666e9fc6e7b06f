# SPDX-License-Identifier: Apache-2.0
"""rapidocr-onnxruntime: the text of a page, its boxes and scores."""
import pictures
import results
from rapidocr_onnxruntime import RapidOCR

LINES = ["An inference server takes requests", "Invoice 20974: 318.50 EUR", "The quick brown fox jumps over", "batch size 16, latency 2.4 ms"]

found, _ = RapidOCR()(pictures.array(pictures.page(LINES, 28, 640)))
boxes, texts, scores = zip(*found)
results.save(texts=texts, scores=[float(score) for score in scores], boxes=boxes)
