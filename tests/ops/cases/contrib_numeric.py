# SPDX-License-Identifier: Apache-2.0
"""Cases of operators of onnxruntime-extensions on numbers. The expected values are those of version 0.15.2; tests/extensions compares many more."""
import numpy as np

from .tokenize import add, refuse, rows


def stft_norm(own):
    x = np.array([[1, 2, 3, 4, 5]], np.float32)
    window = np.array([1, 1, 0.5, 0.5], np.float32)
    frames = np.array([[0, 0, 0.5, 1], [1, 2, 1.5, 2], [3, 4, 2.5, 0]])
    for onesided, bins in [(1, 3), (0, 4)]:
        power = np.abs(np.fft.fft(frames))[:, :bins] ** 2
        add(own, "StftNorm", [x, *rows([4], [2]), window, *rows([4])], [power.T[None].astype(np.float32)], onesided=onesided)
    add(own, "StftNorm", [x[:, :0], *rows([4], [2]), window, *rows([4])], [np.zeros((1, 3, 1), np.float32)])
    for lengths, why in [(([4], [0], [4]), "the lengths are invalid: expected a hop of 1 or more"), (([4], [2], [3]), "the lengths are invalid"), (([3], [2], [3]), "the lengths are invalid"),
                         (([4, 4], [2], [4]), "expected one value")]:
        fft, hop, frame = rows(*lengths)
        refuse(own, "StftNorm", [x, fft, hop, window, frame], why)
    refuse(own, "StftNorm", [np.zeros((2, 5), np.float32), *rows([4], [2]), window, *rows([4])], "expected one signal: [1,N]")
    refuse(own, "StftNorm", [x, *rows([4], [2]), window.astype(np.float64), *rows([4])], "does not support")


def segments(own):
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    add(own, "SegmentSum", [x, *rows([1, 1, 2, 3])], [np.array([[0, 0], [2, 4], [4, 5], [6, 7]], np.float32)])
    add(own, "SegmentExtraction", rows([0, 2, 2, 3, 0, 0, 2]), rows([[1, 3], [3, 4], [6, 7]], [2, 3, 2]))
    add(own, "SegmentExtraction", rows([[5]]), rows([[0, 1]], [5]))
    add(own, "SegmentExtraction", [np.zeros(3, np.int64)], [np.zeros((0, 2), np.int64), np.zeros(0, np.int64)])
    refuse(own, "SegmentSum", [x, *rows([0, 0, 2, 2])], "segment 2 is invalid: expected the one before or the next one, found 2")
    refuse(own, "SegmentSum", [x, *rows([-1, 0, 0, 0])], "segment 0 is invalid")
    refuse(own, "SegmentSum", [x, *rows([0, 0])], "expected one segment for each row")
    refuse(own, "SegmentSum", [x, np.zeros(4, np.int32)], "does not support")
    refuse(own, "SegmentExtraction", rows([[1], [2]]), "expected [N] or [1,N]", outputs=2)


def others(own):
    x = np.array([[-1, 0, 2], [3, -4, 0.5]], np.float32)
    add(own, "NegPos", [x], [np.minimum(x, 0), np.maximum(x, 0)])
    refuse(own, "NegPos", [x.astype(np.float64)], "does not support", outputs=2)
    add(own, "Inverse", [np.array([[2, 0], [0, 4]], np.float32)], [np.array([[0.5, 0], [0, 0.25]], np.float32)])


CASES = [stft_norm, segments, others]
