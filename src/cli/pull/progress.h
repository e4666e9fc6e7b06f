/* SPDX-License-Identifier: Apache-2.0 */
/* The progress bar of a download, on stderr if it is a terminal. */
#ifndef KELP_CLI_PULL_PROGRESS_H_
#define KELP_CLI_PULL_PROGRESS_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct kelp_progress {
    bool enabled;
    const char *name;
    uint64_t began_ns, shown_ns, began_bytes;
    bool visible; /* the line is on the screen */
} kelp_progress;

/* Begins a download, of which `offset` bytes exist already. */
void kelp_progress_begin(kelp_progress *progress, const char *name, uint64_t offset_bytes);
/* Shows that `done` of `total` bytes (0: unknown) exist, at most ten times a second. */
void kelp_progress_show(kelp_progress *progress, uint64_t done_bytes, uint64_t total_bytes);
/* Removes the bar. */
void kelp_progress_end(kelp_progress *progress);

#endif
