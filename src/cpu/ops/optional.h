/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries that operators load when a model or an image needs them, and that may be absent.
 */
#ifndef KELP_CPU_OPS_OPTIONAL_H_
#define KELP_CPU_OPS_OPTIONAL_H_

#include "base/dl.h"

#include <stddef.h>

typedef struct kelp_optional_library {
    const char *file;    /* name that the loader receives */
    const char *package; /* Debian package that contains it */
    const char *subject; /* what needs it: the beginning of an error "… need the library" */
    const char *operators;
} kelp_optional_library;

extern const kelp_optional_library kelp_lib_turbojpeg, kelp_lib_png, kelp_lib_webp, kelp_lib_tiff,
    kelp_lib_openjpeg, kelp_lib_pcre2;

/* Loads the library. Returns NOT_FOUND with the name of the Debian package if that fails. */
kelp_status *kelp_optional_open(const kelp_optional_library *library, kelp_dl *out) KELP_MUST_USE;

/* Writes a line for each library: whether it can be loaded, what needs it, and the package to
 * install if it is missing. */
void kelp_optional_describe(void (*write)(void *userp, const char *text, size_t length),
                            void *userp);

#endif
