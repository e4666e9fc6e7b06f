/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/plugin.h: entry point of a plug-in library.
 *
 * A plug-in library is a shared library that extends Kelp with kernels, operators or a compute
 * provider. It exports kelp_plugin_query, which returns a table of what it offers. The head of the
 * table identifies the version of this interface, so that a mismatch is reported as an error.
 * Triton backends (TRITONBACKEND_* entry points, kelp/backend.h) do not use this interface.
 */
#ifndef KELP_PLUGIN_H_
#define KELP_PLUGIN_H_

#include <kelp/status.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Value of kelp_plugin.magic: "kelp". */
#define KELP_PLUGIN_MAGIC 0x6b656c70u

/* Version of this interface. */
#define KELP_PLUGIN_ABI_VERSION 1u

/* See kelp/kernel.h. */
struct kelp_kernel_library_def;

/* See kelp/opset.h. */
struct kelp_opset_backend;

/* See kelp/compute.h. */
struct kelp_compute_backend;

/* See kelp/engine_provider.h. */
struct kelp_engine_provider;

/* A setting of a plug-in library. */
typedef struct kelp_plugin_setting {
    const char *name;  /* name, not empty */
    const char *value; /* value */
} kelp_plugin_setting;

/* Table of a plug-in library. It and everything it points to must be valid as long as the library
 * is loaded. Later versions append fields and increase struct_size. */
typedef struct kelp_plugin {
    uint32_t magic;       /* KELP_PLUGIN_MAGIC */
    uint32_t abi_version; /* KELP_PLUGIN_ABI_VERSION */
    uint32_t struct_size; /* sizeof(kelp_plugin) */
    uint32_t reserved;    /* 0 */
    const char *name;     /* name of the library */
    const char *version;  /* version of the library, for people; may be NULL */
    const struct kelp_kernel_library_def *kernels; /* kernels; may be NULL */
    const struct kelp_opset_backend *opset;        /* operator provider; may be NULL */
    const struct kelp_compute_backend *compute;    /* compute provider; may be NULL */
    const struct kelp_engine_provider *engine;     /* engine provider; may be NULL or missing */
    /* Called once for each runtime that loads the library, before anything is registered. Names of
     * settings are unique; the strings are borrowed during the call. `*out_self` (may stay NULL) is
     * passed as `self` to the functions of the operator provider, and to those of the compute
     * provider and the engine provider unless the field `self` of their tables is set. On failure,
     * returns a code and writes a message to `error`; destroy is then not called. A library that
     * does not know a setting should fail with KELP_INVALID_ARGUMENT. May be NULL or missing: then
     * the library has no settings. */
    kelp_code (*create)(const kelp_plugin_setting *settings, size_t setting_count, void **out_self,
                        char *error, size_t error_capacity);
    /* Called once after each successful create, when the runtime is destroyed, after everything
     * that uses `self`. May be NULL or missing. */
    void (*destroy)(void *self);
} kelp_plugin;

/* Type of kelp_plugin_query. */
typedef const kelp_plugin *(*kelp_plugin_query_fn)(uint32_t host_abi_version);

/* Name of the symbol that a plug-in library exports. */
#define KELP_PLUGIN_QUERY "kelp_plugin_query"

/* Exports a function from a plug-in library. */
#define KELP_PLUGIN_EXPORT __attribute__((visibility("default")))

/* Returns the table of the library, or NULL if it does not support the caller's version of the
 * interface, `host_abi_version`. Defined by the library. May be called more than once and from any
 * thread. */
KELP_PLUGIN_EXPORT const kelp_plugin *kelp_plugin_query(uint32_t host_abi_version);

#ifdef __cplusplus
}
#endif
#endif
