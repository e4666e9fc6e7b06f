# SPDX-License-Identifier: Apache-2.0
"""Writes tiny transformers with random weights as ONNX models to the directory that its only argument names, as optimum exports them.

GPT-2 and Llama with and without past key values; T5 as an encoder, a decoder, a decoder with past key values, and both decoders in one
model (the operator If). The weights come from a fixed seed. The models have no tokenizer.
"""
import os
import sys

import torch
from optimum.exporters.onnx import onnx_export_from_model
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration

TOKENS = {"vocab_size": 120, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
MODELS = {
    "gpt2": ("text-generation-with-past", GPT2LMHeadModel, GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=128, **TOKENS)),
    "llama": ("text-generation-with-past", LlamaForCausalLM, LlamaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                                                               num_key_value_heads=2, max_position_embeddings=128, **TOKENS)),
    "t5": ("text2text-generation-with-past", T5ForConditionalGeneration, T5Config(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
                                                                              decoder_start_token_id=0, **TOKENS)),
}


def main():
    for name, (task, kind, config) in MODELS.items():
        torch.manual_seed(len(name))
        model = kind(config).eval()
        for weight in model.parameters():
            if weight.dim() > 1:  # larger than the initial ones, so that the tokens differ
                torch.nn.init.normal_(weight, std=0.3)
        onnx_export_from_model(model, os.path.join(sys.argv[1], name), task=task, do_validation=False)
        if task == "text-generation-with-past":
            onnx_export_from_model(model, os.path.join(sys.argv[1], name + "_without_past"), task="text-generation", do_validation=False)


if __name__ == "__main__":
    main()
