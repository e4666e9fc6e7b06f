/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries, loaded with RTLD_NOW and RTLD_LOCAL. Errors contain the loader's message. */
#ifndef KELP_BASE_DL_H_
#define KELP_BASE_DL_H_

#include <kelp/allocator.h>

typedef struct kelp_dl {
    void *handle;
} kelp_dl;

kelp_status *kelp_dl_open(const char *path, kelp_dl *out) KELP_MUST_USE;
void kelp_dl_close(kelp_dl *dl);
/* Returns the address of a symbol of the library itself, not of its dependencies, or NULL. */
void *kelp_dl_own_symbol(const kelp_dl *dl, const char *name);
/* Returns the address of a symbol of the library or its dependencies, or NULL. */
void *kelp_dl_symbol(const kelp_dl *dl, const char *name);

#endif
