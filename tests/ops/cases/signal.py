# SPDX-License-Identifier: Apache-2.0
"""Cases of Fourier transforms, window functions and MelWeightMatrix."""
import numpy as np

from .common import T, f32, i64


def dft(own):
    for length in (8, 15, 60, 37, 1, 94, 128):
        x, z = f32(2, 3, length, 1), f32(3, length, 2, 2)
        own.add("DFT", [x], opset=20, reference="onnx", atol=1e-4)
        own.add("DFT", [x.astype(np.float64)], opset=20, onesided=1, reference="onnx", rtol=1e-9, atol=1e-9)
        own.add("DFT", [z, None, np.int64(1)], opset=20, inverse=1, reference="onnx", atol=1e-4)
        own.add("DFT", [f32(2, length, 2)], opset=17, axis=1, reference="onnx", atol=1e-4)
    own.add("DFT", [f32(3, 10, 1), np.int64(16)], opset=20, reference="onnx", atol=1e-4)
    own.add("DFT", [f32(3, 10, 1), np.int64(7)], opset=17, onesided=1, constants=(1,), reference="onnx", atol=1e-4)
    own.add("DFT", [f32(3, 6, 2)], opset=20, inverse=1, onesided=1, reference="onnx", atol=1e-4)
    own.add("DFT", [f32(3, 6, 2), np.int64(11)], opset=20, inverse=1, onesided=1, reference="onnx", atol=1e-4)


def stft(own):
    signal = f32(2, 100, 1)
    window = np.hanning(25).astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(signal[..., 0], 25, axis=1)[:, ::6] * window
    own.add("STFT", [signal, np.int64(6), window], opset=17, onesided=0, constants=(1,), atol=1e-4,
            reference=[np.stack([(y := np.fft.fft(frames, axis=2)).real, y.imag], -1).astype(np.float32)])
    own.add("STFT", [signal, np.int64(6), window, np.int64(25)], opset=17, constants=(1, 3), atol=1e-4,
            reference=[np.stack([(y := np.fft.rfft(frames, axis=2)).real, y.imag], -1).astype(np.float32)])
    plain = np.lib.stride_tricks.sliding_window_view(signal[..., 0].astype(np.float64), 32, axis=1)[:, ::9]
    own.add("STFT", [signal.astype(np.float64), np.int64(9), None, np.int64(32)], opset=17, rtol=1e-9, atol=1e-9,
            reference=[np.stack([(y := np.fft.rfft(plain, axis=2)).real, y.imag], -1)])
    two = i64(6, 6)  # a step of more than one element was read as its first
    own.refuse("STFT", [signal, two, window], "expected one frame_step", onesided=0)
    own.refuse("STFT", [signal, i64(), window], "expected one frame_step", onesided=0)


def windows(own):
    """HannWindow, HammingWindow, BlackmanWindow."""
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        for periodic in (0, 1):
            own.add(op, [np.int64(17)], opset=17, periodic=periodic, atol=1e-6)
        own.add(op, [np.int32(30)], opset=17, output_datatype=T.DOUBLE, reference="onnx", atol=1e-6)


def mel_weight_matrix(own):
    own.add("MelWeightMatrix", [i64(8).reshape(()), i64(64).reshape(()), i64(16000).reshape(()), np.float32(20), np.float32(7600)], opset=17)
    own.add("MelWeightMatrix", [i64(20).reshape(()), i64(400).reshape(()), i64(8000).reshape(()), np.float32(0), np.float32(4000)], opset=17,
            output_datatype=T.DOUBLE, reference="onnx")


CASES = [dft, stft, windows, mel_weight_matrix]
