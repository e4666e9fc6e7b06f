/* SPDX-License-Identifier: Apache-2.0 */
/* Named parameters of a request or a response. The list keeps its memory when it is cleared. Not
 * thread-safe. */
#ifndef KELP_SERVER_CORE_PARAMS_H_
#define KELP_SERVER_CORE_PARAMS_H_

#include "server/core/text.h"

#include <triton/core/tritonserver.h>

/* A name and a value of one type. */
typedef struct kelp_param {
    kelp_text name;
    kelp_text string; /* STRING */
    TRITONSERVER_ParameterType type;
    int64_t i64;
    double f64;
    bool boolean;
} kelp_param;

/* A list of parameters with unique names. */
typedef struct kelp_params {
    kelp_param *items; /* elements from `count` on are unused, and keep their memory */
    size_t count;
    size_t capacity;
} kelp_params;

void kelp_params_clear(kelp_params *params);
void kelp_params_deinit(kelp_allocator allocator, kelp_params *params);
/* The maximum number of parameters of a list. Names are compared with all others, so that the time
 * for a list from a client must have a limit. */
#define KELP_PARAMS_MAX 1024

/* Adds a parameter. INVALID_ARGUMENT if the name exists or the list has KELP_PARAMS_MAX parameters.
 * The pointer is valid until the next add. */
kelp_status *kelp_params_add(kelp_allocator allocator, kelp_params *params, const char *name,
                             TRITONSERVER_ParameterType type, kelp_param **out) KELP_MUST_USE;
/* Adds a parameter of type STRING. */
kelp_status *kelp_params_add_string(kelp_allocator allocator, kelp_params *params, const char *name,
                                    const char *value) KELP_MUST_USE;
/* Returns the value as the C API returns it: the text itself for STRING, otherwise a pointer to the
 * value; NULL for BYTES. */
const void *kelp_param_value(const kelp_param *param);

#endif
