/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-in libraries (kelp/plugin.h), from their file to their table. */
#ifndef KELP_RUNTIME_PLUGIN_H_
#define KELP_RUNTIME_PLUGIN_H_

#include "base/dl.h"

#include <kelp/compute.h>
#include <kelp/engine_provider.h>
#include <kelp/plugin.h>

/* Loads the library at `path`, checks the head of its table and copies the table. Members that an
 * older table lacks are NULL; the name is not. Fails if the file is not a shared library, or is
 * for another machine or interface version. The library stays loaded, even on failure: code that
 * has created threads cannot be unloaded safely. */
kelp_status *kelp_plugin_open(const char *path, kelp_dl *out_library,
                              kelp_plugin *out) KELP_MUST_USE;

/* A library that a runtime has loaded. The tables are copies with the `self` of the runtime. */
typedef struct kelp_loaded_plugin {
    struct kelp_loaded_plugin *next;
    kelp_plugin table;
    void *self;
    kelp_compute_backend compute;
    kelp_engine_provider engine;
} kelp_loaded_plugin;

/* Calls `destroy` of each plug-in and frees the list. */
void kelp_plugins_destroy(kelp_loaded_plugin *first, kelp_allocator allocator);

#endif
