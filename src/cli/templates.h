/* SPDX-License-Identifier: Apache-2.0 */
/* The files of new projects; their contents are in templates/KIND. */
#ifndef KELP_CLI_TEMPLATES_H_
#define KELP_CLI_TEMPLATES_H_

#include <stddef.h>

typedef struct kelp_template {
    const char *path; /* in the project; @NAME@ is replaced by the name of the project */
    const char *text; /* the same applies to the text */
} kelp_template;

/* The last entry of each table has a NULL path. */
extern const kelp_template kelp_backend_templates[];
extern const kelp_template kelp_kernels_templates[];
extern const kelp_template kelp_plugin_templates[];
extern const kelp_template kelp_provider_templates[];

#endif
