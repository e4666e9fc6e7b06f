/* SPDX-License-Identifier: Apache-2.0 */
/* ai.onnx.contrib BertTokenizerDecoder. Source: onnxruntime-extensions, docs/custom_ops.md. */
#include "base/alloc.h"
#include "cpu/ops/tokenize/tokenize.h"

#define SPECIAL_COUNT 4

typedef struct decoder {
    kelp_tokenizer *tokenizer;
    int64_t special[SPECIAL_COUNT];
    bool skip_special, clean_up, use_indices;
} decoder;

static void decoder_deinit(void *state) {
    decoder *d = state;
    kelp_tokenizer_destroy(d->tokenizer);
}

static kelp_status *decoder_read(void *state, const kelp_node *node, kelp_allocator allocator) {
    decoder *d = state;
    kelp_wordpiece_options options = {.separators = "\n"};
    KELP_TRY(kelp_text_required_attr(node, "vocab_file", &options.vocabulary));
    options.unknown = kelp_text_attr(node, "unk_token", "[UNK]");
    options.continuation = kelp_text_attr(node, "suffix_indicator", "##");
    d->use_indices = kelp_flag_attr(node, "use_indices", false);
    d->skip_special = kelp_flag_attr(node, "skip_special_tokens", false);
    d->clean_up = kelp_flag_attr(node, "clean_up_tokenization_spaces", true);
    kelp_status *status = kelp_wordpiece_create(allocator, &options, &d->tokenizer);
    if (status != NULL)
        return KELP_ANNOTATE(status, "node '%s' (%s): attribute 'vocab_file'", kelp_node_name(node),
                             kelp_node_op_type(node));
    /* as in onnxruntime-extensions: the padding token takes the place of a separator before it in
     * the vocabulary, and id -1 is special */
    int64_t separator = kelp_tokenizer_id(d->tokenizer, kelp_text_attr(node, "sep_token", "[SEP]"));
    int64_t padding = kelp_tokenizer_id(d->tokenizer, kelp_text_attr(node, "pad_token", "[PAD]"));
    d->special[0] = KELP_MAX(separator, padding);
    d->special[1] = kelp_tokenizer_id(d->tokenizer, kelp_text_attr(node, "cls_token", "[CLS]"));
    d->special[2] = kelp_tokenizer_id(d->tokenizer, kelp_text_attr(node, "mask_token", "[MASK]"));
    d->special[3] = -1;
    return NULL;
}

KELP_STATE(decoder, decoder, decoder_read, decoder_deinit)

static kelp_status *decode(const decoder *d, const kelp_op_env *env, const int64_t *ids,
                           size_t count, kelp_string *out) {
    kelp_decode_options options = {d->special, d->skip_special ? SPECIAL_COUNT : 0, d->clean_up};
    kelp_buf text;
    kelp_buf_init(&text, kelp_run_allocator(env));
    KELP_TRY(kelp_tokenizer_decode(d->tokenizer, ids, count, &options, &text));
    *out = (kelp_string){text.length > 0 ? text.data : "", text.length};
    return NULL;
}

/* Decodes the range of ids of each row of the second input. */
static kelp_status *decode_ranges(const decoder *d, kelp_op_args *args) {
    const kelp_tensor *ids = args->inputs[0], *ranges = args->inputs[1];
    int64_t count = ranges->rank > 0 ? ranges->shape[0] : 0, total = kelp_tensor_elements(ids);
    kelp_string *out = NULL;
    if (kelp_tensor_elements(ranges) == 0)
        count = 0;
    KELP_TRY(kelp_run_array(args->env, (size_t)count, sizeof *out, (void **)&out));
    for (int64_t i = 0; i < count; i++) {
        const int64_t *range = (const int64_t *)ranges->data + 2 * i;
        if (range[0] < 0 || range[1] < range[0] || range[1] > total)
            return KELP_TEXT_ERROR(args->node,
                                   "row %lld of input 1 is out of range: expected a range in "
                                   "%lld ids, found %lld to %lld",
                                   (long long)i, (long long)total, (long long)range[0],
                                   (long long)range[1]);
        KELP_TRY(decode(d, args->env, (const int64_t *)ids->data + range[0],
                        (size_t)(range[1] - range[0]), &out[i]));
    }
    /* without ranges, onnxruntime-extensions returns one dimension of no text */
    return kelp_results_set(args, 0, KELP_STRING, 1, &count, out);
}

static kelp_status *decoder_reshape(const void *state, kelp_op_args *args) {
    const decoder *d = state;
    KELP_TRY(kelp_ops_check(args, 2));
    KELP_TRY(kelp_text_check(args, 2, KELP_I64));
    const kelp_tensor *ids = args->inputs[0], *ranges = args->inputs[1];
    if (ids->rank != 1 && !(ids->rank == 2 && ids->shape[0] == 1))
        return kelp_ops_bad_shapes(args, ids, NULL, "expected [N] or [1,N]");
    if (d->use_indices && kelp_tensor_elements(ranges) > 0 &&
        !(ranges->rank == 2 && ranges->shape[1] == 2))
        return kelp_ops_bad_shapes(args, ranges, NULL, "expected [N,2]");
    if (!kelp_results_begin(args))
        return NULL;
    if (d->use_indices)
        return decode_ranges(d, args);
    kelp_string *out = NULL;
    KELP_TRY(kelp_run_array(args->env, 1, sizeof *out, (void **)&out));
    KELP_TRY(decode(d, args->env, ids->data, (size_t)kelp_tensor_elements(ids), out));
    return kelp_results_set(args, 0, KELP_STRING, 1, (const int64_t[]){1}, out);
}

KELP_STATE_KERNEL(BertTokenizerDecoder, decoder, sizeof(kelp_results), decoder_reshape,
                  kelp_results_invoke);
