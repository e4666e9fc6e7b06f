/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this directory share. */
#ifndef KELP_SERVER_CONFIG_VIEW_H_
#define KELP_SERVER_CONFIG_VIEW_H_

#include "server/config/config.h"
#include "server/config/schema.h"

/* Which parts of its instance groups the configuration itself contains. */
typedef struct kelp_config_given {
    bool groups;
    size_t count;
    bool *kind;
    bool *number;
} kelp_config_given;

/* Fills the typed view from config->tree. */
kelp_status *kelp_config_view(kelp_model_config *config,
                              const kelp_config_given *given) KELP_MUST_USE;
/* Checks what is known; with `complete` also that nothing is missing. */
kelp_status *kelp_config_check(const kelp_model_config *config, bool complete) KELP_MUST_USE;
/* Fills in backend, platform, file name and all other defaults. */
kelp_status *kelp_config_fill(kelp_model_config *config, const kelp_config_load_options *options,
                              kelp_config_given *out_given) KELP_MUST_USE;

/* Read single values; `message` may be NULL. */
const char *kelp_config_text(kelp_arena *arena, const kelp_config_message *message,
                             const char *field); /* "" if not set; NULL if memory is exhausted */
int64_t kelp_config_number(const kelp_config_message *message, const char *field);
kelp_config_message *kelp_config_sub(const kelp_config_message *message, const char *field);

#endif
