/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a model on two providers and compares the results. */
#include "cli/compare/compare.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/fs.h"
#include "cli/cli.h"
#include "cli/show.h"

#include <kelp/compute.h>

#include <math.h>

#define PEER "onnxruntime"

/* ---- tensors ---- */
static void describe(const kelp_tensor *tensor, char *out, size_t capacity) {
    char shape[48];
    (void)kelp_shape_format(tensor->rank, tensor->shape, shape, sizeof shape);
    snprintf(out, capacity, "%s %s", kelp_dtype_name(tensor->dtype), shape);
}

static bool same_shape(const kelp_tensor *a, const kelp_tensor *b) {
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (int32_t axis = 0; same && axis < a->rank; axis++)
        same = a->shape[axis] == b->shape[axis];
    return same;
}

static void compare_reals(kelp_difference *d, double found, double expected, double rtol,
                          double atol) {
    if ((isnan(found) && isnan(expected)) || found == expected)
        return;
    double abs_difference = fabs(found - expected), size = fabs(expected);
    if (!(abs_difference <= atol + rtol * size))
        d->differing++;
    d->max_abs = fmax(d->max_abs, isnan(abs_difference) ? INFINITY : abs_difference);
    if (size > 0)
        d->max_rel = fmax(d->max_rel, isnan(abs_difference) ? INFINITY : abs_difference / size);
}

static bool same_element(const kelp_tensor *a, const kelp_tensor *b, size_t i) {
    if (a->dtype == KELP_STRING) {
        kelp_string x = ((const kelp_string *)a->data)[i], y = ((const kelp_string *)b->data)[i];
        return kelp_str_equal((kelp_str){x.data, x.length}, (kelp_str){y.data, y.length});
    }
    size_t bits = kelp_dtype_bits(a->dtype), first = i * bits / 8;
    return memcmp((const char *)a->data + first, (const char *)b->data + first,
                  KELP_MAX(bits / 8, (size_t)1)) == 0;
}

kelp_difference kelp_difference_of(const char *name, const kelp_tensor *found,
                                   const kelp_tensor *expected, double rtol, double atol) {
    kelp_difference d = {.name = name, .dtype = expected->dtype};
    if (!same_shape(found, expected)) {
        describe(found, d.found, sizeof d.found);
        describe(expected, d.expected, sizeof d.expected);
        return d;
    }
    d.elements = kelp_tensor_elements(expected);
    for (int64_t i = 0; i < d.elements; i++) {
        double a, b;
        int64_t x, y;
        if (kelp_show_real(found, (size_t)i, &a) && kelp_show_real(expected, (size_t)i, &b)) {
            compare_reals(&d, a, b, rtol, atol);
        } else if (!same_element(found, expected, (size_t)i)) {
            d.differing++;
            if (kelp_show_whole(found, (size_t)i, &x) && kelp_show_whole(expected, (size_t)i, &y))
                d.max_abs = fmax(d.max_abs, fabs((double)x - (double)y));
        }
    }
    return d;
}

/* ---- a model of a provider ---- */
typedef struct side {
    kelp_compute_model *model;
    const kelp_compute_metadata *metadata;
    kelp_tensor *inputs, *outputs;
} side;

static void side_deinit(side *s) {
    kelp_allocator allocator = kelp_allocator_system();
    if (s->model != NULL) {
        kelp_free(allocator, s->inputs, s->metadata->input_count * sizeof *s->inputs);
        kelp_free(allocator, s->outputs, s->metadata->output_count * sizeof *s->outputs);
    }
    kelp_compute_destroy(s->model);
}

/* Finds the array of an input by name: providers may order inputs differently. */
static kelp_status *bind(side *s, const kelp_cli_model *model, const kelp_inputs *inputs) {
    for (size_t i = 0; i < s->metadata->input_count; i++) {
        const char *name = s->metadata->inputs[i].name;
        size_t at = 0;
        while (at < inputs->count && strcmp(kelp_engine_input(model->engine, at)->name, name) != 0)
            at++;
        if (at == inputs->count)
            return KELP_ERROR(KELP_UNIMPLEMENTED, "ONNX Runtime has another input, '%s'", name);
        s->inputs[i] = inputs->arrays[at].tensor;
    }
    return NULL;
}

static kelp_status *side_run(side *s, const char *provider, const kelp_artifact *artifact,
                             const kelp_cli_model *model, const kelp_inputs *inputs) {
    kelp_allocator allocator = kelp_allocator_system();
    KELP_TRY(kelp_compute_load(model->runtime, provider, artifact, &s->model));
    s->metadata = kelp_compute_metadata_of(s->model);
    KELP_TRY(kelp_compute_init(s->model));
    KELP_TRY(kelp_alloc_zero(allocator, s->metadata->input_count, sizeof *s->inputs,
                             (void **)&s->inputs));
    KELP_TRY(kelp_alloc_zero(allocator, s->metadata->output_count, sizeof *s->outputs,
                             (void **)&s->outputs));
    KELP_TRY(bind(s, model, inputs));
    kelp_infer_item item = {.inputs = s->inputs, .outputs = s->outputs};
    return kelp_compute_infer_one(s->model, &item);
}

static const kelp_tensor *side_output(const side *s, const char *name) {
    for (size_t i = 0; i < s->metadata->output_count; i++)
        if (strcmp(s->metadata->outputs[i].name, name) == 0)
            return &s->outputs[i];
    return NULL;
}

/* ---- intermediate values ---- */
typedef struct node_search {
    const kelp_compare_options *options;
    const kelp_cli_model *model;
    const kelp_inputs *inputs;
    kelp_comparison *out;
} node_search;

/* Compares the values in the order of the nodes, until one differs. */
static void find_first(const node_search *search, const kelp_exposed_value *values, size_t count,
                       const side *own, const side *peer) {
    kelp_comparison *out = search->out;
    for (size_t i = 0; i < count && out->node_op == NULL; i++) {
        const kelp_tensor *found = side_output(own, values[i].name);
        const kelp_tensor *expected = side_output(peer, values[i].name);
        if (found == NULL || expected == NULL)
            continue;
        out->compared_values++;
        kelp_difference d = kelp_difference_of(values[i].name, found, expected,
                                               search->options->rtol, search->options->atol);
        if (!kelp_difference_is(&d))
            continue;
        out->node = d;
        out->node_op = values[i].op_type;
        out->node_name = values[i].node;
    }
}

static kelp_status *search_model(const node_search *search, kelp_str file, kelp_buf *exposed) {
    kelp_exposed_value *values = NULL;
    size_t count = 0;
    const kelp_model_options *options = search->options->model;
    side own = {0}, peer = {0};
    KELP_TRY(kelp_expose_values(file, search->model->graph, &search->out->strings, &values, &count,
                                exposed));
    kelp_artifact artifact = {.data = exposed->data,
                              .size_bytes = exposed->length,
                              .label = search->options->path,
                              .providers = options->providers};
    (void)kelp_precision_parse(options->precision, &artifact.precision); /* one of the choices */
    kelp_status *status = side_run(&own, "cpu", &artifact, search->model, search->inputs);
    if (status == NULL)
        status = side_run(&peer, PEER, &artifact, search->model, search->inputs);
    if (status == NULL)
        find_first(search, values, count, &own, &peer);
    side_deinit(&own);
    side_deinit(&peer);
    return status;
}

/* Finds the first node that differs. A failure is the reason why the values are not compared. */
static kelp_status *find_node(const node_search *search) {
    kelp_mapping file = {0};
    kelp_buf exposed;
    KELP_TRY(kelp_fs_map(search->options->path, &file));
    kelp_buf_init(&exposed, kelp_allocator_system());
    kelp_status *status = search_model(search, (kelp_str){file.data, file.size_bytes}, &exposed);
    kelp_buf_deinit(&exposed);
    kelp_fs_unmap(&file);
    return status;
}

/* ---- the comparison ---- */
static kelp_status *compare_outputs(const kelp_compare_options *options,
                                    const kelp_cli_model *model, const side *peer,
                                    kelp_comparison *out) {
    out->count = kelp_engine_output_count(model->engine);
    KELP_TRY(kelp_alloc_zero(kelp_allocator_system(), out->count, sizeof *out->outputs,
                             (void **)&out->outputs));
    for (size_t i = 0; i < out->count; i++) {
        const char *name = kelp_engine_output(model->engine, i)->name;
        const kelp_tensor *found = kelp_context_output(model->context, i);
        const kelp_tensor *expected = side_output(peer, name);
        if (found == NULL || expected == NULL)
            return KELP_ERROR(KELP_INTERNAL, "output '%s' is missing", name);
        out->outputs[i] = kelp_difference_of(name, found, expected, options->rtol, options->atol);
        out->differing += kelp_difference_is(&out->outputs[i]);
    }
    return NULL;
}

kelp_status *kelp_compare(const kelp_compare_options *options, const kelp_cli_model *model,
                          const kelp_inputs *inputs, kelp_comparison *out) {
    side peer = {0};
    const kelp_artifact artifact = {.path = options->path, .label = options->path};
    *out = (kelp_comparison){0};
    kelp_arena_init(&out->strings, kelp_allocator_system(), 0);
    if (model->graph == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--compare' requires an ONNX model: '%s' is a plan file",
                          options->path);
    kelp_status *status = side_run(&peer, PEER, &artifact, model, inputs);
    if (status != NULL)
        status = KELP_ANNOTATE(status, "cannot run the model on ONNX Runtime");
    if (status == NULL)
        status = compare_outputs(options, model, &peer, out);
    side_deinit(&peer);
    KELP_TRY(status);
    const node_search search = {options, model, inputs, out};
    if (out->differing > 0)
        out->not_compared = find_node(&search);
    return NULL;
}

void kelp_comparison_deinit(kelp_comparison *comparison) {
    kelp_free(kelp_allocator_system(), comparison->outputs,
              comparison->count * sizeof *comparison->outputs);
    kelp_status_free(comparison->not_compared);
    kelp_arena_deinit(&comparison->strings);
    *comparison = (kelp_comparison){0};
}

/* ---- reports ---- */
static void put_node_text(const kelp_comparison *c, kelp_buf *out) {
    const kelp_difference *d = &c->node;
    if (c->not_compared != NULL) {
        char reason[1024];
        (void)kelp_status_format(c->not_compared, reason, sizeof reason);
        kelp_buf_printf(out, "the intermediate values cannot be compared: %s\n", reason);
    } else if (c->node_op == NULL) {
        kelp_buf_printf(out,
                        "the %zu intermediate values are equal when they are outputs, which "
                        "prevents fusion:\n"
                        "compare with --no-fusion\n",
                        c->compared_values);
    } else if (d->found[0] != '\0') {
        kelp_buf_printf(out,
                        "first differing node: '%s' (%s), output '%s': expected %s, found %s\n",
                        c->node_name, c->node_op, d->name, d->expected, d->found);
    } else {
        kelp_buf_printf(out,
                        "first differing node: '%s' (%s), output '%s': max abs %.3g, max rel %.3g, "
                        "%lld of %lld elements differ\n",
                        c->node_name, c->node_op, d->name, d->max_abs, d->max_rel,
                        (long long)d->differing, (long long)d->elements);
    }
}

void kelp_comparison_put_text(const kelp_comparison *comparison, kelp_buf *out) {
    static const char *const heads[] = {"output",  "type",      "max abs",
                                        "max rel", "differing", "result"};
    kelp_table table;
    kelp_table_init(&table, KELP_COUNT(heads));
    for (size_t i = 0; i < KELP_COUNT(heads); i++)
        kelp_table_cell(&table, "%s", heads[i]);
    for (size_t i = 0; i < comparison->count; i++) {
        const kelp_difference *d = &comparison->outputs[i];
        kelp_table_cell(&table, "%s", d->name);
        kelp_table_cell(&table, "%s", kelp_dtype_name(d->dtype));
        kelp_table_cell(&table, "%.3g", d->max_abs);
        kelp_table_cell(&table, "%.3g", d->max_rel);
        kelp_table_cell(&table, "%lld of %lld", (long long)d->differing, (long long)d->elements);
        if (d->found[0] != '\0')
            kelp_table_cell(&table, "expected %s, found %s", d->expected, d->found);
        else
            kelp_table_cell(&table, "%s", d->differing > 0 ? "different" : "equal");
    }
    kelp_table_plain(&table, "", out);
    if (comparison->differing > 0)
        put_node_text(comparison, out);
}

static void put_difference_json(const kelp_difference *d, kelp_json_writer *w) {
    kelp_json_key(w, "equal");
    kelp_json_put_bool(w, !kelp_difference_is(d));
    if (d->found[0] != '\0') {
        kelp_json_key(w, "expected");
        kelp_json_put_cstr(w, d->expected);
        kelp_json_key(w, "found");
        kelp_json_put_cstr(w, d->found);
        return;
    }
    kelp_json_key(w, "elements");
    kelp_json_put_i64(w, d->elements);
    kelp_json_key(w, "differing");
    kelp_json_put_i64(w, d->differing);
    kelp_json_key(w, "max_abs");
    kelp_json_put_f64(w, d->max_abs);
    kelp_json_key(w, "max_rel");
    kelp_json_put_f64(w, d->max_rel);
}

void kelp_comparison_put_json(const kelp_comparison *comparison, kelp_json_writer *writer) {
    kelp_json_begin_object(writer);
    kelp_json_key(writer, "equal");
    kelp_json_put_bool(writer, comparison->differing == 0);
    kelp_json_key(writer, "outputs");
    kelp_json_begin_array(writer);
    for (size_t i = 0; i < comparison->count; i++) {
        kelp_json_begin_object(writer);
        kelp_json_key(writer, "name");
        kelp_json_put_cstr(writer, comparison->outputs[i].name);
        put_difference_json(&comparison->outputs[i], writer);
        kelp_json_end_object(writer);
    }
    kelp_json_end_array(writer);
    if (comparison->node_op != NULL) {
        kelp_json_key(writer, "first_differing_node");
        kelp_json_begin_object(writer);
        kelp_json_key(writer, "node");
        kelp_json_put_cstr(writer, comparison->node_name);
        kelp_json_key(writer, "operator");
        kelp_json_put_cstr(writer, comparison->node_op);
        kelp_json_key(writer, "output");
        kelp_json_put_cstr(writer, comparison->node.name);
        put_difference_json(&comparison->node, writer);
        kelp_json_end_object(writer);
    }
    kelp_json_end_object(writer);
}
