# SPDX-License-Identifier: Apache-2.0
"""Operators on numbers: StftNorm with a tolerance, since the package computes in float."""
import numpy as np
from peer import Pair


def check(tally, count):
    rng = np.random.default_rng(11)
    tally.subject = "StftNorm"
    for i in range(max(count // 20, 10)):
        length = int(rng.choice([1, 2, 5, 8, 16, 25, 31, 64, 400]))
        window = rng.random(int(rng.integers(1, length + 1)) if i % 3 else length).astype(np.float32)
        signal = rng.standard_normal((1, int(rng.integers(1, 600)), 1)[:2 + i % 2]).astype(np.float32)
        hop, samples = int(rng.integers(1, length + 3)), signal.shape[1]
        if samples // hop * hop + len(window) > samples + len(window) // 2 * 2:  # the package reads the last frame beyond the zeros after the signal
            tally.excluded += 1
            continue
        inputs = [signal, np.array([length]), np.array([hop]), window, np.array([length])]
        expected, found = Pair("StftNorm", inputs, ["float32"], onesided=i % 4 != 0).run(inputs)
        same = expected[0].shape == found[0].shape and np.allclose(expected[0], found[0], rtol=1e-3, atol=1e-4 * max(1, np.abs(expected[0]).max()))
        tally.check([a.shape for a in inputs], [np.array(True)], [np.array(same)])
    exact(tally, rng, count)


def exact(tally, rng, count):
    negatives = Pair("NegPos", [np.zeros((1, 1), np.float32)], ["float32"] * 2)
    segments = Pair("SegmentExtraction", [np.zeros(1, np.int64)], ["int64"] * 2)
    sums = {rank: Pair("SegmentSum", [np.zeros((1,) * rank, np.float32), np.zeros(1, np.int64)], ["float32"]) for rank in (1, 2, 3)}
    for i in range(count // 10):
        tally.subject = "NegPos"
        x = rng.integers(-3, 4, (int(rng.integers(0, 5)), 7)).astype(np.float32)
        tally.check(x.tolist(), *negatives.run([x]))
        tally.subject = "SegmentExtraction"
        x = np.repeat(rng.integers(-1, 3, 6), rng.integers(0, 4, 6))
        tally.check(x.tolist(), *segments.run([x]))
        tally.subject = "SegmentSum"
        ids = np.cumsum(rng.integers(0, 2, rng.integers(1, 9))) + rng.integers(0, 3)
        x = rng.standard_normal((len(ids), 3, 2)[:1 + i % 3]).astype(np.float32)
        tally.check(ids.tolist(), *sums[1 + i % 3].run([x, ids]))
        tally.subject = "Inverse"
        x = rng.standard_normal((4, 4)).astype(np.float32) + 4 * np.eye(4, dtype=np.float32)
        expected, found = Pair("Inverse", [x], ["float32"]).run([x]) if i < 20 else (x, x)
        tally.check(x.tolist(), [np.array(True)], [np.array(np.allclose(expected, found, rtol=1e-3, atol=1e-4))])
