/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a new project; their texts are in templates/. */
#ifndef KELP_CLI_TEMPLATES_H_
#define KELP_CLI_TEMPLATES_H_

#include <stddef.h>

typedef struct kelp_template {
    const char *name; /* of the file; "backend.c" and "gitignore" get others */
    const char *text; /* @NAME@ stands for the backend's name */
} kelp_template;

/* Ends with a NULL name. */
extern const kelp_template kelp_backend_templates[];

#endif
