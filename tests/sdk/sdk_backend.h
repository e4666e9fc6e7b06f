/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the test's backend share. */
#ifndef KELP_TESTS_KIT_BACKEND_H_
#define KELP_TESTS_KIT_BACKEND_H_

#include <kelp/backend.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A broken promise of the kit ends the test's process, with the place. */
#define PROMISE(condition)                                                          \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                \
        }                                                                           \
    } while (0)

/* Whether a status has this code and a message that contains the text; frees it. */
bool refused(kelp_status *take_status, kelp_code code, const char *text);

kelp_status *check_inputs(kelp_backend_request *request);
kelp_status *check_outputs(kelp_backend_request *request);
kelp_status *check_parameters(kelp_backend_request *request);
kelp_status *check_config(kelp_backend_model *model);

#endif
