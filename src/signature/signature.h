/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures of kernels and operators. They are parsed once. Calls with complete tensors are
 * checked without allocation (check.c). Nodes of a graph are checked, and their outputs inferred,
 * with what is known of their inputs (facts.c).
 */
#ifndef KELP_SIGNATURE_SIGNATURE_H_
#define KELP_SIGNATURE_SIGNATURE_H_

#include "base/arena.h"

#include <kelp/graph.h>
#include <kelp/kernel.h>

#define KELP_SIGNATURE_PARAMS 32
#define KELP_SIGNATURE_SYMBOLS 32

/* A dimension: a number (>= 0), any size (-1), or symbol n (-2 - n). */
typedef int64_t kelp_signature_dim;

typedef struct kelp_signature_param {
    const char *name;
    kelp_param_direction direction;
    kelp_arg_kind kind;  /* 0: an attribute of an operator that is no scalar */
    kelp_attr_type attr; /* NONE for a tensor: the type of the attribute */
    bool optional;       /* may be omitted, with or without a default */
    bool variadic;       /* one tensor or more, or any number if optional */
    bool has_default;
    union {
        int64_t i;
        double f;
        const char *s;
    } fallback;         /* the default, by kind */
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

/* The types that a letter may stand for. */
typedef struct kelp_signature_types {
    uint32_t dtypes; /* bit n: kelp_dtype n; 0: any */
    int32_t dl_count;
    const DLDataType *dl; /* those with a DLPack form */
} kelp_signature_types;

typedef struct kelp_signature {
    int32_t count;
    bool has_defaults; /* some parameter has a default */
    int32_t symbol_count, leading_count;
    kelp_signature_param *params;
    const char *symbols[KELP_SIGNATURE_SYMBOLS]; /* names of dimensions */
    const char *leadings[KELP_SIGNATURE_SYMBOLS];
    int32_t counter_count; /* parameters with a symbol */
    int32_t counters[KELP_SIGNATURE_PARAMS];
    kelp_signature_types letters[26];
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
/* Returns true if the value is valid for an integer type of a scalar. */
static inline bool kelp_signature_integer_fits(kelp_dtype dtype, int64_t value) {
    return dtype == KELP_I32    ? value >= INT32_MIN && value <= INT32_MAX
           : dtype == KELP_U32  ? value >= 0 && value <= UINT32_MAX
           : dtype == KELP_BOOL ? value == 0 || value == 1
                                : true;
}
/* Fails with INVALID_ARGUMENT if the signature has parameters that only operators have. */
kelp_status *kelp_signature_check_kernel(const kelp_signature *signature) KELP_MUST_USE;
/* Returns true if the type and the shape of each output follow from the inputs and attributes. */
bool kelp_signature_determines_outputs(const kelp_signature *signature);

/* ---- calls with complete tensors ---- */

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
/* Returns `args`, or if some are omitted, a copy in `out` with the defaults. The arguments match.
 */
const kelp_kernel_arg *kelp_signature_fill(const kelp_signature *signature,
                                           const kelp_kernel_arg *args, kelp_kernel_arg *out);
/* Returns the shape of parameter `index`. Returns false if a dimension or the type is not bound. */
bool kelp_signature_shape(const kelp_signature *signature, int32_t index,
                          const kelp_signature_binding *binding, int32_t *out_rank,
                          int64_t *out_shape, DLDataType *out_dtype);

/* ---- partial knowledge ---- */

/* What is known of a tensor before a run. */
typedef struct kelp_signature_view {
    kelp_dtype dtype;                   /* INVALID: not known */
    int32_t rank;                       /* -1: not known */
    int64_t shape[KELP_MAX_RANK];       /* -1: dynamic */
    const char *symbols[KELP_MAX_RANK]; /* names of dynamic dimensions; may be NULL */
} kelp_signature_view;

/* What is known of the names in a signature. */
typedef struct kelp_signature_facts {
    kelp_dtype letters[26];                      /* INVALID: not known */
    int64_t dims[KELP_SIGNATURE_SYMBOLS];        /* -1: not known */
    const char *symbols[KELP_SIGNATURE_SYMBOLS]; /* names of dynamic dimensions; may be NULL */
    kelp_signature_view leadings[KELP_SIGNATURE_SYMBOLS];
} kelp_signature_facts;

/* The reason of a mismatch: "expected …, found …". */
typedef struct kelp_signature_problem {
    char text[400];
} kelp_signature_problem;

/* Writes the names of types, such as "float32 or float16". */
void kelp_signature_list_types(uint32_t dtypes, char *out, size_t capacity);
/* Begins without facts. */
void kelp_signature_facts_init(const kelp_signature *signature, kelp_signature_facts *out);
/* Checks a tensor against parameter `index` and adds what follows. Returns false and sets the
 * problem if it does not match. */
bool kelp_signature_learn(const kelp_signature *signature, int32_t index,
                          const kelp_signature_view *view, kelp_signature_facts *inout,
                          kelp_signature_problem *out_problem);
/* Adds the value of an integer parameter, which is checked, and of the dimension of its name. */
bool kelp_signature_learn_integer(const kelp_signature *signature, int32_t index, int64_t value,
                                  kelp_signature_facts *inout, kelp_signature_problem *out_problem);
/* Returns what the facts say of a tensor parameter. */
void kelp_signature_tell(const kelp_signature *signature, int32_t index,
                         const kelp_signature_facts *facts, kelp_signature_view *out);

#endif
