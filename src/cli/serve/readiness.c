/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/readiness.h"

#include "base/checked.h"
#include "base/text/json.h"
#include "cli/cli.h"
#include "cli/serve/options/options.h"

/* Limit of a reason in the table of models; the table should fit on a terminal. */
#define REASON_BYTES 80

static kelp_str member(const kelp_json *object, const char *key) {
    const kelp_json *found = kelp_json_get(object, key);
    return found != NULL && found->type == KELP_JSON_STRING ? found->string : KELP_STR("");
}

/* Returns the number of bytes of a message that fit into a cell of the table. */
static size_t cell_bytes(kelp_str text) {
    size_t length = KELP_MIN(text.length, (size_t)REASON_BYTES);
    const char *line = memchr(text.data, '\n', length);
    if (line != NULL)
        length = (size_t)(line - text.data);
    while (length > 0 && length < text.length && ((unsigned char)text.data[length] & 0xC0) == 0x80)
        length--; /* inside of a UTF-8 character */
    return length;
}

kelp_status *kelp_serve_append_models(TRITONSERVER_Server *core, kelp_buf *out) {
    TRITONSERVER_Message *index = NULL;
    KELP_TRY(kelp_serve_status(TRITONSERVER_ServerModelIndex(core, 0, &index),
                               "cannot list the models"));
    const char *text = NULL;
    size_t length = 0;
    kelp_json *models = NULL;
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_status *status = kelp_serve_status(
        TRITONSERVER_MessageSerializeToJson(index, &text, &length), "cannot list the models");
    if (status == NULL)
        status = kelp_json_parse(&arena, "model index", text, length, &models);
    if (status == NULL) {
        kelp_table table;
        kelp_table_init(&table, 3);
        kelp_table_cell(&table, "Model");
        kelp_table_cell(&table, "Version");
        kelp_table_cell(&table, "Status");
        for (const kelp_json *model = models->child; model != NULL; model = model->next) {
            kelp_str version = member(model, "version"), state = member(model, "state"),
                     reason = member(model, "reason");
            kelp_table_cell(&table, "%.*s", KELP_STR_ARG(member(model, "name")));
            kelp_table_cell(&table, "%.*s", KELP_STR_ARG(version.length ? version : KELP_STR("-")));
            size_t shown = reason.length > 0 ? cell_bytes(reason) : 0;
            kelp_table_cell(&table, "%.*s%s%.*s%s",
                            KELP_STR_ARG(state.length ? state : KELP_STR("not loaded")),
                            reason.length ? ": " : "", (int)shown, reason.data,
                            shown < reason.length ? "…" : "");
        }
        kelp_table_framed(&table, out);
    }
    TRITONSERVER_Error *error = TRITONSERVER_MessageDelete(index);
    if (error != NULL)
        TRITONSERVER_ErrorDelete(error);
    kelp_arena_deinit(&arena);
    return status;
}
