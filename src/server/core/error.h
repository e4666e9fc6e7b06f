/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion between kelp_status and TRITONSERVER_Error. A TRITONSERVER_Error is a kelp_status;
 * only the pointer's type changes. Thread-safe.
 */
#ifndef KELP_SERVER_CORE_ERROR_H_
#define KELP_SERVER_CORE_ERROR_H_

#include <kelp/status.h>
#include <triton/core/tritonserver.h>

/* Converts a status for callers of the C API. The messages of its causes are joined into one
 * message, because callers can read only one. */
TRITONSERVER_Error *kelp_to_error(kelp_status *take_status);

/* Converts an error that the library or a plug-in created. */
static inline kelp_status *kelp_from_error(TRITONSERVER_Error *error) {
    return (kelp_status *)error;
}

/* Returns INVALID_ARG: "FUNCTION: 'what' must not be NULL". If `what` is NULL, the message says
 * that an output argument is NULL. */
TRITONSERVER_Error *kelp_null_error(const char *function, const char *what);

/* Frees an error with delay: the last 64 discarded errors stay readable, because existing backends
 * read an error after they have deleted it, or delete it twice. NULL is ignored. */
void kelp_error_discard(TRITONSERVER_Error *error);

#endif
