/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of TensorRT: an object that is both an ILogger and an IErrorRecorder. Errors and
 * warnings are stored until the operation that caused them is reported as a status. All messages
 * are also passed to a callback.
 *
 * Thread-safe: the library calls it on several threads at once. Use separate logs for objects that
 * are used at the same time, so that their messages do not mix: the logger of builders and
 * runtimes, the error recorder of engines and contexts.
 */
#ifndef KELP_TENSORRT_LOG_H_
#define KELP_TENSORRT_LOG_H_

#include "tensorrt/tables/calls.h"

#include <kelp/allocator.h>

typedef struct trt_log trt_log;

/* Receives a message; `text` is valid during the call. Called on any thread. It must not call
 * TensorRT. */
typedef void (*trt_log_fn)(void *userp, trt_severity severity, const char *text);

/* Creates a log. `fn` (may be NULL) receives messages of severities up to `max_severity`
 * (TRT_SEVERITY_VERBOSE: all). The log must outlive the objects that use it. */
kelp_status *trt_log_create(kelp_allocator allocator, trt_severity max_severity, trt_log_fn fn,
                            void *userp, trt_log **out) KELP_MUST_USE;
void trt_log_destroy(trt_log *log);

/* Return the interfaces for the library. They are part of the log. */
trt_logger *trt_log_logger(trt_log *log);
trt_error_recorder *trt_log_recorder(trt_log *log);

/* Clears the stored messages. Call it before an operation. */
void trt_log_clear(trt_log *log);
/* Returns true if an error was logged or recorded since then. */
bool trt_log_has_errors(trt_log *log);

/* Returns a failure with the message `format`. Its cause is the text of all errors since
 * trt_log_clear (or of warnings, without errors), which are then cleared. The code follows the
 * library's error code, or is `code` without one. */
kelp_status *trt_log_failure(trt_log *log, kelp_code code, const char *format, ...)
    KELP_PRINTF(3, 4) KELP_MUST_USE;

/* Returns the stored warnings, one per line; "" without warnings. Free it with kelp_free_string. */
kelp_status *trt_log_warnings(trt_log *log, char **out) KELP_MUST_USE;

#endif
