/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries that extend Kelp (kelp/plugin.h), from their file to their table. */
#ifndef KELP_RUNTIME_PLUGIN_H_
#define KELP_RUNTIME_PLUGIN_H_

#include "base/dl.h"

#include <kelp/plugin.h>

/* Loads the library at `path` and asks for its table, whose head was checked and which has a name;
 * what it offers is the caller's to judge. A file for another machine, one that is no library, and
 * one of another version are refused in words. The library stays loaded, whatever comes: code that
 * has made threads cannot be unloaded safely. */
kelp_status *kelp_plugin_open(const char *path, kelp_dl *out_library,
                              const kelp_plugin **out) KELP_MUST_USE;

#endif
