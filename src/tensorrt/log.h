/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What TensorRT says: one object that the library sees as an ILogger and as an IErrorRecorder.
 * Errors and warnings are kept until the operation that caused them is reported as a status;
 * every message goes to a callback as well.
 *
 * Threads: the library calls from any thread, several at once; so may the callers of the functions
 * below. Give each object that works at the same time as others a log of its own, so that messages
 * do not mix: builders and runtimes through their logger, engines and contexts through their
 * error recorder.
 */
#ifndef KELP_TENSORRT_LOG_H_
#define KELP_TENSORRT_LOG_H_

#include "tensorrt/tables/calls.h"

#include <kelp/allocator.h>

typedef struct trt_log trt_log;

/* `text` lives for the call. Any thread; it must not call into TensorRT. */
typedef void (*trt_log_fn)(void *userp, trt_severity severity, const char *text);

/* `fn` may be NULL. It gets messages of severities up to `most` (TRT_SEVERITY_VERBOSE: all). The
 * log must outlive each object that was given it. */
kelp_status *trt_log_create(kelp_allocator allocator, trt_severity most, trt_log_fn fn, void *userp,
                            trt_log **out) KELP_MUST_USE;
void trt_log_destroy(trt_log *log);

/* As the library takes them; they are part of the log. */
trt_logger *trt_log_logger(trt_log *log);
trt_error_recorder *trt_log_recorder(trt_log *log);

/* Forgets what was kept: call it before an operation. */
void trt_log_clear(trt_log *log);
/* true when an error was logged or recorded since then. */
bool trt_log_has_errors(trt_log *log);

/* A failure that says `format` and, as its cause, every error kept since trt_log_clear (warnings
 * where there is no error), then forgets them. Its code follows the library's own error code where
 * it gave one, else it is `code`. */
kelp_status *trt_log_failure(trt_log *log, kelp_code code, const char *format, ...)
    KELP_PRINTF(3, 4) KELP_MUST_USE;

/* The kept warnings, one a line, terminated; "" without any. Free with kelp_free_string. */
kelp_status *trt_log_warnings(trt_log *log, char **out) KELP_MUST_USE;

#endif
