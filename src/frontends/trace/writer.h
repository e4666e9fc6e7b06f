/* SPDX-License-Identifier: Apache-2.0 */
/* Writes trace files on a separate thread. */
#ifndef KELP_FRONTENDS_TRACE_WRITER_H_
#define KELP_FRONTENDS_TRACE_WRITER_H_

#include "base/log.h"
#include "base/str.h"

#include <kelp/allocator.h>

typedef struct kelp_trace_writer kelp_trace_writer;

/* Creates a writer for `path`, which is borrowed like the logger. The thread starts with the first
 * text. */
kelp_status *kelp_trace_writer_create(kelp_allocator allocator, const char *path,
                                      const kelp_logger *logger,
                                      kelp_trace_writer **out) KELP_MUST_USE;
/* Writes what is queued, ends the array in the file, and frees the writer. NULL is allowed. */
void kelp_trace_writer_destroy(kelp_trace_writer *writer);
/* Queues elements of a JSON array, separated by commas: for the file, or, if `indexed`, as a
 * complete array in a file of its own, PATH.0, PATH.1 and so on. Drops them, and logs it, if too
 * much is queued. Thread-safe. */
void kelp_trace_writer_put(kelp_trace_writer *writer, kelp_str elements, bool indexed);

#endif
