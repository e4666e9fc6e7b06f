/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/readiness.h"

#include "base/checked.h"
#include "base/text/json.h"
#include "cli/cli.h"

#include <stdio.h>

static kelp_str member(const kelp_json *object, const char *key) {
    const kelp_json *found = kelp_json_get(object, key);
    return found != NULL && found->type == KELP_JSON_STRING ? found->string : KELP_STR("");
}

static void put_row(kelp_table *table, const kelp_json *model, bool reasons) {
    kelp_str version = member(model, "version"), state = member(model, "state");
    kelp_str reason = reasons ? member(model, "reason") : KELP_STR("");
    kelp_table_cell(table, "%.*s", KELP_STR_ARG(member(model, "name")));
    kelp_table_cell(table, "%.*s", KELP_STR_ARG(version.length ? version : KELP_STR("-")));
    kelp_table_cell(table, "%.*s%s%.*s",
                    KELP_STR_ARG(state.length ? state : KELP_STR("not loaded")),
                    reason.length ? ": " : "", KELP_STR_ARG(reason));
}

/* Parses a message of the server. The arena owns `*out`. */
static kelp_status *parse(TRITONSERVER_Message *message, const char *what, kelp_arena *arena,
                          kelp_json **out) {
    const char *text = NULL;
    size_t length = 0;
    KELP_TRY(kelp_serve_status(TRITONSERVER_MessageSerializeToJson(message, &text, &length), what));
    return kelp_json_parse(arena, what, text, length, out);
}

static void message_delete(TRITONSERVER_Message *message) {
    TRITONSERVER_Error *error = TRITONSERVER_MessageDelete(message);
    if (error != NULL)
        TRITONSERVER_ErrorDelete(error);
}

/* Calls `use` for each version of a model. */
static kelp_status *for_each_model(TRITONSERVER_Server *core,
                                   void (*use)(const kelp_json *model, void *userp), void *userp) {
    static const char what[] = "cannot list the models";
    TRITONSERVER_Message *index = NULL;
    KELP_TRY(kelp_serve_status(TRITONSERVER_ServerModelIndex(core, 0, &index), what));
    kelp_json *models = NULL;
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_status *status = parse(index, what, &arena, &models);
    for (const kelp_json *model = status == NULL ? models->child : NULL; model != NULL;
         model = model->next)
        use(model, userp);
    message_delete(index);
    kelp_arena_deinit(&arena);
    return status;
}

/* A table of models. */
typedef struct model_table {
    kelp_table table;
    bool reasons;
} model_table;

static void add_row(const kelp_json *model, void *userp) {
    model_table *models = userp;
    put_row(&models->table, model, models->reasons);
}

kelp_status *kelp_serve_append_models(TRITONSERVER_Server *core, bool reasons, kelp_buf *out) {
    model_table models = {.reasons = reasons};
    kelp_table_init(&models.table, 3);
    kelp_table_cell(&models.table, "Model");
    kelp_table_cell(&models.table, "Version");
    kelp_table_cell(&models.table, "Status");
    kelp_status *status = for_each_model(core, add_row, &models);
    if (status == NULL)
        kelp_table_framed(&models.table, out);
    else
        kelp_buf_deinit(&models.table.text);
    return status;
}

static void count_model(const kelp_json *model, void *userp) {
    size_t *counts = userp;
    counts[0] += kelp_str_equal(member(model, "state"), KELP_STR("READY"));
    counts[1]++;
}

kelp_status *kelp_serve_count_models(TRITONSERVER_Server *core, size_t *out_ready,
                                     size_t *out_all) {
    size_t counts[2] = {0, 0};
    KELP_TRY(for_each_model(core, count_model, counts));
    *out_ready = counts[0];
    *out_all = counts[1];
    return NULL;
}

static void put_option(kelp_table *table, const char *name, const char *value) {
    kelp_table_cell(table, "%s", name);
    kelp_table_cell(table, "%s", value != NULL ? value : "");
}

static void put_options(kelp_table *table, const kelp_serve_options *o, const kelp_json *metadata) {
    char number[32];
    kelp_table_cell(table, "Option");
    kelp_table_cell(table, "Value");
    kelp_table_cell(table, "server_id");
    kelp_table_cell(table, "%.*s", KELP_STR_ARG(member(metadata, "name")));
    kelp_table_cell(table, "server_version");
    kelp_table_cell(table, "%.*s", KELP_STR_ARG(member(metadata, "version")));
    for (size_t i = 0; i < o->models.repositories.count; i++) {
        kelp_table_cell(table, "model_repository_path[%zu]", i);
        kelp_table_cell(table, "%s", o->models.repositories.items[i]);
    }
    put_option(table, "model_control_mode",
               !strcmp(o->models.control_mode, "explicit") ? "MODE_EXPLICIT"
               : !strcmp(o->models.control_mode, "poll")   ? "MODE_POLL"
                                                           : "MODE_NONE");
    put_option(table, "strict_model_config",
               o->models.strict_model_config || o->models.disable_auto_complete ? "1" : "0");
    put_option(table, "model_config_name", o->models.config_name);
    put_option(table, "rate_limit", !strcmp(o->backends.rate_limit, "off") ? "OFF" : "EXEC_COUNT");
    put_option(table, "strict_readiness", o->server.strict_readiness ? "1" : "0");
    snprintf(number, sizeof number, "%lld", (long long)o->server.exit_timeout_secs);
    put_option(table, "exit_timeout", number);
    put_option(table, "cache_enabled",
               o->caches.cache_config.count || o->caches.response_cache_bytes >= 0 ? "1" : "0");
}

kelp_status *kelp_serve_append_options(const kelp_serve_options *o, TRITONSERVER_Server *core,
                                       kelp_buf *out) {
    static const char what[] = "cannot read the metadata of the server";
    TRITONSERVER_Message *message = NULL;
    KELP_TRY(kelp_serve_status(TRITONSERVER_ServerMetadata(core, &message), what));
    kelp_json *metadata = NULL;
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_status *status = parse(message, what, &arena, &metadata);
    if (status == NULL) {
        kelp_table table;
        kelp_table_init(&table, 2);
        put_options(&table, o, metadata);
        kelp_table_framed(&table, out);
    }
    message_delete(message);
    kelp_arena_deinit(&arena);
    return status;
}
