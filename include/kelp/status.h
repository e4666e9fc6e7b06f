/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/status.h: how every Kelp function reports failure.
 *
 * A status is a pointer. NULL is success and costs nothing. A failure carries a code, a message,
 * the source location that raised it and, optionally, the failure that caused it. The same object
 * is what Triton's C API calls TRITONSERVER_Error, so nothing is converted at that border.
 *
 * Threads: a status belongs to one thread at a time; it may be handed to another.
 * Out of memory never allocates: kelp_status_oom() is a static object, and freeing it does nothing.
 */
#ifndef KELP_STATUS_H_
#define KELP_STATUS_H_

#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#if defined(KELP_STATIC)
#define KELP_API
#else
#define KELP_API __attribute__((visibility("default")))
#endif

#define KELP_PRINTF(fmt_index, first_arg) __attribute__((format(printf, fmt_index, first_arg)))
#define KELP_MUST_USE __attribute__((warn_unused_result))

#ifdef __cplusplus
extern "C" {
#endif

/* The seventeen canonical codes of gRPC (status code table of the gRPC core documentation). */
typedef enum kelp_code {
    KELP_OK = 0,
    KELP_CANCELLED = 1,
    KELP_UNKNOWN = 2,
    KELP_INVALID_ARGUMENT = 3,
    KELP_DEADLINE_EXCEEDED = 4,
    KELP_NOT_FOUND = 5,
    KELP_ALREADY_EXISTS = 6,
    KELP_PERMISSION_DENIED = 7,
    KELP_RESOURCE_EXHAUSTED = 8,
    KELP_FAILED_PRECONDITION = 9,
    KELP_ABORTED = 10,
    KELP_OUT_OF_RANGE = 11,
    KELP_UNIMPLEMENTED = 12,
    KELP_INTERNAL = 13,
    KELP_UNAVAILABLE = 14,
    KELP_DATA_LOSS = 15,
    KELP_UNAUTHENTICATED = 16
} kelp_code;

typedef struct kelp_status kelp_status;

/* Makes a failure. `code` is not KELP_OK. The message is formatted and copied. Returns the static
 * out-of-memory status when the failure itself cannot be allocated; never NULL. */
KELP_API kelp_status *kelp_status_new(kelp_code code, const char *file, int line,
                                      const char *format, ...) KELP_PRINTF(4, 5) KELP_MUST_USE;
KELP_API kelp_status *kelp_status_newv(kelp_code code, const char *file, int line,
                                       const char *format, va_list args) KELP_MUST_USE;

/* The static out-of-memory status (code KELP_RESOURCE_EXHAUSTED). Free it or not, as you like. */
KELP_API kelp_status *kelp_status_oom(void) KELP_MUST_USE;

/* Puts a new failure above `take_cause`, which it then owns; the code is the cause's. NULL stays
 * NULL. When memory is short the cause itself is returned. */
KELP_API kelp_status *kelp_status_annotate(kelp_status *take_cause, const char *file, int line,
                                           const char *format, ...) KELP_PRINTF(4, 5) KELP_MUST_USE;

/* Frees a status and its causes; NULL is fine. */
KELP_API void kelp_status_free(kelp_status *status);

/* Deep copy, so that one failure can be reported to several owners. NULL stays NULL. */
KELP_API kelp_status *kelp_status_clone(const kelp_status *status) KELP_MUST_USE;

/* Readers. Each accepts NULL (KELP_OK, "", NULL). The strings live as long as the status. */
KELP_API kelp_code kelp_status_code(const kelp_status *status);
KELP_API const char *kelp_status_message(const kelp_status *status);
KELP_API const kelp_status *kelp_status_cause(const kelp_status *status);
KELP_API const char *kelp_status_file(const kelp_status *status);
KELP_API int kelp_status_line(const kelp_status *status);

/* Which part of the builder and engine interfaces failed; NONE elsewhere. An annotation has its
 * cause's; setting it on NULL or on the out-of-memory status does nothing. */
typedef enum kelp_domain {
    KELP_DOMAIN_NONE = 0,
    KELP_DOMAIN_BUILDER = 1,
    KELP_DOMAIN_NETWORK = 2,
    KELP_DOMAIN_ENGINE = 3,
    KELP_DOMAIN_RUNTIME = 4,
    KELP_DOMAIN_DEVICE = 5,
    KELP_DOMAIN_PARAMETER = 6
} kelp_domain;
KELP_API kelp_domain kelp_status_domain(const kelp_status *status);
KELP_API void kelp_status_set_domain(kelp_status *status, kelp_domain domain);
KELP_API const char *kelp_domain_name(kelp_domain domain); /* "builder"; "" for NONE */

/* "INVALID_ARGUMENT" and so on; "UNKNOWN" for a number that is none of the codes. */
KELP_API const char *kelp_code_name(kelp_code code);

/* Writes "message: cause: cause" (no file names) into `buffer`, always terminated. Returns the
 * length that the whole text has, as snprintf does. */
KELP_API size_t kelp_status_format(const kelp_status *status, char *buffer, size_t capacity);

#define KELP_ERROR(code, ...) kelp_status_new((code), __FILE__, __LINE__, __VA_ARGS__)
#define KELP_ANNOTATE(take_cause, ...) \
    kelp_status_annotate((take_cause), __FILE__, __LINE__, __VA_ARGS__)

/* Returns the failure of `expr` from the enclosing function. The one macro that hides control flow.
 */
#define KELP_TRY(expr)                        \
    do {                                      \
        kelp_status *kelp_try_ = (expr);      \
        if (__builtin_expect(!!kelp_try_, 0)) \
            return kelp_try_;                 \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
