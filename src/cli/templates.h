/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a new project; their contents are in templates/. */
#ifndef KELP_CLI_TEMPLATES_H_
#define KELP_CLI_TEMPLATES_H_

#include <stddef.h>

typedef struct kelp_template {
    const char *name; /* file name; "backend.c" and "gitignore" are renamed */
    const char *text; /* @NAME@ is replaced by the name of the backend */
} kelp_template;

/* The last entry has a NULL name. */
extern const kelp_template kelp_backend_templates[];

#endif
