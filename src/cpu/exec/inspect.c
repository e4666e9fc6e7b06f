/* SPDX-License-Identifier: Apache-2.0 */
/* The inspector: an engine as text or JSON. */
#include "base/alloc.h"
#include "base/text/json.h"
#include "cpu/exec/engine.h"

#include <kelp/engine_provider.h>

#include <string.h>

static void put_dims(kelp_json_writer *json, int32_t rank, const int64_t *shape) {
    if (rank < 0) {
        kelp_json_put_null(json);
        return;
    }
    kelp_json_begin_array(json);
    for (int32_t i = 0; i < rank; i++)
        kelp_json_put_i64(json, shape[i]);
    kelp_json_end_array(json);
}

static void put_value(kelp_json_writer *json, const kelp_value *value) {
    kelp_json_begin_object(json);
    kelp_json_key(json, "name");
    kelp_json_put_cstr(json, value->name != NULL ? value->name : "");
    kelp_json_key(json, "type");
    kelp_json_put_cstr(json, kelp_dtype_name(value->dtype));
    kelp_json_key(json, "shape");
    put_dims(json, value->rank, value->shape);
    if (value->constant != NULL) {
        kelp_json_key(json, "weight_bytes");
        kelp_json_put_u64(json, kelp_tensor_bytes(value->constant));
    }
    kelp_json_end_object(json);
}

static void put_io(kelp_json_writer *json, const char *key, const kelp_io_info *items,
                   size_t count) {
    kelp_json_key(json, key);
    kelp_json_begin_array(json);
    for (size_t i = 0; i < count; i++) {
        kelp_json_begin_object(json);
        kelp_json_key(json, "name");
        kelp_json_put_cstr(json, items[i].name);
        kelp_json_key(json, "type");
        kelp_json_put_cstr(json, kelp_dtype_name(items[i].dtype));
        kelp_json_key(json, "shape");
        put_dims(json, items[i].rank, items[i].shape);
        kelp_json_end_object(json);
    }
    kelp_json_end_array(json);
}

static const char *const bound_names[] = {"min", "opt", "max"};

/* Returns the bounds of the shape or of the values of an input in a profile, or NULL. */
static const kelp_shape *bounds_of(const kelp_cpu_engine *engine, size_t profile, size_t input,
                                   bool values) {
    kelp_shape(*all)[3] = values ? engine->profile_values : engine->profile_shapes;
    const kelp_shape *bounds = all != NULL ? all[profile * engine->input_count + input] : NULL;
    return bounds != NULL && bounds[0].rank >= 0 ? bounds : NULL;
}

static void put_bounds(kelp_json_writer *json, const kelp_shape *bounds) {
    for (int which = 0; bounds != NULL && which < 3; which++) {
        kelp_json_key(json, bound_names[which]);
        put_dims(json, bounds[which].rank, bounds[which].d);
    }
}

static void put_profiles(kelp_json_writer *json, const kelp_cpu_engine *engine) {
    kelp_json_key(json, "profiles");
    kelp_json_begin_array(json);
    for (size_t p = 0; p < engine->profile_count; p++) {
        kelp_json_begin_object(json);
        for (size_t i = 0; i < engine->input_count; i++) {
            const kelp_shape *shape = bounds_of(engine, p, i, false),
                             *values = bounds_of(engine, p, i, true);
            if (shape == NULL && values == NULL)
                continue;
            kelp_json_key(json, engine->inputs[i].name);
            kelp_json_begin_object(json);
            put_bounds(json, shape);
            if (values != NULL) {
                kelp_json_key(json, "values");
                kelp_json_begin_object(json);
                put_bounds(json, values);
                kelp_json_end_object(json);
            }
            kelp_json_end_object(json);
        }
        kelp_json_end_object(json);
    }
    kelp_json_end_array(json);
}

/* Writes the workspace for the largest shapes of each profile, and its lower bound. */
static void put_memory(kelp_json_writer *json, const kelp_cpu_engine *engine) {
    kelp_plan_stats stats;
    kelp_json_key(json, "memory");
    kelp_json_begin_array(json);
    for (size_t p = 0; p < engine->profile_count || p == 0; p++) {
        if (!kelp_cpu_engine_measure(engine, p, &stats)) {
            kelp_json_put_null(json);
            continue;
        }
        kelp_json_begin_object(json);
        kelp_json_key(json, "workspace_bytes");
        kelp_json_put_u64(json, stats.workspace_bytes);
        kelp_json_key(json, "workspace_lower_bound_bytes");
        kelp_json_put_u64(json, stats.workspace_lower_bound_bytes);
        kelp_json_key(json, "activation_bytes");
        kelp_json_put_u64(json, stats.activation_bytes);
        kelp_json_end_object(json);
    }
    kelp_json_end_array(json);
}

static void write_memory(const kelp_cpu_engine *engine, size_t profile, kelp_buf *out) {
    kelp_plan_stats stats;
    if (!kelp_cpu_engine_measure(engine, profile, &stats))
        return;
    if (engine->profile_count > 0)
        kelp_buf_printf(out, "profile %zu, ", profile);
    kelp_buf_printf(out, "workspace%s: %zu bytes, of which %zu live at once; %zu without reuse\n",
                    engine->profile_count > 0 ? "" : " where dynamic dimensions are 1",
                    stats.workspace_bytes, stats.workspace_lower_bound_bytes,
                    stats.activation_bytes);
}

static void put_layers(kelp_json_writer *json, const kelp_block *block) {
    kelp_json_key(json, "layers");
    kelp_json_begin_array(json);
    for (size_t n = 0; n < block->node_count; n++) {
        const kelp_node *node = block->nodes[n];
        kelp_json_begin_object(json);
        kelp_json_key(json, "name");
        kelp_json_put_cstr(json, node->name);
        kelp_json_key(json, "type");
        kelp_json_put_cstr(json, node->op->name);
        if (*node->op->domain != '\0') {
            kelp_json_key(json, "domain");
            kelp_json_put_cstr(json, node->op->domain);
        }
        kelp_json_key(json, "inputs");
        kelp_json_begin_array(json);
        for (size_t i = 0; i < node->input_count; i++)
            if (node->inputs[i] != NULL)
                put_value(json, node->inputs[i]);
        kelp_json_end_array(json);
        kelp_json_key(json, "outputs");
        kelp_json_begin_array(json);
        for (size_t i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NULL)
                put_value(json, node->outputs[i]);
        kelp_json_end_array(json);
        kelp_json_end_object(json);
    }
    kelp_json_end_array(json);
}

/* Returns the bytes of the image's packed weights that kernels use. */
static size_t taken_bytes(const kelp_cpu_engine *engine) {
    size_t bytes = 0;
    if (engine->packs != NULL)
        (void)kelp_cpu_packs_taken(engine->packs, &bytes);
    return bytes;
}

static void write_json(const kelp_cpu_engine *engine, kelp_buf *out) {
    kelp_json_writer json;
    kelp_engine_stats stats = kelp_cpu_engine_stats(engine);
    kelp_json_writer_init(&json, out);
    kelp_json_begin_object(&json);
    kelp_json_key(&json, "provider");
    kelp_json_put_cstr(&json, "cpu");
    kelp_json_key(&json, "name");
    kelp_json_put_cstr(&json, engine->graph->info.graph_name);
    put_io(&json, "inputs", engine->inputs, engine->input_count);
    put_io(&json, "outputs", engine->outputs, engine->output_count);
    put_profiles(&json, engine);
    put_memory(&json, engine);
    kelp_json_key(&json, "weight_bytes_borrowed");
    kelp_json_put_u64(&json, stats.weight_bytes_borrowed);
    kelp_json_key(&json, "weight_bytes_packed");
    kelp_json_put_u64(&json, stats.weight_bytes_packed);
    kelp_json_key(&json, "weight_bytes_packed_in_plan");
    kelp_json_put_u64(&json, taken_bytes(engine));
    kelp_json_key(&json, "stripped");
    kelp_json_put_bool(&json, kelp_cpu_engine_is_stripped(engine));
    kelp_json_key(&json, "refittable");
    kelp_json_begin_array(&json);
    for (size_t i = 0; i < engine->refittable_count; i++)
        kelp_json_put_cstr(&json, engine->refittable[i]);
    kelp_json_end_array(&json);
    put_layers(&json, engine->graph->main);
    kelp_json_end_object(&json);
    kelp_buf_append_char(out, '\n');
}

static void write_values(kelp_buf *out, kelp_value *const *values, size_t count) {
    char shape[160];
    for (size_t i = 0; i < count; i++) {
        if (values[i] == NULL)
            continue;
        kelp_shape_format(values[i]->rank, values[i]->shape, shape, sizeof shape);
        kelp_buf_printf(out, " %s%s%s", values[i]->constant != NULL ? "*" : "",
                        kelp_dtype_name(values[i]->dtype), values[i]->rank < 0 ? "[?]" : shape);
    }
}

static void write_bounds(const kelp_cpu_engine *engine, size_t profile, size_t input, bool values,
                         kelp_buf *out) {
    const kelp_shape *bounds = bounds_of(engine, profile, input, values);
    char text[160];
    if (bounds == NULL)
        return;
    kelp_buf_printf(out, "profile %zu, %s%s:", profile, values ? "values of " : "",
                    engine->inputs[input].name);
    for (int which = 0; which < 3; which++) {
        kelp_shape_format(bounds[which].rank, bounds[which].d, text, sizeof text);
        kelp_buf_printf(out, " %s %s", bound_names[which], text);
    }
    kelp_buf_append_char(out, '\n');
}

static void write_text(const kelp_cpu_engine *engine, kelp_buf *out) {
    const kelp_block *block = engine->graph->main;
    kelp_engine_stats stats = kelp_cpu_engine_stats(engine);
    kelp_buf_printf(out,
                    "engine '%s', provider cpu: %zu layers, %zu bytes of weights in place, %zu "
                    "packed, %zu packed in the plan, %zu refittable%s\n",
                    engine->graph->info.graph_name, stats.nodes_planned,
                    stats.weight_bytes_borrowed, stats.weight_bytes_packed, taken_bytes(engine),
                    engine->refittable_count,
                    kelp_cpu_engine_is_stripped(engine) ? ", stripped of these" : "");
    for (size_t p = 0; p < engine->profile_count; p++)
        for (size_t i = 0; i < engine->input_count; i++) {
            write_bounds(engine, p, i, false, out);
            write_bounds(engine, p, i, true, out);
        }
    for (size_t p = 0; p < engine->profile_count || p == 0; p++)
        write_memory(engine, p, out);
    for (size_t n = 0; n < block->node_count; n++) {
        const kelp_node *node = block->nodes[n];
        kelp_buf_printf(out, "%5zu %-20s %s:", n, node->op->name, node->name);
        write_values(out, node->inputs, node->input_count);
        kelp_buf_append_cstr(out, " ->");
        write_values(out, node->outputs, node->output_count);
        kelp_buf_append_char(out, '\n');
    }
}

kelp_status *kelp_cpu_engine_inspect(const kelp_cpu_engine *engine, bool json,
                                     void (*write)(void *userp, const char *text, size_t length),
                                     void *userp) {
    kelp_buf out;
    kelp_buf_init(&out, engine->allocator);
    if (json)
        write_json(engine, &out);
    else
        write_text(engine, &out);
    kelp_status *status = kelp_buf_status(&out);
    if (status == NULL)
        write(userp, out.data, out.length);
    kelp_buf_deinit(&out);
    return status;
}
