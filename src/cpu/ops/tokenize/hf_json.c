/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ai.onnx.contrib HfJsonTokenizer: the tokenizer of tokenizer.json of transformers. Source:
 * onnxruntime-extensions, operators/tokenizer.
 */
#include "cpu/ops/tokenize/bpe.h"

typedef struct hf_json {
    kelp_bpe_model bpe;
    kelp_hf_model model;
} hf_json;

static kelp_status *hf_json_read(void *state, const kelp_node *node, kelp_allocator allocator) {
    hf_json *h = state;
    kelp_str config, tokenizer;
    kelp_hf_model model;
    KELP_TRY(kelp_text_required_attr(node, "tokenizer_config", &config));
    KELP_TRY(kelp_text_required_attr(node, "tokenizer_vocab", &tokenizer));
    kelp_status *status = kelp_hf_model_create(allocator, config, tokenizer, &model);
    h->bpe = (kelp_bpe_model){.tokenizer = model.tokenizer,
                              .start = model.start,
                              .end = model.end,
                              .padding = model.padding,
                              .padding_length = -1,
                              .adds_start = model.adds_start,
                              .adds_end = model.adds_end,
                              .is_clip = model.is_clip};
    h->model = model;
    return status == NULL ? NULL
                          : KELP_ANNOTATE(status, "node '%s' (%s)", kelp_node_name(node),
                                          kelp_node_op_type(node));
}

static void hf_json_deinit(void *state) {
    hf_json *h = state;
    kelp_tokenizer_destroy(h->bpe.tokenizer);
}
KELP_STATE(hf_json, hf_json, hf_json_read, hf_json_deinit)

/* Unigram models have one text, and only ids. A text without words has no tokens at all. */
static kelp_status *encode_unigram(const kelp_hf_model *model, kelp_op_args *args) {
    kelp_token_list tokens;
    int64_t *ids = NULL, count = 0;
    kelp_token_list_init(&tokens, kelp_run_allocator(args->env));
    kelp_status *status =
        kelp_tokenizer_encode(model->tokenizer, kelp_text_of(args->inputs[0]->data), &tokens);
    if (status != NULL)
        return KELP_ANNOTATE(status, "node '%s' (%s)", kelp_node_name(args->node),
                             kelp_node_op_type(args->node));
    KELP_TRY(kelp_run_array(args->env, tokens.count + 4, sizeof *ids, (void **)&ids));
    if (model->adds_start)
        ids[count++] = model->start;
    for (size_t i = 0; i < tokens.count; i++)
        if (tokens.items[i].id != model->dropped)
            ids[count++] = tokens.items[i].id;
    for (size_t i = 0; i < model->suffix_count; i++)
        ids[count++] = model->suffix[i];
    if (model->adds_end)
        ids[count++] = model->end;
    if (tokens.count == 0)
        count = 0;
    return kelp_results_set(args, 0, KELP_I64, 1, &count, ids);
}

static kelp_status *hf_json_reshape(const void *state, kelp_op_args *args) {
    const hf_json *h = state;
    if (!h->model.is_unigram)
        return kelp_bpe_reshape(state, args);
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    KELP_TRY(kelp_text_check(args, 1, KELP_STRING));
    if (args->inputs[0]->rank != 1 || args->inputs[0]->shape[0] != 1)
        return kelp_ops_bad_shapes(args, args->inputs[0], NULL, "expected a list of one text");
    for (int32_t i = 1; i < args->output_count; i++)
        if (kelp_ops_out(args, i) != NULL)
            return KELP_TEXT_ERROR(args->node, "output %d is unsupported for a unigram model", i);
    return kelp_results_begin(args) ? encode_unigram(&h->model, args) : NULL;
}
KELP_STATE_KERNEL(HfJsonTokenizer, hf_json, sizeof(kelp_results), hf_json_reshape,
                  kelp_results_invoke);
