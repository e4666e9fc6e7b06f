/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/status.h: the error type of Kelp's functions.
 *
 * A function that can fail returns a pointer to a kelp_status. NULL means success. A failure
 * contains a code, a message, the source location that raised it and, optionally, the failure that
 * caused it. In libtritonserver.so, a TRITONSERVER_Error is a kelp_status whose message includes
 * those of its causes. Triton has fewer codes than Kelp.
 *
 * Unless stated otherwise:
 *   - A function that returns a kelp_status transfers ownership of it to the caller, who frees it
 *     with kelp_status_free.
 *   - Functions whose declaration ends in KELP_MUST_USE must have their result checked.
 *   - After a failure, the values of out_ parameters are unspecified and must not be used.
 *   - Any function that allocates may fail with RESOURCE_EXHAUSTED (kelp_status_oom).
 *
 * Thread safety: a status may be passed between threads, but only one thread may use it at a time.
 * Reading a status from several threads at once is safe as long as no thread modifies or
 * frees it.
 */
#ifndef KELP_STATUS_H_
#define KELP_STATUS_H_

#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#if defined(KELP_STATIC)

/* Marks a function that the shared library exports. Define KELP_STATIC to build without exports. */
#define KELP_API
#else

/* Marks a function that the shared library exports. Define KELP_STATIC to build without exports. */
#define KELP_API __attribute__((visibility("default")))
#endif

/* Lets the compiler check arguments against a printf format string. `fmt_index` and `first_arg`
 * are 1-based parameter positions. */
#define KELP_PRINTF(fmt_index, first_arg) __attribute__((format(printf, fmt_index, first_arg)))

/* Makes the compiler warn when a caller ignores the result. */
#define KELP_MUST_USE __attribute__((warn_unused_result))

#ifdef __cplusplus
extern "C" {
#endif

/* Status codes. Names, numbers and meanings are those of gRPC. Source: status codes of the gRPC
 * core documentation (doc/statuscodes.md). */
typedef enum kelp_code {
    KELP_OK = 0,        /* success; the code of a NULL status */
    KELP_CANCELLED = 1, /* the caller cancelled the operation */
    KELP_UNKNOWN = 2,   /* an error that no other code describes */
    /* an argument or input is wrong, whatever the state of the system */
    KELP_INVALID_ARGUMENT = 3,
    KELP_DEADLINE_EXCEEDED = 4,   /* a timeout expired */
    KELP_NOT_FOUND = 5,           /* a named object does not exist */
    KELP_ALREADY_EXISTS = 6,      /* an object of this name exists already */
    KELP_PERMISSION_DENIED = 7,   /* the caller may not do this */
    KELP_RESOURCE_EXHAUSTED = 8,  /* memory, a queue or a quota is exhausted */
    KELP_FAILED_PRECONDITION = 9, /* the object is not in the required state */
    KELP_ABORTED = 10,            /* conflict with a concurrent operation */
    KELP_OUT_OF_RANGE = 11,       /* an index or a size exceeds its limit */
    KELP_UNIMPLEMENTED = 12,      /* the operation is not supported */
    KELP_INTERNAL = 13,           /* an invariant of the implementation was violated */
    KELP_UNAVAILABLE = 14,        /* a required service, device or library cannot be reached */
    KELP_DATA_LOSS = 15,          /* data is corrupt and cannot be recovered */
    KELP_UNAUTHENTICATED = 16     /* the caller's identity is missing or invalid */
} kelp_code;

/* A failure. NULL is success. */
typedef struct kelp_status kelp_status;

/* ---- Creating and freeing ---- */

/* Creates a failure. `code` must not be KELP_OK. The formatted message and `file` (may be NULL)
 * are copied; KELP_ERROR fills in the location. Never returns NULL: if memory is exhausted,
 * returns kelp_status_oom(). Thread-safe. */
KELP_API kelp_status *kelp_status_new(kelp_code code, const char *file, int line,
                                      const char *format, ...) KELP_PRINTF(4, 5) KELP_MUST_USE;

/* Creates a failure from a va_list; otherwise the same as kelp_status_new. */
KELP_API kelp_status *kelp_status_newv(kelp_code code, const char *file, int line,
                                       const char *format, va_list args) KELP_MUST_USE;

/* Returns the static out-of-memory status (RESOURCE_EXHAUSTED). Does not allocate. Freeing it has
 * no effect. Thread-safe. */
KELP_API kelp_status *kelp_status_oom(void) KELP_MUST_USE;

/* Adds context to a failure: returns a new failure with the same code and domain
 * (kelp_status_domain) whose cause is `take_cause`. Takes ownership of `take_cause`. Returns NULL
 * for NULL. If memory is exhausted, returns `take_cause` unchanged. */
KELP_API kelp_status *kelp_status_annotate(kelp_status *take_cause, const char *file, int line,
                                           const char *format, ...) KELP_PRINTF(4, 5) KELP_MUST_USE;

/* Frees a status and its causes. NULL is allowed. */
KELP_API void kelp_status_free(kelp_status *status);

/* Returns a deep copy, for reporting one failure to several owners. Returns NULL for NULL, and
 * kelp_status_oom() if memory is exhausted. */
KELP_API kelp_status *kelp_status_clone(const kelp_status *status) KELP_MUST_USE;

/* ---- Reading ----
 *
 * Every reader accepts NULL. Strings are borrowed and valid until the status is freed. */

/* Returns the code; KELP_OK for NULL. */
KELP_API kelp_code kelp_status_code(const kelp_status *status);

/* Returns the message without those of its causes; "" for NULL. */
KELP_API const char *kelp_status_message(const kelp_status *status);

/* Returns the failure that caused this one, or NULL. */
KELP_API const kelp_status *kelp_status_cause(const kelp_status *status);

/* Returns the source file that raised the failure; "" if unknown or for NULL. */
KELP_API const char *kelp_status_file(const kelp_status *status);

/* Returns the source line that raised the failure; 0 for NULL. */
KELP_API int kelp_status_line(const kelp_status *status);

/* Interface in which a failure occurred: kelp/builder.h, kelp/network.h, kelp/engine.h or
 * kelp/cuda.h. Other interfaces do not set a domain. */
typedef enum kelp_domain {
    KELP_DOMAIN_NONE = 0,     /* not set */
    KELP_DOMAIN_BUILDER = 1,  /* builder, configuration or build */
    KELP_DOMAIN_NETWORK = 2,  /* network or layer */
    KELP_DOMAIN_ENGINE = 3,   /* operation on an engine or context: a run, recording or refit */
    KELP_DOMAIN_RUNTIME = 4,  /* creating a runtime, creating or loading an engine, streams */
    KELP_DOMAIN_DEVICE = 5,   /* device or its driver */
    KELP_DOMAIN_PARAMETER = 6 /* argument of a function that sets an option or binds a tensor */
} kelp_domain;

/* Returns the domain. A failure that kelp_status_annotate created has the domain of its cause.
 * Returns KELP_DOMAIN_NONE for NULL. */
KELP_API kelp_domain kelp_status_domain(const kelp_status *status);

/* Sets the domain. Has no effect on NULL and on the out-of-memory status. */
KELP_API void kelp_status_set_domain(kelp_status *status, kelp_domain domain);

/* Returns a static lower-case name such as "builder"; "" for KELP_DOMAIN_NONE and unknown values.
 */
KELP_API const char *kelp_domain_name(kelp_domain domain);

/* Returns a static name such as "INVALID_ARGUMENT"; "UNKNOWN" for unknown values. */
KELP_API const char *kelp_code_name(kelp_code code);

/* Writes "message: cause: cause" without file names. Truncates to `capacity` bytes, including the
 * terminating NUL, which is always written if `capacity` is at least 1. Returns the length of the
 * whole text without the NUL, as snprintf does. */
KELP_API size_t kelp_status_format(const kelp_status *status, char *buffer, size_t capacity);

/* ---- Macros ---- */

/* Creates a failure at the current source location: KELP_ERROR(code, format, ...). */
#define KELP_ERROR(code, ...) kelp_status_new((code), __FILE__, __LINE__, __VA_ARGS__)

/* Annotates a failure at the current source location: KELP_ANNOTATE(take_cause, format, ...). */
#define KELP_ANNOTATE(take_cause, ...) \
    kelp_status_annotate((take_cause), __FILE__, __LINE__, __VA_ARGS__)

/* Evaluates `expr` and, if it is a failure, returns it from the enclosing function. This is the
 * only macro in Kelp that hides control flow. */
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
