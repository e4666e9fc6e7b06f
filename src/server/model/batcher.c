/* SPDX-License-Identifier: Apache-2.0 */
/* The custom batching strategy of a model: its library, and its state. */
#include "server/model/model.h"

#include "base/checked.h"
#include "base/fs.h"
#include "server/core/error.h"
#include "server/core/library.h"
#include "server/core/log.h"

#include <stddef.h>

static const char parameter[] = "TRITON_BATCH_STRATEGY_PATH";
static const char file_name[] = "batchstrategy.so";

/* Finds the library that the configuration names, or the first batchstrategy.so in the directories
 * of the version, the model and the backend. An empty path: there is none. */
static kelp_status *find_library(const kelp_model *model, kelp_buf *out_path) {
    const char *named = kelp_model_config_parameter(model->base.config, parameter);
    const char *directories[] = {model->version_directory, model->directory,
                                 model->backend->directory};
    if (named != NULL) {
        /* Without a '/', dlopen would search the system's directories. */
        kelp_buf_printf(out_path, "%s%s", strchr(named, '/') != NULL ? "" : "./", named);
        KELP_TRY(kelp_buf_status(out_path));
        if (kelp_fs_kind_of(kelp_buf_cstr(out_path)) != KELP_FS_FILE)
            return KELP_ERROR(KELP_NOT_FOUND, "Batching library path not found: %s", named);
        return NULL;
    }
    for (size_t i = 0; i < KELP_COUNT(directories); i++) {
        if (directories[i][0] == '\0')
            continue; /* a built-in backend has no directory */
        kelp_buf_clear(out_path);
        kelp_buf_printf(out_path, "%s/%s", directories[i], file_name);
        KELP_TRY(kelp_buf_status(out_path));
        if (kelp_fs_kind_of(kelp_buf_cstr(out_path)) == KELP_FS_FILE)
            return NULL;
    }
    kelp_buf_clear(out_path);
    return NULL;
}

static kelp_status *open_library(const char *path, kelp_batcher *out) {
    static const kelp_entry_point entry_points[] = {
        {"TRITONBACKEND_ModelBatcherInitialize", offsetof(kelp_batcher, initialize), true},
        {"TRITONBACKEND_ModelBatcherFinalize", offsetof(kelp_batcher, finalize), true},
        {"TRITONBACKEND_ModelBatchInitialize", offsetof(kelp_batcher, batch_initialize), true},
        {"TRITONBACKEND_ModelBatchIncludeRequest", offsetof(kelp_batcher, batch_include), true},
        {"TRITONBACKEND_ModelBatchFinalize", offsetof(kelp_batcher, batch_finalize), true},
    };
    return kelp_library_open(path, "batching strategy", entry_points, KELP_COUNT(entry_points),
                             out);
}

/* Gets the entry points: those of the library of the strategy, or else those of the backend. */
static kelp_status *find_entry_points(const kelp_model *model, kelp_batcher *out) {
    kelp_buf path;
    kelp_buf_init(&path, model->base.host->allocator);
    kelp_status *status = find_library(model, &path);
    *out = model->backend->batcher;
    if (status == NULL && path.length > 0) {
        KELP_SERVER_LOG(KELP_LOG_INFO, "Loading custom batching strategy from '%s' for model '%s'",
                        path.data, model->base.name);
        status = open_library(path.data, out);
        if (model->base.config->scheduling != KELP_SCHEDULING_DYNAMIC)
            KELP_SERVER_LOG(KELP_LOG_WARNING,
                            "model '%s': the batching strategy has no effect without "
                            "dynamic_batching",
                            model->base.name);
    }
    kelp_buf_deinit(&path);
    return status;
}

kelp_status *kelp_model_create_batcher(kelp_model *model) {
    kelp_batcher batcher;
    KELP_TRY(find_entry_points(model, &batcher));
    if (batcher.initialize == NULL)
        return NULL;
    KELP_TRY(kelp_from_error(batcher.initialize(&batcher.raw, (TRITONBACKEND_Model *)model)));
    model->batcher = batcher;
    return NULL;
}

void kelp_model_destroy_batcher(kelp_model *model) {
    if (model->batcher.initialize != NULL)
        kelp_server_log_status("failed to finalize a batching strategy",
                               kelp_from_error(model->batcher.finalize(model->batcher.raw)));
    model->batcher = (kelp_batcher){0};
}
