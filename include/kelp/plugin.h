/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/plugin.h: the one entry point of a shared library that extends Kelp.
 *
 * The library exports `kelp_plugin_query`, which returns a table that lives as long as the library
 * is loaded. The table's head says which version of this interface it was built for, so that a
 * mismatch is refused in words; behind it stand the tables of what the library offers. Triton's
 * backends (TRITONBACKEND_* entry points) are another matter and need no entry here.
 */
#ifndef KELP_PLUGIN_H_
#define KELP_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KELP_PLUGIN_MAGIC 0x6b656c70u /* "kelp" */
#define KELP_PLUGIN_ABI_VERSION 1u

struct kelp_kernel_library_def;
struct kelp_opset_backend;
struct kelp_compute_backend;

/* Append-only: a later version has more fields at the end, and says so by struct_size. */
typedef struct kelp_plugin {
    uint32_t magic;       /* KELP_PLUGIN_MAGIC */
    uint32_t abi_version; /* KELP_PLUGIN_ABI_VERSION */
    uint32_t struct_size; /* sizeof(kelp_plugin) */
    uint32_t reserved;    /* 0 */
    const char *name;     /* what users ask for */
    const char *version;  /* the library's own, for people; may be NULL */
    /* What it offers; NULL: nothing of that kind. */
    const struct kelp_kernel_library_def *kernels; /* kelp/kernel.h */
    const struct kelp_opset_backend *opset;        /* kelp/opset.h */
    const struct kelp_compute_backend *compute;    /* kelp/compute.h */
} kelp_plugin;

/* `host_abi_version`: KELP_PLUGIN_ABI_VERSION of who asks. NULL: the library does not serve it. */
typedef const kelp_plugin *(*kelp_plugin_query_fn)(uint32_t host_abi_version);
#define KELP_PLUGIN_QUERY "kelp_plugin_query"
#define KELP_PLUGIN_EXPORT __attribute__((visibility("default")))
KELP_PLUGIN_EXPORT const kelp_plugin *kelp_plugin_query(uint32_t host_abi_version);

#ifdef __cplusplus
}
#endif
#endif
