/* SPDX-License-Identifier: Apache-2.0 */
/* Records the nodes of one run, for the log and for traces. */
#ifndef KPY_NOTES_H_
#define KPY_NOTES_H_

#include "kpy.h"

/* Size of the name of an algorithm; longer ones are truncated. */
#define KPY_ALGORITHM 40

/* A node of a run. */
typedef struct kpy_note {
    const char *op_type, *name; /* live as long as the engine */
    char algorithm[KPY_ALGORITHM];
    uint64_t duration_ns, end_ns;
} kpy_note;

/* The nodes of a run, in order. Zeroed: none. */
typedef struct kpy_notes {
    kpy_note *items;
    size_t count, capacity;
    uint64_t begin_ns; /* set by the caller, as kpy_now_ns() */
} kpy_notes;

/* Returns the time of CLOCK_MONOTONIC, as time.monotonic_ns() does. */
uint64_t kpy_now_ns(void);
/* Appends a node. Implements kelp_profile_fn; `userp` is a kpy_notes. Without memory, nodes are
 * left out. Does not use Python. */
void kpy_notes_add(void *userp, size_t step, const char *op_type, const char *name,
                   const char *algorithm, uint64_t duration_ns);
/* Returns the nodes as a list of (op_type, name, algorithm, duration_ns, end_ns). */
PyObject *kpy_notes_list(const kpy_notes *notes);
/* Frees the nodes. */
void kpy_notes_deinit(kpy_notes *notes);

#endif
