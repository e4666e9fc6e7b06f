/* SPDX-License-Identifier: Apache-2.0 */
/* The backend "exit": an execution ends the process. */
#include <kelp/backend.h>

#include <stdlib.h>

static kelp_status *execute_one(kelp_backend_instance *instance, kelp_backend_request *request) {
    (void)instance;
    (void)request;
    exit(0);
}

static const kelp_backend_definition definition = {
    .struct_size = sizeof definition,
    .name = "exit",
    .execute_one = execute_one,
};
KELP_TRITON_BACKEND(definition)
