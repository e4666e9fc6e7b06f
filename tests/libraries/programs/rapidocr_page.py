# SPDX-License-Identifier: Apache-2.0
"""rapidocr: the text of a page, its boxes and scores."""
import pictures
import results
from rapidocr import RapidOCR

LINES = ["An inference server takes requests", "Invoice 20974: 318.50 EUR", "The quick brown fox jumps over", "batch size 16, latency 2.4 ms"]

found = RapidOCR()(pictures.array(pictures.page(LINES, 28, 640)))
results.save(texts=found.txts, scores=found.scores, boxes=found.boxes)
