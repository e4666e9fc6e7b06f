/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The access log: a line for each request, written by a thread of its own.
 *
 * Threads put lines into a ring of fixed size without locks, memory allocation or system calls,
 * except one to wake the writer when it sleeps. If the ring is full, because the file is written
 * too slowly, lines are dropped and counted.
 *
 * The file is opened for appending. It is opened again, with its directory entry created, within a
 * second after it was moved or removed, so that no signal is necessary for its rotation.
 */
#ifndef KELP_FRONTENDS_REQUEST_LOG_LOG_H_
#define KELP_FRONTENDS_REQUEST_LOG_LOG_H_

#include "base/log.h"
#include "base/str.h"

#include <kelp/allocator.h>

typedef struct kelp_request_log kelp_request_log;

/* Options. 0 selects the default of a member. */
typedef struct kelp_request_log_options {
    const char *path;          /* "-": standard output; borrowed */
    size_t capacity_bytes;     /* 4 MiB of lines that wait; a power of two, at least 4096 */
    const kelp_logger *logger; /* for failures, at most one message in 10 s; borrowed */
    /* Called on the thread of the log after lines were dropped; may be NULL. */
    void (*on_dropped)(void *userp, uint64_t lines);
    void *userp;
    kelp_allocator allocator; /* the system's if .realloc is NULL */
} kelp_request_log_options;

/* Checks that the file can be opened, and creates it. INVALID_ARGUMENT. */
kelp_status *kelp_request_log_check(const char *path) KELP_MUST_USE;
/* Opens the file and starts the thread. Fails with INVALID_ARGUMENT if the file cannot be opened.
 */
kelp_status *kelp_request_log_create(const kelp_request_log_options *options,
                                     kelp_request_log **out) KELP_MUST_USE;
/* Writes the lines that wait, for at most a second if a pipe is full, and ends the thread. Further
 * lines are not written. Called once at most. */
void kelp_request_log_stop(kelp_request_log *log);
/* Frees the log, which is stopped if it was not. NULL is ignored. */
void kelp_request_log_destroy(kelp_request_log *log);

/* Appends a line, which ends with a newline. An empty line counts as a dropped one. Thread-safe. */
void kelp_request_log_put(kelp_request_log *log, kelp_str line);

#endif
