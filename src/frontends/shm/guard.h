/* SPDX-License-Identifier: Apache-2.0 */
/* Shared mappings that survive the truncation of their object by another process: a handler for
 * SIGBUS replaces missing pages by zero pages. */
#ifndef KELP_FRONTENDS_SHM_GUARD_H_
#define KELP_FRONTENDS_SHM_GUARD_H_

#include <kelp/status.h>

/* Guards the pages [data, data + size_bytes) until kelp_shm_guard_remove. Both are multiples of the
 * page size. Installs the handler the first time. Returns a slot in *out. Fails with
 * RESOURCE_EXHAUSTED if all slots are in use, INTERNAL if the handler cannot be installed.
 * Thread-safe. */
kelp_status *kelp_shm_guard_add(void *data, size_t size_bytes, size_t *out) KELP_MUST_USE;
/* Ends the guard. No thread may use the pages any more. Thread-safe. */
void kelp_shm_guard_remove(size_t slot);
/* Returns true after pages of the mapping were replaced. Thread-safe. */
bool kelp_shm_guard_is_damaged(size_t slot);

#endif
