/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/options/models.h"

#include "base/checked.h"
#include "cli/serve/options/options.h"

#include <stddef.h>

#define AT(member) offsetof(kelp_serve_options, models.member)
static const kelp_arg_spec specs[] = {
    {.group = "Models",
     .name = "model-repository",
     .kind = KELP_OPTION_LIST,
     .offset = AT(repositories),
     .value = "DIR",
     .choices = "@dir",
     .help = "model repository with <model>/<version>/…: a directory, or an address of kelp pull, "
             "whose models are downloaded; may be repeated"},
    {.name = "model-store",
     .kind = KELP_OPTION_LIST,
     .offset = AT(repositories),
     .value = "DIR",
     .choices = "@dir",
     .help = "alias of --model-repository"},
    {.name = "model-cache",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(cache),
     .value = "DIR",
     .choices = "@dir",
     .help =
         "directory for downloaded models, which are kept for the next start (a temporary one)"},
    {.name = "registry-plain-http",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(registry_plain_http),
     .help = "use HTTP without TLS for repositories in OCI registries (false)"},
    {.name = "model-control-mode",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(control_mode),
     .value = "MODE",
     .choices = "none|explicit|poll",
     .help = "none: load all models at startup (default); explicit: load the models of "
             "--load-model, then on request; poll: reload models when the repository changes"},
    {.name = "load-model",
     .kind = KELP_OPTION_LIST,
     .offset = AT(load_models),
     .value = "NAME",
     .help = "model to load at startup in explicit mode, * for all; may be repeated"},
    {.name = "repository-poll-secs",
     .kind = KELP_ARG_I64,
     .offset = AT(poll_secs),
     .value = "N",
     .min = 1,
     .max = 86400,
     .help = "poll interval of the repository in poll mode, in seconds (15)"},
    {.name = "strict-model-config",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(strict_model_config),
     .help = "do not complete config.pbtxt from the model (false)"},
    {.name = "disable-auto-complete-config",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(disable_auto_complete),
     .help = "alias of --strict-model-config"},
    {.name = "model-config-name",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(config_name),
     .value = "NAME",
     .help = "use configs/NAME.pbtxt of a model if it exists"},
    {.name = "model-load-thread-count",
     .kind = KELP_ARG_I64,
     .offset = AT(load_threads),
     .value = "N",
     .min = 1,
     .max = 256,
     .help = "number of models to load in parallel (4)"},
    {.name = "model-load-retry-count",
     .kind = KELP_ARG_I64,
     .offset = AT(load_retries),
     .value = "N",
     .min = 0,
     .max = 1000,
     .help = "number of retries if a model does not load (0)"},
    {.name = "model-namespacing",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(namespacing),
     .help = "allow models with the same name in different repositories (false)"},
    {.name = "allow-uploaded-code",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(allow_uploaded_code),
     .help = "accept loads over the network whose parameters bring shared libraries, files of "
             "backends that are not built in, or providers at an address (false)"},
};
#undef AT

const kelp_arg_table kelp_serve_models_table = {specs, KELP_COUNT(specs)};

void kelp_serve_models_defaults(kelp_serve_models *o) {
    o->control_mode = "none";
    o->poll_secs = 15;
    o->load_threads = 4;
}

static TRITONSERVER_ModelControlMode control_mode(const char *name) {
    return !strcmp(name, "explicit") ? TRITONSERVER_MODEL_CONTROL_EXPLICIT
           : !strcmp(name, "poll")   ? TRITONSERVER_MODEL_CONTROL_POLL
                                     : TRITONSERVER_MODEL_CONTROL_NONE;
}

kelp_status *kelp_serve_models_apply(const kelp_serve_models *o,
                                     TRITONSERVER_ServerOptions *options) {
    for (size_t i = 0; i < o->repositories.count; i++)
        KELP_TRY(kelp_serve_set(
            TRITONSERVER_ServerOptionsSetModelRepositoryPath(options, o->repositories.items[i])));
    KELP_TRY(kelp_serve_set(
        TRITONSERVER_ServerOptionsSetModelControlMode(options, control_mode(o->control_mode))));
    for (size_t i = 0; i < o->load_models.count; i++)
        KELP_TRY(kelp_serve_set(
            TRITONSERVER_ServerOptionsSetStartupModel(options, o->load_models.items[i])));
    KELP_TRY(kelp_serve_set(TRITONSERVER_ServerOptionsSetStrictModelConfig(
        options, o->strict_model_config || o->disable_auto_complete)));
    if (o->config_name != NULL && o->config_name[0] == '\0')
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--model-config-name': expected a name, found ''");
    if (o->config_name != NULL)
        KELP_TRY(
            kelp_serve_set(TRITONSERVER_ServerOptionsSetModelConfigName(options, o->config_name)));
    KELP_TRY(kelp_serve_set(
        TRITONSERVER_ServerOptionsSetModelLoadThreadCount(options, (unsigned)o->load_threads)));
    if (o->load_retries)
        KELP_TRY(kelp_serve_set(
            TRITONSERVER_ServerOptionsSetModelLoadRetryCount(options, (unsigned)o->load_retries)));
    if (!o->allow_uploaded_code)
        KELP_TRY(kelp_serve_set(TRITONSERVER_ServerOptionsSetBackendConfig(
            options, "", "allow-uploaded-code", "false")));
    return o->namespacing
               ? kelp_serve_set(TRITONSERVER_ServerOptionsSetModelNamespacing(options, true))
               : NULL;
}
