/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of the test backend. */
#ifndef KELP_TESTS_SDK_BACKEND_H_
#define KELP_TESTS_SDK_BACKEND_H_

#include <kelp/backend.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Aborts the test process if the condition is false, and prints the location. */
#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                      \
        }                                                                                 \
    } while (0)

/* Returns true if a status has this code and its message contains the text. Frees it. */
bool fails_with(kelp_status *take_status, kelp_code code, const char *text);

kelp_status *check_inputs(kelp_backend_request *request);
kelp_status *check_outputs(kelp_backend_request *request);
kelp_status *check_parameters(kelp_backend_request *request);
kelp_status *check_config(kelp_backend_model *model);

#endif
