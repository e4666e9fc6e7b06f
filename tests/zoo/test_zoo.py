#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that people use (tools/zoo.py), on inputs that suit them, answer as ONNX Runtime does.

    test_zoo.py --runner PATH --models FOLDER [--package FOLDER] [--precision f32|bf16] [NAME …]

--runner: tests/ops/run_cases; --package: where the Python package `kelp` lies, by default beside the runner's build. Models that generate
text do so greedily, their caches growing with each token: logits agree at each step, the answer is one, and memory stops growing. Plans of
the others give the same bits as the files. No model allocates in a run whose shapes were seen, as counted for the whole process. Ends with "N passed, N failed". With bf16 the models that answer with numbers do so as closely as
products of bfloat16 allow (zoo.TOLERANCES_BF16).
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tools"), os.path.join(ROOT, "tests", "ops")]
import zoo  # noqa: E402
from cases.common import Writer  # noqa: E402


# "What is the capital of France?" and "Write a short poem about the sea." in SmolLM2's chat, and the token " Paris"
QUESTION = [1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531, 198]
POEM = [1, 4093, 198, 19161, 253, 1890, 8216, 563, 260, 3426, 30, 2, 198, 1, 520, 9531, 198]
PARIS = 7042
STEPS = 32
MOST_GROWTH_MIB = 24
MOST_DIVERGENCE = 0.05  # in nats; 8-bit activations alone make 0.003 to 0.007


def peer(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def resident_mib():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def generate(session, prompt, steps, follow=None):
    """The logits of the last place at each step; the token taken is the likeliest one, or that of `follow`."""
    outputs = [output.name for output in session.get_outputs()]
    feed = {"input_ids": np.array([prompt]), "attention_mask": np.ones((1, len(prompt)), np.int64)}
    feed.update((i.name, np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32)) for i in session.get_inputs() if i.name.startswith("past"))
    rows = []
    for step in range(steps):
        logits, *caches = session.run(outputs, feed)
        rows.append(logits[0, -1].copy())
        token = int((follow[step] if follow else rows[-1]).argmax())
        feed = {name.replace("present", "past_key_values"): cache for name, cache in zip(outputs[1:], caches)}
        feed.update(input_ids=np.array([[token]]), attention_mask=np.ones((1, caches[0].shape[2] + 1), np.int64))
    return rows


def divergence(expected, found):
    """The Kullback-Leibler divergence of the next token's distributions, from logits."""
    ours, theirs = (row.astype(np.float64) - row.max() for row in (found, expected))
    ours, theirs = (row - np.log(np.exp(row).sum()) for row in (ours, theirs))
    return float((np.exp(theirs) * (theirs - ours)).sum())


def check_generation(name, path, kelp):
    rtol, atol = zoo.TOLERANCES[name]
    theirs = generate(peer(path), QUESTION, STEPS)
    session = kelp.InferenceSession(path)
    ours = generate(session, QUESTION, STEPS, theirs)
    if name in zoo.BY_DISTRIBUTION:
        apart = np.mean([divergence(a, b) for a, b in zip(theirs, ours)])
        if not apart < MOST_DIVERGENCE:
            return False, f"the distributions of the next token diverge by {apart:.3g}"
    else:
        far = [step for step in range(STEPS) if not np.allclose(ours[step], theirs[step], rtol, atol)]
        if far:
            return False, f"logits differ at steps {far}: by {np.abs(ours[far[0]] - theirs[far[0]]).max():.3g} at the first"
    if name != "smollm_int4" and PARIS not in [int(row.argmax()) for row in ours]:
        return False, "it does not name Paris"
    generate(session, POEM, STEPS)
    before = resident_mib()
    for length in range(2, len(POEM), 3):  # other lengths, each with caches of every length that follows
        generate(session, POEM[:length], STEPS // 2)
    grown = resident_mib() - before
    return grown < MOST_GROWTH_MIB, f"memory grows by {grown:.1f} MiB with lengths that vary"


def spectrum(sound):
    pieces = np.stack([sound[at:at + 512] for at in range(0, len(sound) - 512, 256)]) * np.hanning(512)
    return np.log(np.abs(np.fft.rfft(pieces)) ** 2 + 1e-4)


def check_spectrum(name, path, kelp):
    """As long as theirs within three hundredths, and of like spectrum: theirs differs as much when its input moves by a millionth."""
    theirs, ours = peer(path), kelp.InferenceSession(path)
    for feed in zoo.feeds(name, os.path.dirname(path)):
        expected, found = theirs.run(None, feed)[0].ravel(), ours.run(None, feed)[0].ravel()
        if not 0.97 < len(found) / len(expected) < 1.03:
            return False, f"{len(found)} samples, expected {len(expected)}"
        shorter = min(len(found), len(expected))
        like = np.corrcoef(spectrum(found[:shorter]).ravel(), spectrum(expected[:shorter]).ravel())[0, 1]
        if len(found) == len(expected) and not like > 0.85:
            return False, f"spectra correlate by {like:.3f}"
    return True, ""


def check_reading(name, path, kelp, precision):
    """The likeliest letter of each place, and no more than a twentieth apart in the mean."""
    options = kelp.SessionOptions()
    options.precision = precision
    theirs, ours = peer(path), kelp.InferenceSession(path, options)
    for feed in zoo.feeds(name, os.path.dirname(path)):
        expected, found = theirs.run(None, feed)[0], ours.run(None, feed)[0]
        if (expected.argmax(-1) != found.argmax(-1)).any():
            return False, f"it reads {found.argmax(-1).ravel()}, expected {expected.argmax(-1).ravel()}"
        apart = np.abs(expected - found).mean()
        if not apart < 0.05:
            return False, f"logits are {apart:.3g} apart in the mean"
    return True, ""


def tolerance(name, precision):
    if precision == "bf16":
        return zoo.TOLERANCES_BF16.get(name, zoo.TOLERANCE_BF16)
    return zoo.TOLERANCES.get(name, zoo.TOLERANCE)


def check(name, path, runner, precision):
    session = peer(path)
    outputs = [output.name for output in session.get_outputs()]
    model = onnx.load(path)
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(folder)
        for index, feed in enumerate(zoo.feeds(name, os.path.dirname(path))):
            writer.case(f"{name}_{index}", model, list(feed.items()), list(zip(outputs, session.run(outputs, feed))),
                        *tolerance(name, precision))
        writer.close()
        ended = subprocess.run([runner, folder, "--threads", "2", "--precision", precision], capture_output=True, text=True, check=False, timeout=600)
    return ended.returncode == 0, (ended.stdout + ended.stderr).strip()


def check_allocations(name, path, runner, precision):
    """None, in the whole process, once each of the inputs was seen."""
    model = onnx.load(path)
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(folder)
        for index, feed in enumerate(zoo.feeds(name, os.path.dirname(path))):
            writer.case(f"{name}_{index}", model, list(feed.items()), [], 0, 0)
        writer.close()
        ended = subprocess.run([runner, folder, "--threads", "2", "--precision", precision, "--allocations", "0"], capture_output=True, text=True,
                               check=False, timeout=600)
    return ended.returncode == 0, (ended.stdout + ended.stderr).strip()


def check_plan(name, path, kelp):
    """A plan answers with the file's bits: with weights packed in it, and packed anew by a refit."""
    feed = next(iter(zoo.feeds(name, os.path.dirname(path))))
    session, builder = kelp.InferenceSession(path), kelp.Builder()
    outputs = [output.name for output in session.get_outputs()]
    expected = session.run(outputs, feed)
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "model.plan")
        builder.build(builder.parse(path), flags="refit").save(place)
        engine = kelp.Engine.load(place)
        for way in ("loaded", "refitted"):
            found = engine.run(feed)
            different = [output for output, array in zip(outputs, expected) if array.tobytes() != np.asarray(found[output]).tobytes()]
            if different:
                return False, f"the plan, {way}, gives other bits of {different}"
            engine.refit({})
    return True, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runner", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--package")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    sys.path.insert(0, options.package or os.path.join(os.path.dirname(os.path.abspath(options.runner)), "..", "..", "python"))
    import kelp
    passed = failed = 0
    bf16 = options.precision == "bf16"
    names = options.names or [name for name in zoo.NAMES if not bf16 or name not in zoo.NOT_IN_BF16]
    for name, path in zoo.fetch(options.models, names).items():
        if name in zoo.GENERATIVE and not bf16:
            good, said = check_generation(name, path, kelp)
        elif name in zoo.BY_SPECTRUM and not bf16:
            good, said = check_spectrum(name, path, kelp)
        else:
            good, said = (check_reading(name, path, kelp, options.precision) if name in zoo.BY_READING else
                          check(name, path, options.runner, options.precision))
            if good and not bf16:
                good, said = check_plan(name, path, kelp)
        if good:
            good, said = check_allocations(name, path, options.runner, options.precision)
        passed += good
        failed += not good
        print(f"{'ok     ' if good else 'FAILED '} {name}" + ("" if good else f"\n{said}"), flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
