# SPDX-License-Identifier: Apache-2.0
"""Synthetic speech: vowels between pauses."""
import numpy as np

RATE = 16000
VOWELS = [(730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480), (660, 1720, 2410), (570, 840, 2410)]


def syllable(rng, formants, seconds=0.22):
    """Returns a vowel: the harmonics of a falling pitch, louder near the formants."""
    t = np.arange(int(seconds * RATE)) / RATE
    pitch = rng.uniform(110, 150) * (1 - 0.15 * t / seconds) * (1 + 0.01 * np.sin(2 * np.pi * 5 * t))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    sound = np.zeros(len(t))
    for harmonic in range(1, 30):
        near = sum(np.exp(-(((harmonic * pitch - formant) / (60 + 0.06 * formant)) ** 2)) / (i + 1) for i, formant in enumerate(formants))
        sound += (near + 0.02) / harmonic**0.5 * np.sin(harmonic * phase)
    return sound * np.sin(np.pi * t / seconds) ** 0.5 + rng.normal(0, 0.02, len(t))


def speech(rng):
    parts = []
    for words in (5, 9, 3):
        parts.append(rng.normal(0, 0.01, int(0.9 * RATE)))
        for _ in range(words):
            parts += [syllable(rng, VOWELS[rng.integers(len(VOWELS))]), rng.normal(0, 0.08, int(0.04 * RATE))]
    parts.append(rng.normal(0, 0.01, RATE))
    sound = np.concatenate(parts)
    return (0.3 * sound / np.abs(sound).max()).astype(np.float32)
