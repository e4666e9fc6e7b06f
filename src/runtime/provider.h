/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers: implementations that a runtime registers. A provider has a name and offers up to three
 * things under it; each is a table of a public header. The registry has a row for each provider.
 */
#ifndef KELP_RUNTIME_PROVIDER_H_
#define KELP_RUNTIME_PROVIDER_H_

#include <kelp/compute.h>
#include <kelp/engine_provider.h>

/* A row of the registry. At least one table is not NULL, and all tables have the row's name. */
typedef struct kelp_provider {
    const char *name;
    const kelp_opset_backend *operators; /* runs operators and subgraphs inside engines */
    const kelp_compute_backend *models;  /* loads whole models and runs them */
    const kelp_engine_provider *engines; /* builds engine images, loads and runs them */
    /* Checks that operators and models can be used, or NULL; `engines` has a check of its own. */
    kelp_status *(*check)(void);
} kelp_provider;

/* Registers what the provider offers; `self` is passed to its operators. The tables outlive the
 * runtime. Fails as kelp_opset_register, kelp_compute_register and kelp_engine_provider_register
 * do. Not thread-safe. */
kelp_status *kelp_provider_register(kelp_runtime *runtime, const kelp_provider *provider,
                                    void *self) KELP_MUST_USE;

/* Makes operators of kernel libraries. The module that implements kernels sets it. */
typedef struct kelp_opset_source {
    /* Loads the library in a file. */
    kelp_status *(*load)(void *self, const char *path, const kelp_opset_backend **out,
                         void **out_self);
    /* Searches a library by name. If no path to search is set, `*out` stays NULL. Calls do not
     * overlap. */
    kelp_status *(*find)(void *self, const char *name, const kelp_opset_backend **out,
                         void **out_self);
    /* Called after the last operator was used. */
    void (*destroy)(void *self);
} kelp_opset_source;

/* Lets the registry load kernel libraries. The registry takes ownership of `take_self`. */
void kelp_opset_set_source(kelp_opset_registry *registry, const kelp_opset_source *source,
                           void *take_self);

/* Registers the kernels of the library in a file as operators. Fails with NOT_FOUND if none is
 * suitable. */
kelp_status *kelp_opset_register_kernels(kelp_opset_registry *registry,
                                         const char *path) KELP_MUST_USE;

/* Returns true if the engine provider's table has the member; older tables are shorter. */
#define KELP_ENGINE_PROVIDER_HAS(table, member) \
    ((table)->struct_size >= offsetof(kelp_engine_provider, member) + sizeof((table)->member))

/* Finds the engine provider `name`. Fails with NOT_FOUND, with a list of the existing names. */
kelp_status *kelp_engine_provider_find(const kelp_runtime *runtime, const char *name,
                                       const kelp_engine_provider **out) KELP_MUST_USE;

#endif
