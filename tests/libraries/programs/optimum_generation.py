# SPDX-License-Identifier: Apache-2.0
"""optimum: tokens that tiny language models generate, greedily, by beams and by sampling, with and without bindings and past key values.

KELP_TINY: a directory with the models of tiny_transformers.py.
"""
import os

import results
import torch
from optimum.onnxruntime import ORTModelForCausalLM, ORTModelForSeq2SeqLM

WAYS = {"greedy": {"repetition_penalty": 1.3}, "beams": {"num_beams": 3, "num_return_sequences": 2}, "sampled": {"do_sample": True, "top_k": 8, "temperature": 1.5}}
PROMPTS = torch.tensor([[0, 0, 11, 37, 5, 90], [17, 3, 44, 8, 101, 62]])
MASK = (PROMPTS != 0).long()


def generate(model, prompts, mask):
    """Returns the tokens by way of generation."""
    found = {}
    for way, options in WAYS.items():
        torch.manual_seed(7)
        found[way] = model.generate(prompts, attention_mask=mask, max_new_tokens=20, min_new_tokens=12, **options).tolist()
    return found


directory = os.environ["KELP_TINY"]
found = {}
for name in ("gpt2", "llama"):
    for binding in (False, True):
        for cache in (True, False):
            model = ORTModelForCausalLM.from_pretrained(f"{directory}/{name}{'' if cache else '_without_past'}", use_cache=cache, use_io_binding=binding)
            assert (model.use_io_binding, model.can_use_cache) == (binding, cache)
            found[f"{name} binding={binding} cache={cache}"] = generate(model, PROMPTS, MASK)
            found[f"{name} binding={binding} cache={cache} logits"] = model(PROMPTS, attention_mask=MASK).logits[:, -1].tolist()
for binding in (False, True):
    for merged in (True, False):
        model = ORTModelForSeq2SeqLM.from_pretrained(f"{directory}/t5", use_merged=merged, use_io_binding=binding)
        assert (model.use_io_binding, model.decoder.is_merged) == (binding, merged)
        found[f"t5 binding={binding} merged={merged}"] = generate(model, PROMPTS, MASK)
results.save(**found)
