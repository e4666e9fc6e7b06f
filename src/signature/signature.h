/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of kernels: parsed once, then checked in every call without allocation. */
#ifndef KELP_SIGNATURE_SIGNATURE_H_
#define KELP_SIGNATURE_SIGNATURE_H_

#include "base/arena.h"

#include <kelp/kernel.h>

#define KELP_SIGNATURE_PARAMS 32
#define KELP_SIGNATURE_SYMBOLS 32

/* A dimension: a number (>= 0), any size (-1), or symbol n (-2 - n). */
typedef int64_t kelp_signature_dim;

typedef struct kelp_signature_param {
    const char *name;
    kelp_param_direction direction;
    kelp_arg_kind kind;
    kelp_dtype dtype;   /* INVALID: any type, or a letter */
    DLDataType dl;      /* the same as dtype */
    int letter;         /* 0 to 25: a type variable; or -1 */
    bool strided;       /* gaps between elements are allowed */
    bool data_only;     /* "*": a bare function receives the address of the first element */
    int symbol;         /* of an integer with the name of a dimension; or -1 */
    bool leading;       /* the shape begins with "..." */
    int leading_symbol; /* the name after "...", or -1 */
    int32_t dim_count;
    kelp_signature_dim *dims;
} kelp_signature_param;

typedef struct kelp_signature {
    int32_t count;
    int32_t symbol_count, leading_count;
    kelp_signature_param *params;
    const char *symbols[KELP_SIGNATURE_SYMBOLS]; /* names of dimensions */
    const char *leadings[KELP_SIGNATURE_SYMBOLS];
    int32_t counter_count; /* parameters with a symbol */
    int32_t counters[KELP_SIGNATURE_PARAMS];
} kelp_signature;

/* The values of names in one call. */
typedef struct kelp_signature_binding {
    uint32_t dims_known, leadings_known, letters_known; /* a bit for each */
    int64_t dims[KELP_SIGNATURE_SYMBOLS];
    const int64_t *leadings[KELP_SIGNATURE_SYMBOLS];
    int32_t leading_ranks[KELP_SIGNATURE_SYMBOLS];
    DLDataType letters[26];
} kelp_signature_binding;

/* Parses a signature. Names are allocated in the arena. Fails with INVALID_ARGUMENT and the
 * position in the text. */
kelp_status *kelp_signature_parse(kelp_arena *arena, const char *text,
                                  kelp_signature *out) KELP_MUST_USE;
/* Unbinds all names. */
static inline void kelp_signature_begin(kelp_signature_binding *out) {
    out->dims_known = out->leadings_known = out->letters_known = 0;
}
/* Checks a tensor against its parameter, and binds the names in the parameter. */
kelp_status *kelp_signature_check_tensor(const kelp_signature *signature, int32_t index,
                                         const DLTensor *tensor,
                                         kelp_signature_binding *inout) KELP_MUST_USE;
/* Binds the dimension that has the same name as an integer parameter. */
kelp_status *kelp_signature_bind_counter(const kelp_signature *signature, int32_t index,
                                         int64_t value,
                                         kelp_signature_binding *inout) KELP_MUST_USE;
/* Checks all arguments of a call. Tensors must be on `device`. */
kelp_status *kelp_signature_check(const kelp_signature *signature, const kelp_kernel_arg *args,
                                  int32_t count, DLDevice device) KELP_MUST_USE;
/* Returns the shape of parameter `index`. Returns false if a dimension or the type is not bound. */
bool kelp_signature_shape(const kelp_signature *signature, int32_t index,
                          const kelp_signature_binding *binding, int32_t *out_rank,
                          int64_t *out_shape, DLDataType *out_dtype);

#endif
