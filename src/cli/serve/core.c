/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/core.h"

#include "base/alloc.h"
#include "base/fs.h"

/* Adds the models of --with-backend to the startup models of explicit mode. */
static kelp_status *start_with_backends(const kelp_serve_options *o,
                                        TRITONSERVER_ServerOptions *options) {
    kelp_fs_names names;
    if (o->with_repository == NULL || strcmp(o->models.control_mode, "explicit"))
        return NULL;
    for (size_t i = 0; i < o->models.load_models.count; i++) {
        if (!strcmp(o->models.load_models.items[i],
                    "*")) /* '*' loads all models and must be the only one */
            return NULL;
    }
    KELP_TRY(kelp_fs_list(kelp_allocator_system(), o->with_repository, &names));
    kelp_status *status = NULL;
    for (size_t i = 0; i < names.count && status == NULL; i++)
        status =
            kelp_serve_status(TRITONSERVER_ServerOptionsSetStartupModel(options, names.items[i]),
                              "option '--with-backend'");
    kelp_fs_names_deinit(&names);
    return status;
}

/* Adds all options to those of the server. */
static kelp_status *apply(const kelp_serve_options *o, TRITONSERVER_ServerOptions *options) {
    KELP_TRY(kelp_serve_log_apply(&o->log, options));
    KELP_TRY(kelp_serve_models_apply(&o->models, options));
    if (o->with_repository != NULL)
        KELP_TRY(kelp_serve_set(
            TRITONSERVER_ServerOptionsSetModelRepositoryPath(options, o->with_repository)));
    KELP_TRY(start_with_backends(o, options));
    KELP_TRY(kelp_serve_server_apply(&o->server, options));
    KELP_TRY(kelp_serve_metrics_apply(&o->metrics, options));
    KELP_TRY(kelp_serve_backends_apply(&o->backends, options));
    return kelp_serve_caches_apply(&o->caches, options);
}

kelp_status *kelp_serve_create_core(const kelp_serve_options *o, TRITONSERVER_Server **out) {
    TRITONSERVER_ServerOptions *options = NULL;
    KELP_TRY(kelp_serve_set(TRITONSERVER_ServerOptionsNew(&options)));
    kelp_status *status = apply(o, options);
    if (status == NULL)
        status = kelp_serve_status(TRITONSERVER_ServerNew(out, options), "cannot start the server");
    TRITONSERVER_Error *error = TRITONSERVER_ServerOptionsDelete(options);
    if (error != NULL)
        TRITONSERVER_ErrorDelete(error);
    return status;
}
