# SPDX-License-Identifier: Apache-2.0
"""speechmos: ratings of synthetic speech by DNSMOS, PLCMOS and AECMOS."""
import numpy as np
import results
import sounds
from speechmos import aecmos, dnsmos, plcmos

np.random.seed(7)  # PLCMOS draws its raters from it
rng = np.random.default_rng(7)
sound = sounds.speech(rng)
far = sounds.speech(rng)[:len(sound)]
near = np.clip(sound[:len(far)] + 0.3 * far, -1, 1)
echo = {"lpb": far, "mic": near, "enh": sound[:len(far)]}
results.save(dnsmos=dnsmos.run(sound, sounds.RATE, return_df=False), personal=dnsmos.run(sound, sounds.RATE, model_type="pdnsmos", return_df=False),
             plcmos=plcmos.run(sound, sounds.RATE, return_df=False),
             aecmos={kind: aecmos.run(echo, sounds.RATE, talk_type=kind, return_df=False) for kind in ("nst", "st", "dt")})
