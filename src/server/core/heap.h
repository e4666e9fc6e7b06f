/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator of objects that exist before or without a server: those that Triton's C API creates
 * without a parent (options, parameters, messages, buffer attributes, traces, metrics), and those
 * that all servers of the process share (the lists of loaded backends and repository agents, the
 * log). Every other object inherits its allocator from its parent; the root is the server.
 * Thread-safe.
 */
#ifndef KELP_SERVER_CORE_HEAP_H_
#define KELP_SERVER_CORE_HEAP_H_

#include <kelp/allocator.h>

/* Returns the process-wide allocator. */
static inline kelp_allocator kelp_process_allocator(void) {
    return kelp_allocator_system();
}

#endif
