# SPDX-License-Identifier: Apache-2.0
"""onnx-asr: the features that its preprocessors compute, with STFT and as convolutions, and resampled sound."""
import numpy as np
import results
import sounds
from onnx_asr.preprocessors.preprocessor import OnnxPreprocessor
from onnx_asr.preprocessors.resampler import Resampler

sound = sounds.speech(np.random.default_rng(7))
batch = np.stack([sound[:32000], sound[16000:48000]])
lengths = np.array([32000, 20000], np.int64)
features = {}
for name in ("gigaam_v2", "gigaam_v3", "kaldi", "nemo80", "nemo128", "whisper80", "whisper128", "wespeaker"):
    for suffix in ("", "_conv") if name != "wespeaker" else ("",):
        values, counts = OnnxPreprocessor(name + suffix, {})(batch, lengths)
        features[name + suffix] = {"shape": values.shape, "counts": counts, "values": values[:, ::7, ::11]}
resampled = {}
for rate in (8000, 11025, 22050, 24000, 32000, 44100, 48000):
    values, counts = Resampler(16000, {})(batch, lengths, rate)
    resampled[rate] = {"shape": values.shape, "counts": counts, "values": values[:, ::31]}
results.save(features=features, resampled=resampled)
