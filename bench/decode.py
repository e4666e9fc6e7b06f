#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decoding of a language model with 4-bit weights (tools/make_smollm.py: smollm_int4) on Kelp, ONNX Runtime GenAI and llama.cpp in one run.

    decode.py --models FOLDER [--package FOLDER] [--venv FOLDER] [--threads 1,2] [--context 256,1024] [--tokens N] [--rounds R] [--json FILE]

Each engine is a process of its own. They decode in turn, N tokens after a prompt of each length, while the others sleep. Printed are the
medians of the rounds' milliseconds a token, and the smallest and the largest. Kelp and ONNX Runtime GenAI run the same file, with caches of
fixed length that are appended to in place; llama.cpp runs the same weights as Q4_0. --package is the folder of the Python package `kelp`.
The peers are installed into --venv when it is not there.
"""
import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEERS = ("numpy", "onnxruntime-genai==0.18.0", "xllamacpp==2026.10.11549")
ENGINES = {"kelp": "Kelp", "genai": "ONNX Runtime GenAI", "llama": "llama.cpp Q4_0"}
LAYERS, HEADS, KV_HEADS, SIZE, VOCABULARY = 30, 9, 3, 64, 49152


def tokens(count):
    return [100 + i * 7919 % (VOCABULARY - 200) for i in range(count)]


# ---------------------------------------------------------------- engines: decode(context, count) returns milliseconds a token

def kelp(folder, threads, longest):
    import numpy as np
    import kelp.onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(os.path.join(folder, "smollm_int4.onnx"), options)
    caches = {i.name: np.zeros((1, KV_HEADS, longest, SIZE), np.float32) for i in session.get_inputs() if i.name.startswith("past")}
    logits = np.zeros((1, 1, VOCABULARY), np.float32)

    binding = session.io_binding()
    for name, cache in caches.items():
        binding.bind_cpu_input(name, cache)
        binding.bind_output(name.replace("past_key_values", "present"), "cpu", 0, np.float32, cache.shape, cache.ctypes.data)
    binding.bind_output("logits", "cpu", 0, np.float32, logits.shape, logits.ctypes.data)

    def step(token, total):
        binding.bind_cpu_input("input_ids", np.array([[token]]))
        binding.bind_cpu_input("attention_mask", np.ones((1, total), np.int64))
        session.run_with_iobinding(binding)
        return int(logits.argmax())

    def decode(context, count):
        random = np.random.default_rng(context)
        for cache in caches.values():
            cache[:] = random.standard_normal(cache.shape)
        token, begin = 100, 0
        for i in range(count + 2):
            if i == 2:
                begin = time.perf_counter()
            token = step(token, context + i + 1)
        return (time.perf_counter() - begin) / count * 1e3
    return decode


def genai(folder, threads, longest):
    import onnxruntime_genai as og
    decoder = {"session_options": {"intra_op_num_threads": threads, "log_id": "decode", "provider_options": []}, "filename": "smollm_int4.onnx",
               "head_size": SIZE, "hidden_size": HEADS * SIZE, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
               "num_hidden_layers": LAYERS,
               "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask", "past_key_names": "past_key_values.%d.key",
                          "past_value_names": "past_key_values.%d.value"},
               "outputs": {"logits": "logits", "present_key_names": "present.%d.key", "present_value_names": "present.%d.value"}}
    config = {"model": {"type": "llama", "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2, "context_length": 8192,
                        "vocab_size": VOCABULARY, "decoder": decoder},
              "search": {"max_length": longest, "past_present_share_buffer": True, "do_sample": False, "min_length": longest}}
    with tempfile.TemporaryDirectory() as temporary:
        os.symlink(os.path.abspath(os.path.join(folder, "smollm_int4.onnx")), os.path.join(temporary, "smollm_int4.onnx"))
        with open(os.path.join(temporary, "genai_config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        model = og.Model(temporary)

    def decode(context, count):
        parameters = og.GeneratorParams(model)
        parameters.set_search_options(max_length=context + count + 3, min_length=context + count + 3)
        generator = og.Generator(model, parameters)
        generator.append_tokens(tokens(context))
        generator.generate_next_token()
        generator.generate_next_token()
        begin = time.perf_counter()
        for _ in range(count):
            generator.generate_next_token()
        return (time.perf_counter() - begin) / count * 1e3
    return decode


def llama(folder, threads, longest):
    import xllamacpp
    parameters = xllamacpp.CommonParams()
    parameters.model.path = os.path.join(folder, "smollm_q4_0.gguf")
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.n_ctx, parameters.n_parallel, parameters.warmup = longest, 1, False
    server = xllamacpp.Server(parameters)

    def decode(context, count):
        answer = server.handle_completions({"prompt": tokens(context), "n_predict": count + 1, "ignore_eos": True, "cache_prompt": False,
                                            "temperature": 0})
        answer = json.loads(answer) if isinstance(answer, str) else answer
        timings = answer["timings"]
        return timings["predicted_ms"] / (timings["predicted_n"] - 1)  # the first token comes with the prompt
    return decode


def serve(options):
    """The loop of a process: a line with a context and a number of tokens, an answer of milliseconds."""
    decode = {"kelp": kelp, "genai": genai, "llama": llama}[options.engine](options.models, int(options.threads), options.longest)
    print("ready", flush=True)
    for line in sys.stdin:
        context, count = map(int, line.split())
        print(f"{decode(context, count):.4f}", flush=True)


# ---------------------------------------------------------------- weights of llama.cpp

def to_q4_0(source, target):
    """Copies a GGUF file with all matrices as Q4_0: blocks of 32 with a half scale, and elements (code - 8) * scale."""
    sys.path.insert(0, os.path.join(ROOT, "tools"))
    import make_smollm
    import numpy as np
    file, keys = make_smollm.Gguf(source), make_smollm.Gguf(source)
    keys.at = 24  # what follows up to the table of tensors is copied
    for _ in range(len(file.values)):
        keys.text()
        keys.value(keys.scalar("I"))
    table, data = b"", b""
    for name, (shape, _, _) in file.places.items():
        array = file.tensor(name)
        kind = 2 if len(shape) == 2 else 0
        if kind == 2:
            blocks = array.reshape(-1, 32)
            extreme = np.take_along_axis(blocks, np.abs(blocks).argmax(1)[:, None], 1)
            scale = (extreme / -8).astype(np.float16)
            inverse = np.where(scale != 0, 1 / np.where(scale != 0, scale.astype(np.float32), 1), 0)
            codes = np.clip(np.floor(blocks * inverse + 8.5), 0, 15).astype(np.uint8)
            block = np.concatenate([scale.view(np.uint8).reshape(-1, 2), codes[:, :16] | codes[:, 16:] << 4], 1)
            raw = block.tobytes()
        else:
            raw = np.ascontiguousarray(array, np.float32).tobytes()
        table += struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", len(shape))
        table += struct.pack(f"<{len(shape)}Q", *shape[::-1]) + struct.pack("<IQ", kind, len(data))
        data += raw + b"\0" * (-len(raw) % 32)
    head = source[:keys.at] + table
    with open(target + ".part", "wb") as out:
        out.write(head + b"\0" * (-len(head) % 32) + data)
    os.replace(target + ".part", target)


# ---------------------------------------------------------------- the run

def prepare(options):
    sys.path.insert(0, os.path.join(ROOT, "tools"))
    import make_smollm
    missing = [name for name in ("smollm_int4.onnx", "smollm_q4_0.gguf") if not os.path.exists(os.path.join(options.models, name))]
    if missing:
        with tempfile.TemporaryDirectory() as temporary:
            data = make_smollm.download(temporary)
        if "smollm_int4.onnx" in missing:
            make_smollm.make(data, options.models)
        to_q4_0(bytes(data), os.path.join(options.models, "smollm_q4_0.gguf"))
    if not os.path.exists(os.path.join(options.venv, "bin", "python")):
        subprocess.run([sys.executable, "-m", "venv", options.venv], check=True)
        subprocess.run([os.path.join(options.venv, "bin", "pip"), "install", "-q", "--disable-pip-version-check", *PEERS], check=True)


def measure(options, threads):
    contexts, times, running = list(map(int, options.context.split(","))), {}, {}
    errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # llama.cpp logs every request
    longest = max(contexts) + options.tokens + 16
    for engine in options.engines.split(","):
        python = sys.executable if engine == "kelp" else os.path.join(options.venv, "bin", "python")
        running[engine] = subprocess.Popen([python, os.path.abspath(__file__), "--engine", engine, "--models", options.models, "--threads", str(threads),
                                            "--longest", str(longest)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                                           env={**os.environ, "PYTHONPATH": options.package if engine == "kelp" else ""})
        if running[engine].stdout.readline() != "ready\n":
            errors.seek(0)
            raise SystemExit(f"{engine} did not start: {errors.read()[-500:]}")
    for turn in range(options.rounds):
        for context in contexts:
            for engine in sorted(running, reverse=turn % 2 == 1):
                running[engine].stdin.write(f"{context} {options.tokens}\n")
                running[engine].stdin.flush()
                times.setdefault((context, engine), []).append(float(running[engine].stdout.readline()))
    for process in running.values():
        process.stdin.close()
        process.wait()
    return [{"engine": engine, "threads": threads, "context": context, "ms": values} for (context, engine), values in times.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=os.path.join(ROOT, "build/zoo"))
    parser.add_argument("--package", default=os.path.join(ROOT, "build/release/python"))
    parser.add_argument("--venv", default=os.path.join(ROOT, "build/venv-language"))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--context", default="256,1024")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--json")
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    parser.add_argument("--longest", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine:
        serve(options)
        return
    prepare(options)
    rows = [row for threads in map(int, options.threads.split(",")) for row in measure(options, threads)]
    print("| context | threads | engine | ms a token | range | tokens/s |\n|--:|--:|---|--:|--:|--:|")
    for row in sorted(rows, key=lambda row: (row["context"], row["threads"])):
        median = statistics.median(row["ms"])
        print(f"| {row['context']} | {row['threads']} | {ENGINES[row['engine']]} | {median:.2f} | {min(row['ms']):.2f} to {max(row['ms']):.2f} | "
              f"{1e3 / median:.0f} |")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
