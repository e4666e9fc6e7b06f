/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The null provider for engines: real names, types and shapes, outputs of zeros. To write an engine
 * provider, copy this file and replace what is between build and null_invoke.
 *
 * An engine image is "KELPNULL" and JSON that lists inputs, outputs and profiles.
 */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/text/json.h"
#include "builder/network.h"
#include "builder/builder.h"
#include "null/provider.h"
#include "null/shape.h"
#include "runtime/runtime.h"

#include <string.h>

static const char magic[8] = {'K', 'E', 'L', 'P', 'N', 'U', 'L', 'L'};

/* ---- build ---- */
static void put_tensors(kelp_json_writer *json, const char *key, kelp_net_tensor *const *tensors,
                        size_t count) {
    kelp_json_key(json, key);
    kelp_json_begin_array(json);
    for (size_t i = 0; i < count; i++) {
        kelp_shape shape = kelp_net_tensor_dims(tensors[i]);
        kelp_json_begin_object(json);
        kelp_json_key(json, "name");
        kelp_json_put_cstr(json, tensors[i]->name);
        kelp_json_key(json, "type");
        kelp_json_put_cstr(json, kelp_dtype_name(kelp_net_tensor_dtype(tensors[i])));
        kelp_json_key(json, "shape");
        kelp_json_begin_array(json);
        for (int32_t axis = 0; axis < shape.rank; axis++)
            kelp_json_put_i64(json, shape.d[axis]);
        kelp_json_end_array(json);
        kelp_json_end_object(json);
    }
    kelp_json_end_array(json);
}

static const char *const selectors[3] = {"min", "opt", "max"}; /* by kelp_profile_selector */

static kelp_status *put_profile(kelp_json_writer *json, const kelp_builder_config *config,
                                size_t index) {
    const kelp_profile_shape *entries = NULL;
    size_t count = kelp_builder_config_profile(config, index, &entries);
    kelp_json_begin_object(json);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].has_values)
            return KELP_ERROR(KELP_UNIMPLEMENTED,
                              "profile %zu: provider 'null' does not read the values of input '%s'",
                              index, entries[i].input);
        kelp_json_key(json, entries[i].input);
        kelp_json_begin_object(json);
        for (int which = 0; which < 3; which++) {
            kelp_json_key(json, selectors[which]);
            kelp_json_begin_array(json);
            for (int32_t axis = 0; axis < entries[i].shapes[which].rank; axis++)
                kelp_json_put_i64(json, entries[i].shapes[which].d[axis]);
            kelp_json_end_array(json);
        }
        kelp_json_end_object(json);
    }
    kelp_json_end_object(json);
    return NULL;
}

static kelp_status *put_profiles(kelp_json_writer *json, const kelp_builder_config *config) {
    kelp_json_key(json, "profiles");
    kelp_json_begin_array(json);
    for (size_t i = 0; i < kelp_builder_config_profile_count(config); i++)
        KELP_TRY(put_profile(json, config, i));
    kelp_json_end_array(json);
    return NULL;
}

static kelp_status *null_build(void *self, kelp_runtime *runtime, const kelp_network *network,
                               kelp_builder_config *config, kelp_blob **out_plan) {
    kelp_json_writer json;
    kelp_buf plan;
    (void)self;
    if (!kelp_builder_config_progress(config, "serializing", "building", 0, 1))
        return KELP_ERROR(KELP_CANCELLED, "the build was cancelled by its progress callback");
    kelp_buf_init(&plan, runtime->allocator);
    kelp_buf_append(&plan, magic, sizeof magic);
    kelp_json_writer_init(&json, &plan);
    kelp_json_begin_object(&json);
    put_tensors(&json, "inputs", network->inputs, network->input_count);
    put_tensors(&json, "outputs", network->outputs, network->output_count);
    kelp_status *status = put_profiles(&json, config);
    kelp_json_end_object(&json);
    if (status == NULL)
        status = kelp_buf_status(&plan);
    if (status == NULL)
        status = kelp_blob_of(&plan, out_plan);
    kelp_buf_deinit(&plan);
    return status;
}

/* ---- engines ---- */
typedef struct null_engine {
    kelp_allocator allocator;
    kelp_arena arena; /* names */
    kelp_io_info *inputs, *outputs;
    size_t input_count, output_count;
    kelp_shape (*profiles)[3]; /* [profile_count * input_count] */
    size_t profile_count;
} null_engine;

static void null_destroy_engine(void *userp) {
    null_engine *engine = userp;
    kelp_allocator allocator = engine->allocator;
    kelp_arena_deinit(&engine->arena);
    kelp_free(allocator, engine, sizeof *engine);
}

static kelp_status *read_tensor(null_engine *engine, const kelp_json *json, const char *label,
                                kelp_io_info *out) {
    const kelp_json *name = kelp_json_get(json, "name"), *type = kelp_json_get(json, "type"),
                    *shape = kelp_json_get(json, "shape");
    char text[32] = "";
    if (name == NULL || name->type != KELP_JSON_STRING || type == NULL ||
        type->type != KELP_JSON_STRING || type->string.length >= sizeof text || shape == NULL ||
        shape->type != KELP_JSON_ARRAY || shape->count > KELP_MAX_RANK)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: expected a tensor with a name, a type and a shape of at most %d "
                          "dimensions",
                          label, KELP_MAX_RANK);
    memcpy(text, type->string.data, type->string.length);
    out->name = kelp_arena_strndup(&engine->arena, name->string.data, name->string.length);
    out->dtype = kelp_dtype_parse(text);
    if (out->name == NULL)
        return kelp_status_oom();
    if (out->dtype == KELP_DTYPE_INVALID)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: tensor '%s' has no known type: '%s'", label,
                          out->name, text);
    for (const kelp_json *dim = shape->child; dim != NULL; dim = dim->next)
        out->shape[out->rank++] = dim->i64 < 0 ? -1 : dim->i64;
    return NULL;
}

static kelp_status *read_tensors(null_engine *engine, const kelp_json *list, const char *label,
                                 kelp_io_info **out, size_t *out_count) {
    size_t count = list != NULL && list->type == KELP_JSON_ARRAY ? list->count : 0;
    *out = KELP_ARENA_ARRAY(&engine->arena, count + 1, kelp_io_info);
    if (*out == NULL)
        return kelp_status_oom();
    for (const kelp_json *item = count > 0 ? list->child : NULL; item != NULL; item = item->next)
        KELP_TRY(read_tensor(engine, item, label, &(*out)[(*out_count)++]));
    return NULL;
}

/* Bounds of one input in one profile. */
static kelp_status *read_bounds(const kelp_json *json, const char *label, kelp_shape out[3]) {
    for (int which = 0; which < 3; which++) {
        const kelp_json *list = kelp_json_get(json, selectors[which]);
        if (list == NULL || list->type != KELP_JSON_ARRAY || list->count > KELP_MAX_RANK)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "%s: expected '%s' of at most %d dimensions for each input of a "
                              "profile",
                              label, selectors[which], KELP_MAX_RANK);
        out[which].rank = 0;
        for (const kelp_json *dim = list->child; dim != NULL; dim = dim->next)
            out[which].d[out[which].rank++] = dim->i64;
    }
    return NULL;
}

static kelp_status *read_profiles(null_engine *engine, const kelp_json *list, const char *label) {
    size_t count = list != NULL && list->type == KELP_JSON_ARRAY ? list->count : 0, bounds;
    if (!kelp_size_mul(count, engine->input_count, &bounds))
        return kelp_status_oom();
    engine->profiles = kelp_arena_array(&engine->arena, bounds + 1, sizeof *engine->profiles);
    if (engine->profiles == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < 3 * bounds; i++)
        engine->profiles[i / 3][i % 3].rank = -1;
    for (const kelp_json *item = count > 0 ? list->child : NULL; item != NULL; item = item->next) {
        kelp_shape(*profile)[3] = &engine->profiles[engine->profile_count++ * engine->input_count];
        for (const kelp_json *entry = item->child; entry != NULL; entry = entry->next)
            for (size_t i = 0; i < engine->input_count; i++)
                if (kelp_str_is(entry->key, engine->inputs[i].name))
                    KELP_TRY(read_bounds(entry, label, profile[i]));
    }
    return NULL;
}

static kelp_status *read_plan(null_engine *engine, const char *data, size_t size_bytes,
                              const char *label) {
    kelp_json *tree = NULL;
    KELP_TRY(kelp_json_parse(&engine->arena, label, data + sizeof magic, size_bytes - sizeof magic,
                             &tree));
    KELP_TRY(read_tensors(engine, kelp_json_get(tree, "inputs"), label, &engine->inputs,
                          &engine->input_count));
    KELP_TRY(read_tensors(engine, kelp_json_get(tree, "outputs"), label, &engine->outputs,
                          &engine->output_count));
    return read_profiles(engine, kelp_json_get(tree, "profiles"), label);
}

/* ---- contexts ---- */
typedef struct null_context {
    null_engine *engine; /* the kelp_context keeps it */
    kelp_tensor *inputs;
    struct null_output {
        void *user_data, *own_data;
        size_t user_bytes, own_bytes;
        kelp_output_allocator place; /* NULL: user_data or own_data */
        void *place_userp;
    } * outputs;
} null_context;

static void null_destroy_context(void *userp) {
    null_context *context = userp;
    const null_engine *engine = context->engine;
    for (size_t i = 0; context->outputs != NULL && i < engine->output_count; i++)
        kelp_free(engine->allocator, context->outputs[i].own_data, context->outputs[i].own_bytes);
    kelp_free(engine->allocator, context->outputs, engine->output_count * sizeof *context->outputs);
    kelp_free(engine->allocator, context->inputs, engine->input_count * sizeof *context->inputs);
    kelp_free(engine->allocator, context, sizeof *context);
}

static kelp_status *null_create_context(void *userp, void **out) {
    null_engine *engine = userp;
    null_context *context = NULL;
    KELP_TRY(KELP_NEW(engine->allocator, null_context, &context));
    context->engine = engine;
    kelp_status *status = kelp_alloc_zero(engine->allocator, engine->input_count,
                                          sizeof *context->inputs, (void **)&context->inputs);
    if (status == NULL)
        status = kelp_alloc_zero(engine->allocator, engine->output_count, sizeof *context->outputs,
                                 (void **)&context->outputs);
    if (status != NULL) {
        null_destroy_context(context);
        return status;
    }
    *out = context;
    return NULL;
}

static kelp_status *null_set_input(void *userp, size_t index, const kelp_tensor *tensor) {
    ((null_context *)userp)->inputs[index] = *tensor;
    return NULL;
}

/* Kelp checks inputs against the profile before set_input, and unbinds them before this. */
static kelp_status *null_set_profile(void *userp, size_t profile) {
    (void)userp;
    (void)profile;
    return NULL;
}

static kelp_status *null_set_output(void *userp, size_t index, void *data, size_t capacity_bytes) {
    null_context *context = userp;
    context->outputs[index].user_data = data;
    context->outputs[index].user_bytes = data != NULL ? capacity_bytes : 0;
    context->outputs[index].place = NULL;
    return NULL;
}

static kelp_status *null_set_output_allocator(void *userp, size_t index, kelp_output_allocator fn,
                                              void *fn_userp) {
    null_context *context = userp;
    context->outputs[index].place = fn;
    context->outputs[index].place_userp = fn_userp;
    return NULL;
}

static kelp_status *null_prepare(void *userp, kelp_tensor *out_outputs) {
    const null_context *context = userp;
    const null_engine *engine = context->engine;
    for (size_t i = 0; i < engine->output_count; i++)
        KELP_TRY(kelp_null_output(&engine->outputs[i], engine->inputs, context->inputs,
                                  engine->input_count, &out_outputs[i]));
    return NULL;
}

static kelp_status *place(null_context *context, size_t index, kelp_tensor *output) {
    struct null_output *place = &context->outputs[index];
    kelp_allocator allocator = context->engine->allocator;
    size_t bytes = kelp_tensor_bytes(output);
    if (place->place != NULL) {
        output->data = place->place(place->place_userp, index, output, bytes);
        if (output->data == NULL)
            return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                              "the allocator of output '%s' returned no memory for %zu bytes",
                              context->engine->outputs[index].name, bytes);
        memset(output->data, 0, bytes);
        return NULL;
    }
    if (place->user_data != NULL && place->user_bytes < bytes)
        return KELP_ERROR(KELP_OUT_OF_RANGE,
                          "the memory bound to output '%s' is too small: %zu bytes are needed, %zu "
                          "were given",
                          context->engine->outputs[index].name, bytes, place->user_bytes);
    if (place->user_data == NULL && place->own_bytes < bytes) {
        kelp_free(allocator, place->own_data, place->own_bytes);
        place->own_data = NULL;
        place->own_bytes = 0;
        KELP_TRY(kelp_alloc(allocator, bytes, &place->own_data));
        place->own_bytes = bytes;
    }
    output->data = place->user_data != NULL ? place->user_data : place->own_data;
    if (bytes > 0)
        memset(output->data, 0, bytes);
    return NULL;
}

static kelp_status *null_invoke(void *userp, kelp_tensor *out_outputs) {
    null_context *context = userp;
    KELP_TRY(null_prepare(context, out_outputs));
    for (size_t i = 0; i < context->engine->output_count; i++)
        KELP_TRY(place(context, i, &out_outputs[i]));
    return NULL;
}

/* ---- the provider ---- */
static kelp_status *null_load(void *self, kelp_runtime *runtime, const void *data,
                              size_t size_bytes, const char *label, void (*release)(void *userp),
                              void *userp, kelp_engine **out) {
    static const kelp_engine_vtbl vtbl = {
        .struct_size = sizeof vtbl,
        .destroy_engine = null_destroy_engine,
        .create_context = null_create_context,
        .destroy_context = null_destroy_context,
        .set_input = null_set_input,
        .set_output = null_set_output,
        .prepare = null_prepare,
        .invoke = null_invoke,
        .set_profile = null_set_profile,
        .set_output_allocator = null_set_output_allocator,
    };
    null_engine *engine = NULL;
    (void)self;
    kelp_status *status = KELP_NEW(runtime->allocator, null_engine, &engine);
    if (status == NULL) {
        engine->allocator = runtime->allocator;
        kelp_arena_init(&engine->arena, runtime->allocator, 1 << 10);
        status = read_plan(engine, data, size_bytes, label);
    }
    if (release != NULL) /* everything was copied */
        release(userp);
    if (status != NULL) {
        if (engine != NULL)
            null_destroy_engine(engine);
        return status;
    }
    kelp_engine_parts parts = {.struct_size = sizeof parts,
                               .provider = "null",
                               .vtbl = &vtbl,
                               .engine = engine,
                               .inputs = engine->inputs,
                               .outputs = engine->outputs,
                               .input_count = engine->input_count,
                               .output_count = engine->output_count,
                               .profile_count = engine->profile_count,
                               .profile_shapes = engine->profiles};
    return kelp_engine_wrap(runtime, &parts, out);
}

static bool null_recognises(void *self, const void *data, size_t size_bytes) {
    (void)self;
    return size_bytes >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;
}

const kelp_engine_provider kelp_null_engines = {
    .abi_version = KELP_ENGINE_PROVIDER_ABI_VERSION,
    .struct_size = sizeof(kelp_engine_provider),
    .name = "null",
    .build = null_build,
    .recognises = null_recognises,
    .load = null_load,
};
