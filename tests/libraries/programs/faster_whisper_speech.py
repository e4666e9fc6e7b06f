# SPDX-License-Identifier: Apache-2.0
"""faster-whisper: the segments of speech that its voice activity detection finds, with several options."""
import numpy as np
import results
import sounds
from faster_whisper import vad

sound = sounds.speech(np.random.default_rng(7))
found = {name: vad.get_speech_timestamps(sound, vad.VadOptions(**options)) for name, options in (
    ("default", {}), ("strict", {"threshold": 0.7, "min_silence_duration_ms": 200}), ("split", {"max_speech_duration_s": 1.5}))}
padded = np.pad(sound, (0, -len(sound) % 512))
results.save(probabilities=vad.get_vad_model()(padded), segments=found)
