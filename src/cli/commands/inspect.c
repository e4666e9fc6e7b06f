/* SPDX-License-Identifier: Apache-2.0 */
/* kelp inspect: shows the structure of a model, whether Kelp supports it, and its memory. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"
#include "base/map.h"
#include "cli/model.h"

#include <stddef.h>
#include <stdlib.h>

typedef struct inspect_options {
    kelp_arg_list positionals;
    kelp_arg_list shapes;
    const char *providers;
    const char *plugin;
    bool json;
} inspect_options;

static const kelp_arg_spec specs[] = {
    KELP_CLI_SHAPE(offsetof(inspect_options, shapes),
                   "shape of an input for the memory plan (dynamic dimensions are 1)"),
    KELP_CLI_PLUGIN(offsetof(inspect_options, plugin)),
    KELP_CLI_PROVIDERS(offsetof(inspect_options, providers),
                       "providers in order of priority; shows the subgraphs of each"),
    {.name = "json",
     .kind = KELP_OPTION_BOOL,
     .offset = offsetof(inspect_options, json),
     .help = "print JSON"},
};

/* Counts the nodes of one operator and version in all blocks. */
typedef struct op_row {
    const char *domain;
    const char *op_type;
    int64_t version;
    size_t count;
    const char *backend; /* NULL if unsupported */
} op_row;

typedef struct survey {
    const kelp_graph *graph;
    const kelp_opset_registry *registry;
    kelp_arena arena;
    kelp_map rows; /* "domain:op:version:covered" -> op_row */
    size_t uncovered;
} survey;

/* A call of a model function is supported if the body of the function is. */
static bool is_function(const kelp_graph *graph, const kelp_node *node) {
    size_t domain = strlen(kelp_node_domain(node));
    for (size_t i = 0; i < kelp_graph_function_count(graph); i++) {
        const char *name = kelp_block_name(kelp_graph_function(graph, i));
        if (!strncmp(name, kelp_node_domain(node), domain) && !strncmp(name + domain, "::", 2) &&
            !strcmp(name + domain + 2, kelp_node_op_type(node)))
            return true;
    }
    return false;
}

static kelp_status *survey_node(survey *s, const kelp_node *node) {
    kelp_opset_match match;
    const char *backend = kelp_opset_find(s->registry, node, &match) ? match.backend->name
                          : is_function(s->graph, node)              ? "function"
                                                                     : NULL;
    s->uncovered += backend == NULL;
    char *key = kelp_arena_printf(&s->arena, "%s:%s:%lld:%d", kelp_node_domain(node),
                                  kelp_node_op_type(node), (long long)kelp_node_opset_version(node),
                                  backend != NULL);
    if (key == NULL)
        return kelp_status_oom();
    op_row *row = kelp_map_get(&s->rows, kelp_str_from(key));
    if (row == NULL) {
        row = KELP_ARENA_NEW(&s->arena, op_row);
        if (row == NULL)
            return kelp_status_oom();
        *row = (op_row){.domain = kelp_node_domain(node),
                        .op_type = kelp_node_op_type(node),
                        .version = kelp_node_opset_version(node),
                        .backend = backend};
        KELP_TRY(kelp_map_put(&s->rows, kelp_str_from(key), row));
    }
    row->count++;
    return NULL;
}

/* The loader limits the depth of nested subgraphs. */
static kelp_status *survey_block(survey *s, const kelp_block *block) {
    for (size_t i = 0; i < kelp_block_node_count(block); i++) {
        const kelp_node *node = kelp_block_node(block, i);
        KELP_TRY(survey_node(s, node));
        for (size_t a = 0; a < kelp_node_attr_count(node); a++) {
            const char *name = kelp_node_attr_name(node, a);
            const kelp_block *inner = kelp_node_attr_type(node, name) == KELP_ATTR_GRAPH
                                          ? kelp_node_attr_block(node, name)
                                          : NULL;
            if (inner != NULL)
                KELP_TRY(survey_block(s, inner));
        }
    }
    return NULL;
}

static kelp_status *survey_graph(survey *s) {
    KELP_TRY(survey_block(s, kelp_graph_main(s->graph)));
    for (size_t i = 0; i < kelp_graph_function_count(s->graph); i++)
        KELP_TRY(survey_block(s, kelp_graph_function(s->graph, i)));
    return NULL;
}

static int by_name(const void *a, const void *b) {
    const op_row *x = *(op_row *const *)a, *y = *(op_row *const *)b;
    int order = strcmp(x->domain, y->domain);
    return order ? order : strcmp(x->op_type, y->op_type);
}

static kelp_status *sorted_rows(survey *s, op_row ***out) {
    op_row **rows = KELP_ARENA_ARRAY(&s->arena, s->rows.count + 1, op_row *);
    if (rows == NULL)
        return kelp_status_oom();
    size_t count = 0;
    for (kelp_map_entry *e = NULL; (e = kelp_map_next(&s->rows, e)) != NULL;)
        rows[count++] = e->value;
    KELP_ASSERT(count == s->rows.count);
    qsort(rows, count, sizeof(op_row *), by_name);
    *out = rows;
    return NULL;
}

static kelp_status *survey_rows(survey *s, op_row ***out) {
    KELP_TRY(survey_graph(s));
    return sorted_rows(s, out);
}

/* Appends a shape with the names of dynamic dimensions: "[batch,1,8,8]". */
static void put_shape(const kelp_value *value, kelp_buf *out) {
    int32_t rank = kelp_value_rank(value);
    if (rank < 0) {
        kelp_buf_append_cstr(out, "of any shape");
        return;
    }
    kelp_buf_append_char(out, '[');
    for (int32_t axis = 0; axis < rank; axis++) {
        const char *symbol = NULL;
        int64_t dim = kelp_value_dim(value, axis, &symbol);
        kelp_buf_append_cstr(out, axis ? "," : "");
        if (dim >= 0)
            kelp_buf_append_i64(out, dim);
        else
            kelp_buf_append_cstr(out, symbol != NULL && *symbol ? symbol : "?");
    }
    kelp_buf_append_char(out, ']');
}

/* "float32", "sequence of float32", … */
static const char *kind_prefix(const kelp_value *value) {
    switch (kelp_value_kind_of(value)) {
    case KELP_VALUE_SEQUENCE:
        return "sequence of ";
    case KELP_VALUE_OPTIONAL:
        return "optional ";
    case KELP_VALUE_MAP:
        return "map of ";
    case KELP_VALUE_SPARSE:
        return "sparse ";
    case KELP_VALUE_UNKNOWN:
    case KELP_VALUE_TENSOR:
        break;
    }
    return "";
}

typedef struct plan {
    bool made;
    kelp_engine_stats engine;
    kelp_plan_stats stats;
} plan;

static kelp_status *make_plan(const inspect_options *o, kelp_cli_model *model, plan *out) {
    kelp_inputs inputs = {0};
    kelp_status *status = kelp_inputs_init(&inputs, kelp_engine_input(model->engine, 0),
                                           kelp_engine_input_count(model->engine), NULL, &o->shapes,
                                           NULL, KELP_FILL_ZERO);
    if (status == NULL)
        status = kelp_inputs_bind(&inputs, model->context);
    if (status == NULL)
        status = kelp_context_prepare(model->context);
    if (status == NULL) {
        out->made = true;
        out->engine = kelp_engine_get_stats(model->engine);
        out->stats = kelp_context_plan_stats(model->context);
    }
    kelp_inputs_deinit(&inputs);
    return status;
}

/* ---- text ---- */

static void text_values(const char *title, const kelp_block *block, bool inputs, kelp_buf *out) {
    kelp_table table;
    kelp_table_init(&table, 3);
    size_t count = inputs ? kelp_block_input_count(block) : kelp_block_output_count(block);
    for (size_t i = 0; i < count; i++) {
        const kelp_value *value = inputs ? kelp_block_input(block, i) : kelp_block_output(block, i);
        kelp_buf shape;
        kelp_buf_init(&shape, kelp_allocator_system());
        put_shape(value, &shape);
        const char *text = kelp_buf_cstr(&shape);
        kelp_table_cell(&table, "%s", kelp_value_name(value));
        kelp_table_cell(&table, "%s%s", kind_prefix(value),
                        kelp_dtype_name(kelp_value_dtype(value)));
        kelp_table_cell(&table, "%s", text != NULL ? text : "?");
        kelp_buf_deinit(&shape);
    }
    kelp_buf_printf(out, "%s\n", title);
    kelp_table_plain(&table, "  ", out);
}

static void text_model(const kelp_graph *graph, kelp_buf *out) {
    kelp_graph_info info = kelp_graph_get_info(graph);
    char bytes[32];
    kelp_buf_printf(out,
                    "%s\n  graph       %s\n  producer    %s %s\n  IR version  %lld\n  opsets      ",
                    info.label, info.graph_name, info.producer_name, info.producer_version,
                    (long long)info.ir_version);
    for (size_t i = 0; i < kelp_graph_opset_count(graph); i++) {
        const char *domain;
        int64_t version;
        kelp_graph_opset(graph, i, &domain, &version);
        kelp_buf_printf(out, "%s%s %lld", i ? ", " : "", *domain ? domain : "ai.onnx",
                        (long long)version);
    }
    kelp_buf_printf(out, "\n  parameters  %zu (%s)\n  nodes       %zu\n", info.parameter_count,
                    kelp_cli_bytes(info.parameter_bytes, bytes), info.node_count);
    for (size_t i = 0; i < info.metadata_count; i++) {
        const char *key, *value;
        kelp_graph_metadata(graph, i, &key, &value);
        kelp_buf_printf(out, "  %s: %.*s\n", key, (int)strcspn(value, "\r\n"), value);
    }
    text_values("inputs", kelp_graph_main(graph), true, out);
    text_values("outputs", kelp_graph_main(graph), false, out);
}

static void text_operators(const survey *s, op_row *const *rows, kelp_buf *out) {
    kelp_table table;
    kelp_table_init(&table, 4);
    for (size_t i = 0; i < s->rows.count; i++) {
        kelp_table_cell(&table, "%s%s%s", rows[i]->domain, *rows[i]->domain ? "." : "",
                        rows[i]->op_type);
        kelp_table_cell(&table, "opset %lld", (long long)rows[i]->version);
        kelp_table_cell(&table, "x%zu", rows[i]->count);
        kelp_table_cell(&table, "%s", rows[i]->backend != NULL ? rows[i]->backend : "UNSUPPORTED");
    }
    kelp_buf_append_cstr(out, "operators\n");
    kelp_table_plain(&table, "  ", out);
}

static void text_plan(const plan *p, kelp_buf *out) {
    KELP_ASSERT(p->made);
    char a[32], b[32], c[32], d[32], e[32];
    kelp_buf_printf(
        out,
        "schedule\n  nodes       %zu loaded, %zu after folding and fusion\n  steps       %zu "
        "kernels, %zu views, %zu folded, %zu with data-dependent shapes\n  weights     %s mapped "
        "from the file, %s packed\n  workspace   %s (%s live at the same time, %s without reuse)\n",
        p->engine.nodes_loaded, p->engine.nodes_planned, p->stats.steps, p->stats.views,
        p->stats.folded, p->stats.dynamic_steps, kelp_cli_bytes(p->engine.weight_bytes_borrowed, a),
        kelp_cli_bytes(p->engine.weight_bytes_packed, b),
        kelp_cli_bytes(p->stats.workspace_bytes, c),
        kelp_cli_bytes(p->stats.workspace_lower_bound_bytes, d),
        kelp_cli_bytes(p->stats.activation_bytes, e));
}

/* Appends the names of the inputs or outputs of a body. */
static void text_names(const kelp_block *body, bool inputs, kelp_buf *out) {
    size_t count = inputs ? kelp_block_input_count(body) : kelp_block_output_count(body);
    for (size_t i = 0; i < count; i++)
        kelp_buf_printf(
            out, "%s%s", i ? ", " : "",
            kelp_value_name(inputs ? kelp_block_input(body, i) : kelp_block_output(body, i)));
}

static void text_subgraphs(const kelp_engine *engine, kelp_buf *out) {
    size_t count = kelp_engine_subgraph_count(engine);
    if (count > 0)
        kelp_buf_append_cstr(out, "subgraphs\n");
    for (size_t i = 0; i < count; i++) {
        kelp_subgraph_info subgraph = kelp_engine_subgraph(engine, i);
        kelp_buf_printf(out, "  %s  %s, %zu nodes: ", subgraph.name, subgraph.provider,
                        kelp_block_node_count(subgraph.body));
        text_names(subgraph.body, true, out);
        kelp_buf_append_cstr(out, " -> ");
        text_names(subgraph.body, false, out);
        kelp_buf_append_char(out, '\n');
    }
}

/* ---- JSON ---- */

static void json_u64(kelp_json_writer *w, const char *key, uint64_t value) {
    kelp_json_key(w, key);
    kelp_json_put_u64(w, value);
}

static void json_text(kelp_json_writer *w, const char *key, const char *value) {
    kelp_json_key(w, key);
    if (value != NULL)
        kelp_json_put_cstr(w, value);
    else
        kelp_json_put_null(w);
}

static void json_value(kelp_json_writer *w, const kelp_value *value) {
    kelp_json_begin_object(w);
    json_text(w, "name", kelp_value_name(value));
    kelp_json_key(w, "type");
    char type[64];
    snprintf(type, sizeof type, "%s%s", kind_prefix(value),
             kelp_dtype_name(kelp_value_dtype(value)));
    kelp_json_put_cstr(w, type);
    kelp_json_key(w, "shape");
    int32_t rank = kelp_value_rank(value);
    if (rank < 0) {
        kelp_json_put_null(w);
    } else {
        kelp_json_begin_array(w);
        for (int32_t axis = 0; axis < rank; axis++) {
            const char *symbol = NULL;
            int64_t dim = kelp_value_dim(value, axis, &symbol);
            if (dim < 0 && symbol != NULL && *symbol)
                kelp_json_put_cstr(w, symbol);
            else
                kelp_json_put_i64(w, dim);
        }
        kelp_json_end_array(w);
    }
    kelp_json_end_object(w);
}

static void json_model(kelp_json_writer *w, const kelp_graph *graph) {
    kelp_graph_info info = kelp_graph_get_info(graph);
    const kelp_block *block = kelp_graph_main(graph);
    json_text(w, "file", info.label);
    json_text(w, "graph", info.graph_name);
    json_text(w, "producer", info.producer_name);
    json_text(w, "producer_version", info.producer_version);
    kelp_json_key(w, "ir_version");
    kelp_json_put_i64(w, info.ir_version);
    kelp_json_key(w, "opsets");
    kelp_json_begin_object(w);
    for (size_t i = 0; i < kelp_graph_opset_count(graph); i++) {
        const char *domain;
        int64_t version;
        kelp_graph_opset(graph, i, &domain, &version);
        kelp_json_key(w, *domain ? domain : "ai.onnx");
        kelp_json_put_i64(w, version);
    }
    kelp_json_end_object(w);
    json_u64(w, "nodes", info.node_count);
    json_u64(w, "parameters", info.parameter_count);
    json_u64(w, "parameter_bytes", info.parameter_bytes);
    kelp_json_key(w, "inputs");
    kelp_json_begin_array(w);
    for (size_t i = 0; i < kelp_block_input_count(block); i++)
        json_value(w, kelp_block_input(block, i));
    kelp_json_end_array(w);
    kelp_json_key(w, "outputs");
    kelp_json_begin_array(w);
    for (size_t i = 0; i < kelp_block_output_count(block); i++)
        json_value(w, kelp_block_output(block, i));
    kelp_json_end_array(w);
}

static void json_operators(kelp_json_writer *w, const survey *s, op_row *const *rows) {
    kelp_json_key(w, "operators");
    kelp_json_begin_array(w);
    for (size_t i = 0; i < s->rows.count; i++) {
        kelp_json_begin_object(w);
        json_text(w, "domain", *rows[i]->domain ? rows[i]->domain : "ai.onnx");
        json_text(w, "op_type", rows[i]->op_type);
        kelp_json_key(w, "opset");
        kelp_json_put_i64(w, rows[i]->version);
        json_u64(w, "count", rows[i]->count);
        json_text(w, "covered_by", rows[i]->backend);
        kelp_json_end_object(w);
    }
    kelp_json_end_array(w);
}

static void json_names(kelp_json_writer *w, const char *key, const kelp_block *body, bool inputs) {
    size_t count = inputs ? kelp_block_input_count(body) : kelp_block_output_count(body);
    kelp_json_key(w, key);
    kelp_json_begin_array(w);
    for (size_t i = 0; i < count; i++)
        kelp_json_put_cstr(
            w, kelp_value_name(inputs ? kelp_block_input(body, i) : kelp_block_output(body, i)));
    kelp_json_end_array(w);
}

static void json_subgraphs(kelp_json_writer *w, const kelp_engine *engine) {
    size_t count = engine != NULL ? kelp_engine_subgraph_count(engine) : 0;
    kelp_json_key(w, "parts");
    kelp_json_begin_array(w);
    for (size_t i = 0; i < count; i++) {
        kelp_subgraph_info subgraph = kelp_engine_subgraph(engine, i);
        kelp_json_begin_object(w);
        json_text(w, "name", subgraph.name);
        json_text(w, "provider", subgraph.provider);
        json_u64(w, "nodes", kelp_block_node_count(subgraph.body));
        json_names(w, "inputs", subgraph.body, true);
        json_names(w, "outputs", subgraph.body, false);
        kelp_json_end_object(w);
    }
    kelp_json_end_array(w);
}

static void json_plan(kelp_json_writer *w, const plan *p) {
    kelp_json_key(w, "plan");
    if (!p->made) {
        kelp_json_put_null(w);
        return;
    }
    kelp_json_begin_object(w);
    json_u64(w, "nodes_planned", p->engine.nodes_planned);
    json_u64(w, "weight_bytes_borrowed", p->engine.weight_bytes_borrowed);
    json_u64(w, "weight_bytes_packed", p->engine.weight_bytes_packed);
    json_u64(w, "steps", p->stats.steps);
    json_u64(w, "views", p->stats.views);
    json_u64(w, "folded", p->stats.folded);
    json_u64(w, "dynamic_steps", p->stats.dynamic_steps);
    json_u64(w, "workspace_bytes", p->stats.workspace_bytes);
    json_u64(w, "workspace_lower_bound_bytes", p->stats.workspace_lower_bound_bytes);
    json_u64(w, "activation_bytes", p->stats.activation_bytes);
    kelp_json_end_object(w);
}

/* Returns true if an input has a dynamic dimension or is not a tensor. A failed run with dimensions
 * of 1 does not mean that such a model is not supported. */
static bool has_dynamic_inputs(const kelp_block *block) {
    for (size_t i = 0; i < kelp_block_input_count(block); i++) {
        const kelp_value *value = kelp_block_input(block, i);
        if (kelp_value_kind_of(value) != KELP_VALUE_TENSOR)
            return true;
        for (int32_t axis = 0; axis < kelp_value_rank(value); axis++)
            if (kelp_value_dim(value, axis, NULL) < 0)
                return true;
    }
    return false;
}

/* Reports why there is no memory plan, and frees the status. */
static void report_no_plan(const char *path, kelp_status *take_reason) {
    char text[1024];
    kelp_status_format(take_reason, text, sizeof text);
    fprintf(stderr,
            "kelp: no memory plan for '%s' with dynamic dimensions of 1; specify shapes with "
            "'--shape NAME=1x3x48x320': %s\n",
            path, text);
    kelp_status_free(take_reason);
}

static void append(void *userp, const char *text, size_t length) {
    kelp_buf_append(userp, text, length);
}

static kelp_status *inspect(const inspect_options *o, kelp_cli_model *model, survey *s,
                            kelp_buf *text) {
    model->plugin = o->plugin;
    model->engine_only = true; /* a plan file may have no weights */
    KELP_TRY(kelp_cli_model_load(o->positionals.items[0], 1, model));
    if (model->graph == NULL) { /* a plan file */
        KELP_TRY(kelp_engine_inspect(model->engine, o->json, append, text));
        return kelp_cli_print(text);
    }
    s->graph = model->graph;
    s->registry = kelp_runtime_opsets(model->runtime);
    kelp_status *not_ready =
        o->providers != NULL ? NULL : kelp_opset_check_ready(s->registry, model->graph);
    kelp_status *no_plan = NULL;
    plan p = {0};
    if (not_ready == NULL) {
        model->providers = o->providers;
        not_ready = kelp_cli_model_build(model, true);
    }
    if (not_ready == NULL)
        no_plan = make_plan(o, model, &p);
    bool shapes_unknown = o->shapes.count == 0 && has_dynamic_inputs(kelp_graph_main(model->graph));
    if (no_plan != NULL && !shapes_unknown) {
        not_ready = no_plan;
        no_plan = NULL;
    }
    op_row **rows = NULL;
    kelp_status *status = survey_rows(s, &rows); /* with libraries that the engine found */
    if (status != NULL) {
        kelp_status_free(not_ready);
        kelp_status_free(no_plan);
        return status;
    }
    if (o->json) {
        kelp_json_writer writer;
        kelp_json_writer_init(&writer, text);
        kelp_json_begin_object(&writer);
        json_model(&writer, model->graph);
        json_operators(&writer, s, rows);
        kelp_json_key(&writer, "ready");
        kelp_json_put_bool(&writer, not_ready == NULL);
        json_plan(&writer, &p);
        json_subgraphs(&writer, model->engine);
        kelp_json_end_object(&writer);
        kelp_buf_append_char(text, '\n');
    } else {
        text_model(model->graph, text);
        text_operators(s, rows, text);
        if (p.made)
            text_plan(&p, text);
        if (p.made)
            text_subgraphs(model->engine, text);
    }
    kelp_status *printed = kelp_cli_print(text);
    if (no_plan != NULL)
        report_no_plan(o->positionals.items[0], no_plan);
    if (not_ready == NULL)
        return printed;
    kelp_status_free(printed);
    return KELP_ANNOTATE(not_ready, "'%s' cannot run", o->positionals.items[0]);
}

static int run(const kelp_command *command, void *options) {
    (void)command;
    kelp_allocator allocator = kelp_allocator_system();
    kelp_cli_model model = {0};
    survey s = {0};
    kelp_arena_init(&s.arena, allocator, 0);
    kelp_map_init(&s.rows, allocator);
    kelp_buf text;
    kelp_buf_init(&text, allocator);
    kelp_status *status = inspect(options, &model, &s, &text);
    kelp_buf_deinit(&text);
    kelp_map_deinit(&s.rows);
    kelp_arena_deinit(&s.arena);
    kelp_cli_model_deinit(&model);
    return kelp_cli_finish(status);
}

const kelp_command kelp_cmd_inspect = {
    .name = "inspect",
    .summary = "show the structure of a model and whether it is supported",
    .usage = "MODEL.onnx|FILE.plan [options]",
    .details = "Prints inputs, outputs, opsets, operators with their providers, parameters and the "
               "memory plan.\nIf nodes are not supported, all of them are listed and the exit code "
               "is 1. For a plan file, prints\nlayers, profiles and refittable weights.",
    .examples = "  kelp inspect examples/models/digits/1/model.onnx\n"
                "  kelp inspect model.onnx --shape ids=8x128\n"
                "  kelp inspect model.onnx --json",
    .positional = "MODEL.onnx",
    .min_positionals = 1,
    .max_positionals = 1,
    .tables = KELP_ARG_TABLE(specs),
    .options_bytes = sizeof(inspect_options),
    .run = run,
};
