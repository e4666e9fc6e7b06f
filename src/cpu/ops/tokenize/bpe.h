/* SPDX-License-Identifier: Apache-2.0 */
/* BPE: shared by GPT2Tokenizer and the like, and HfJsonTokenizer. */
#ifndef KELP_CPU_OPS_TOKENIZE_BPE_H_
#define KELP_CPU_OPS_TOKENIZE_BPE_H_

#include "cpu/ops/tokenize/tokenize.h"
#include "tokenizer/pretokens.h"

typedef struct kelp_bpe_model {
    kelp_tokenizer *tokenizer;
    int64_t start, end, padding; /* ids */
    int64_t padding_length;      /* -1: that of the longest text */
    bool adds_start, adds_end;   /* sequences begin and end with tokens */
    bool is_clip;
    bool is_marked; /* tokens have marks instead of spaces */
} kelp_bpe_model;

/* `reshape` of kernels whose state begins with a kelp_bpe_model. Inputs: texts, and a flag: the
 * tokens that begin and end sequences are added (optional). Outputs: ids, attention mask, offsets.
 */
kelp_status *kelp_bpe_reshape(const void *state, kelp_op_args *args);

#endif
