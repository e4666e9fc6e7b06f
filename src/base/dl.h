/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries, loaded with RTLD_NOW and RTLD_LOCAL. Errors contain the loader's message. */
#ifndef KELP_BASE_DL_H_
#define KELP_BASE_DL_H_

#include <kelp/allocator.h>

typedef struct kelp_dl {
    void *handle;
} kelp_dl;

kelp_status *kelp_dl_open(const char *path, kelp_dl *out) KELP_MUST_USE;
/* Lets libraries that are loaded later use the functions of the library that contains this one. A
 * host such as Python loads it without that. */
void kelp_dl_share_own(void);
void kelp_dl_close(kelp_dl *dl);
/* Returns the address of a symbol of the library itself, not of its dependencies, or NULL. */
void *kelp_dl_own_symbol(const kelp_dl *dl, const char *name);
/* Returns the address of a symbol of the library or its dependencies, or NULL. */
void *kelp_dl_symbol(const kelp_dl *dl, const char *name);

#endif
