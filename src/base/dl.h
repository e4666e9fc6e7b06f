/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries. Loaded with RTLD_NOW | RTLD_LOCAL; errors carry the loader's own words. */
#ifndef KELP_BASE_DL_H_
#define KELP_BASE_DL_H_

#include <kelp/allocator.h>

typedef struct kelp_dl {
    void *handle;
} kelp_dl;

kelp_status *kelp_dl_open(const char *path, kelp_dl *out) KELP_MUST_USE;
void kelp_dl_close(kelp_dl *dl);
/* The address, or NULL when the library itself (not one of its dependencies) has no such symbol. */
void *kelp_dl_own_symbol(const kelp_dl *dl, const char *name);
/* The address from the library or its dependencies; NULL when none. */
void *kelp_dl_symbol(const kelp_dl *dl, const char *name);

#endif
