# SPDX-License-Identifier: Apache-2.0
"""swift-f0: the pitch of synthetic speech, of a rising tone, and of a stream."""
import numpy as np
import results
import sounds
from swift_f0 import SwiftF0


def plain(found):
    return {"pitch": found.pitch_hz, "confidence": found.confidence, "loudness": found.loudness_db}


detector = SwiftF0()
rng = np.random.default_rng(7)
sound = sounds.speech(rng)
# Noise, because logarithms of rounding errors differ.
tone = 0.3 * np.sin(2 * np.pi * np.cumsum(np.linspace(100, 800, 2 * sounds.RATE)) / sounds.RATE) + rng.normal(0, 0.01, 2 * sounds.RATE)
tone = tone.astype(np.float32)
stream, parts = detector.stream(), []
for at in range(0, len(tone), 4000):
    parts.append(plain(stream.push(tone[at:at + 4000], sounds.RATE)))
parts.append(plain(stream.flush()))
results.save(speech=plain(detector.detect(sound, sounds.RATE)), tone=plain(detector.detect(tone, sounds.RATE)), stream=parts)
