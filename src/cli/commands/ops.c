/* SPDX-License-Identifier: Apache-2.0 */
/* kelp ops: lists the operators with their versions and kinds. */
#include "cli/cli.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"

#include <kelp/engine.h>
#include <kelp/opset.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct ops_options {
    kelp_arg_list names;
    const char *domain;
    bool json;
} ops_options;

static const kelp_arg_spec specs[] = {
    {.name = "domain",
     .letter = 'd',
     .kind = KELP_OPTION_TEXT,
     .offset = offsetof(ops_options, domain),
     .value = "NAME",
     .help = "only this domain: ai.onnx, ai.onnx.ml, com.microsoft, …"},
    {.name = "json",
     .kind = KELP_OPTION_BOOL,
     .offset = offsetof(ops_options, json),
     .help = "print JSON"},
};

typedef struct row {
    const char *domain, *backend;
    const kelp_opset_op *op;
} row;

/* Describes how the operator is executed. */
static void kind_of(const kelp_opset_op *op, char *out, size_t capacity) {
    static const struct {
        uint32_t flag;
        const char *text;
    } words[] = {
        {KELP_OP_VIEW, "view"},
        {KELP_OP_INPLACE_0 | KELP_OP_INPLACE_1, "in place"},
        {KELP_OP_SHAPE_ONLY, "shape only"},
        {KELP_OP_IMPURE, "random"},
        {KELP_OP_SERIAL, "one thread"},
    };
    size_t used =
        (size_t)snprintf(out, capacity, "%s", op->kernel != NULL ? "kernel" : "dispatched");
    for (size_t i = 0; op->kernel != NULL && i < KELP_COUNT(words) && used < capacity; i++)
        if (op->kernel->flags & words[i].flag)
            used += (size_t)snprintf(out + used, capacity - used, ", %s", words[i].text);
}

static void versions_of(const kelp_opset_op *op, char *out, size_t capacity) {
    if (op->until_version == 0)
        snprintf(out, capacity, "%d+", op->since_version);
    else
        snprintf(out, capacity, "%d-%d", op->since_version, op->until_version);
}

static int by_name(const void *left, const void *right) {
    const row *a = left, *b = right;
    int order = strcmp(a->domain, b->domain);
    if (order == 0)
        order = strcmp(a->op->name, b->op->name);
    return order != 0 ? order
                      : (a->op->since_version > b->op->since_version) -
                            (a->op->since_version < b->op->since_version);
}

static bool wanted(const ops_options *o, const char *domain, const char *name) {
    bool listed = o->names.count == 0;
    for (size_t i = 0; i < o->names.count; i++)
        listed = listed || strcmp(o->names.items[i], name) == 0;
    return listed && (o->domain == NULL || strcmp(o->domain, domain) == 0);
}

/* Collects the rows of all providers. Free them with free(). */
static kelp_status *collect(const kelp_opset_registry *registry, const ops_options *o, row **out,
                            size_t *out_count) {
    kelp_opset_declared declared;
    size_t capacity = 0;
    for (size_t i = 0; kelp_opset_registry_at(registry, i, &declared); i++)
        capacity += declared.opset->op_count;
    *out_count = 0;
    *out = calloc(capacity + 1, sizeof **out);
    if (*out == NULL)
        return kelp_status_oom();
    for (size_t i = 0; kelp_opset_registry_at(registry, i, &declared); i++) {
        const char *domain = *declared.opset->domain ? declared.opset->domain : "ai.onnx";
        for (size_t k = 0; k < declared.opset->op_count; k++)
            if (wanted(o, domain, declared.opset->ops[k].name))
                (*out)[(*out_count)++] =
                    (row){domain, declared.backend->name, &declared.opset->ops[k]};
    }
    KELP_ASSERT(*out_count <= capacity);
    qsort(*out, *out_count, sizeof **out, by_name);
    return NULL;
}

static void put_text(const row *rows, size_t count, kelp_buf *out) {
    kelp_table table;
    kelp_table_init(&table, 5);
    for (size_t i = 0; i < count; i++) {
        char kind[128], versions[32];
        kind_of(rows[i].op, kind, sizeof kind);
        versions_of(rows[i].op, versions, sizeof versions);
        kelp_table_cell(&table, "%s", rows[i].domain);
        kelp_table_cell(&table, "%s", rows[i].op->name);
        kelp_table_cell(&table, "%s", versions);
        kelp_table_cell(&table, "%s", rows[i].backend);
        kelp_table_cell(&table, "%s", kind);
    }
    kelp_table_plain(&table, "", out);
}

static void put_string(kelp_buf *out, const char *name, const char *text) {
    kelp_buf_printf(out, "\"%s\":", name);
    kelp_json_escape(out, (kelp_str){text, strlen(text)});
}

static void put_json(const row *rows, size_t count, kelp_buf *out) {
    for (size_t i = 0; i < count; i++) {
        char kind[128];
        kind_of(rows[i].op, kind, sizeof kind);
        kelp_buf_append_cstr(out, i ? ",\n{" : "[{");
        put_string(out, "domain", rows[i].domain);
        kelp_buf_append_char(out, ',');
        put_string(out, "name", rows[i].op->name);
        kelp_buf_printf(out, ",\"since\":%d,\"until\":%d,", rows[i].op->since_version,
                        rows[i].op->until_version);
        put_string(out, "backend", rows[i].backend);
        kelp_buf_append_char(out, ',');
        put_string(out, "kind", kind);
        kelp_buf_append_char(out, '}');
    }
    kelp_buf_append_cstr(out, count ? "]\n" : "[]\n");
}

static const char *row_name(const void *userp, size_t i) {
    const row *rows = userp;
    return rows[i].op != NULL ? rows[i].op->name : NULL;
}

static const char *row_domain(const void *userp, size_t i) {
    return ((const row *)userp)[i].domain;
}

/* Checks that each name is listed. The last row is zeroed. */
static kelp_status *check_words(const kelp_opset_registry *registry, const ops_options *o,
                                const row *rows, size_t count) {
    const ops_options everything = {0};
    const char *unknown = NULL;
    row *all = NULL;
    size_t all_count = 0;
    for (size_t i = 0; i < o->names.count && unknown == NULL; i++) {
        bool found = false;
        for (size_t k = 0; k < count && !found; k++)
            found = strcmp(rows[k].op->name, o->names.items[i]) == 0;
        unknown = found ? NULL : o->names.items[i];
    }
    if (unknown == NULL && (count > 0 || o->domain == NULL))
        return NULL;
    KELP_TRY(collect(registry, &everything, &all, &all_count));
    bool by_name = unknown != NULL;
    const char *word = by_name ? unknown : o->domain;
    const char *nearest = kelp_args_nearest(word, by_name ? row_name : row_domain, all);
    const char *of = by_name && o->domain != NULL ? o->domain : NULL;
    if (nearest != NULL && strcmp(nearest, word) == 0) /* exists in another domain */
        nearest = NULL;
    kelp_status *status =
        KELP_ERROR(KELP_NOT_FOUND, "unknown %s '%s'%s%s%s%s%s", by_name ? "operator" : "domain",
                   word, of ? " in domain " : "", of ? of : "", nearest ? "; did you mean '" : "",
                   nearest ? nearest : "", nearest ? "'?" : "");
    free(all);
    return status;
}

static kelp_status *list(const ops_options *o, kelp_buf *text) {
    kelp_runtime_options settings = {.struct_size = sizeof settings, .threads = 1};
    kelp_runtime *runtime = NULL;
    row *rows = NULL;
    size_t count = 0;
    KELP_TRY(kelp_runtime_create(&settings, &runtime));
    kelp_status *status = collect(kelp_runtime_opsets(runtime), o, &rows, &count);
    if (status == NULL)
        status = check_words(kelp_runtime_opsets(runtime), o, rows, count);
    if (status == NULL && o->json)
        put_json(rows, count, text);
    else if (status == NULL)
        put_text(rows, count, text);
    free(rows);
    kelp_runtime_release(runtime);
    return status;
}

static int run(const kelp_command *command, void *options) {
    kelp_buf text;
    (void)command;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = list(options, &text);
    if (status == NULL)
        status = kelp_cli_print(&text);
    kelp_buf_deinit(&text);
    return kelp_cli_finish(status);
}

const kelp_command kelp_cmd_ops = {
    .name = "ops",
    .summary = "list operators with their versions and kinds",
    .usage = "[OPERATOR…] [options]",
    .details = "Prints domain, name, opset versions, provider and kind: a kernel, which is "
               "scheduled before the\nrun, with its use of memory; or dispatched, if the output "
               "shape depends on data.\ndocs/operators.md also lists the tested types.",
    .examples = "  kelp ops Softmax LogSoftmax\n"
                "  kelp ops --domain com.microsoft",
    .positional = "OPERATOR",
    .max_positionals = SIZE_MAX,
    .tables = KELP_ARG_TABLE(specs),
    .options_bytes = sizeof(ops_options),
    .run = run,
};
