/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of what a client may upload with a load. Without them, every client that may load models
 * may run code in the process. */
#ifndef KELP_SERVER_REPOSITORY_UPLOAD_H_
#define KELP_SERVER_REPOSITORY_UPLOAD_H_

#include "server/config/config.h"
#include "server/config/overrides.h"
#include "server/core/settings.h"

/* The setting of all backends that permits ("true", the default) or rejects ("false") code. */
#define KELP_UPLOAD_SETTING "allow-uploaded-code"

/* Checks uploaded files and the configuration. INVALID_ARGUMENT, if code is rejected, for a shared
 * library, files of a backend that is not built in, and for providers at an address. `config_json`
 * and `options` may be NULL. */
kelp_status *kelp_upload_check(const kelp_settings *backend_settings, const char *model_name,
                               const kelp_model_config *config, const char *config_json,
                               const kelp_load_options *options) KELP_MUST_USE;

#endif
