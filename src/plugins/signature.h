/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of kernels: read once, then checked at every call without allocating. */
#ifndef KELP_PLUGINS_SIGNATURE_H_
#define KELP_PLUGINS_SIGNATURE_H_

#include "base/arena.h"

#include <kelp/kernel.h>

#define KELP_SIGNATURE_PARAMS 32
#define KELP_SIGNATURE_SYMBOLS 32

/* An extent: a number (>= 0), any (-1), or symbol n (-2 - n). */
typedef int64_t kelp_signature_extent;

typedef struct kelp_signature_param {
    const char *name;
    kelp_param_direction direction;
    kelp_arg_kind kind;
    kelp_dtype dtype;   /* INVALID: any, or a letter */
    DLDataType dl;      /* of dtype */
    int letter;         /* 0 … 25, or -1 */
    bool strided;       /* gaps between elements are fine */
    bool data_only;     /* "*": a bare function is given the first element's address */
    int symbol;         /* of an integer with an extent's name, which has its value; or -1 */
    bool leading;       /* "..." comes first */
    int leading_symbol; /* or -1 */
    int32_t extent_count;
    kelp_signature_extent *extents;
} kelp_signature_param;

typedef struct kelp_signature {
    int32_t count;
    int32_t symbol_count, leading_count;
    kelp_signature_param *params;
    const char *symbols[KELP_SIGNATURE_SYMBOLS]; /* names of extents */
    const char *leadings[KELP_SIGNATURE_SYMBOLS];
    int32_t counter_count; /* parameters with a symbol */
    int32_t counters[KELP_SIGNATURE_PARAMS];
} kelp_signature;

/* What names stand for in one call. */
typedef struct kelp_signature_binding {
    uint32_t extents_known, leadings_known, letters_known; /* a bit for each */
    int64_t extents[KELP_SIGNATURE_SYMBOLS];
    const int64_t *leadings[KELP_SIGNATURE_SYMBOLS];
    int32_t leading_ranks[KELP_SIGNATURE_SYMBOLS];
    DLDataType letters[26];
} kelp_signature_binding;

/* INVALID_ARGUMENT with the place in the text. Names lie in the arena. */
kelp_status *kelp_signature_parse(kelp_arena *arena, const char *text,
                                  kelp_signature *out) KELP_MUST_USE;
static inline void kelp_signature_begin(kelp_signature_binding *out) {
    out->extents_known = out->leadings_known = out->letters_known = 0;
}
/* One tensor against its parameter; what its names stand for is bound. */
kelp_status *kelp_signature_check_tensor(const kelp_signature *signature, int32_t index,
                                         const DLTensor *tensor,
                                         kelp_signature_binding *inout) KELP_MUST_USE;
/* An integer with an extent's name stands for that extent. */
kelp_status *kelp_signature_bind_counter(const kelp_signature *signature, int32_t index,
                                         int64_t value,
                                         kelp_signature_binding *inout) KELP_MUST_USE;
/* All arguments of a call; `device` is where tensors must lie. */
kelp_status *kelp_signature_check(const kelp_signature *signature, const kelp_kernel_arg *args,
                                  int32_t count, DLDevice device) KELP_MUST_USE;
/* Shape of parameter `index` as far as it is bound; false when some extent or the dtype is not. */
bool kelp_signature_shape(const kelp_signature *signature, int32_t index,
                          const kelp_signature_binding *binding, int32_t *out_rank,
                          int64_t *out_shape, DLDataType *out_dtype);

#endif
