/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that can fail. Statuses contain the messages of the library. */
#include "tensorrt/call.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/checked.h"

#include <stdio.h>
#include <string.h>

/* ---- objects ---- */
kelp_status *trt_check(trt_log *log, bool done, const char *what) {
    if (done)
        return NULL;
    return trt_log_failure(log, KELP_INTERNAL, "TensorRT: %s failed", what);
}

static kelp_status *check_created(trt_log *log, const void *object, const char *what) {
    if (object != NULL)
        return NULL;
    return trt_log_failure(log, KELP_UNAVAILABLE, "TensorRT: cannot create %s", what);
}

/* The runtime-only library of 11.4 returns an offset from NULL on failure. */
static void *real_object(void *object) {
    return (uintptr_t)object >= 4096 ? object : NULL;
}

kelp_status *trt_create_builder(const trt_library *library, trt_log *log, trt_builder **out) {
    *out = NULL;
    if (library->create_builder == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "'%s' has no builder: it can only run engines",
                          library->path);
    trt_log_clear(log);
    *out = real_object(library->create_builder(trt_log_logger(log), library->version));
    KELP_TRY(check_created(log, *out, "a builder"));
    trt_builder_set_error_recorder(library->methods, *out, trt_log_recorder(log));
    return NULL;
}

kelp_status *trt_create_runtime(const trt_library *library, trt_log *log, trt_runtime **out) {
    trt_log_clear(log);
    *out = real_object(library->create_runtime(trt_log_logger(log), library->version));
    KELP_TRY(check_created(log, *out, "a runtime"));
    trt_runtime_set_error_recorder(library->methods, *out, trt_log_recorder(log));
    return NULL;
}

kelp_status *trt_create_refitter(const trt_library *library, trt_log *log, trt_engine *engine,
                                 trt_refitter **out) {
    trt_log_clear(log);
    *out = real_object(library->create_refitter(engine, trt_log_logger(log), library->version));
    KELP_TRY(check_created(log, *out, "a refitter"));
    trt_refitter_set_error_recorder(library->methods, *out, trt_log_recorder(log));
    return NULL;
}

kelp_status *trt_create_network(const trt_library *library, trt_log *log, trt_builder *builder,
                                uint32_t flags, trt_network **out) {
    trt_log_clear(log);
    *out = trt_builder_create_network_v2(library->methods, builder, flags);
    KELP_TRY(check_created(log, *out, "a network"));
    trt_network_set_error_recorder(library->methods, *out, trt_log_recorder(log));
    return NULL;
}

kelp_status *trt_create_config(const trt_library *library, trt_log *log, trt_builder *builder,
                               trt_config **out) {
    trt_log_clear(log);
    *out = trt_builder_create_builder_config(library->methods, builder);
    return check_created(log, *out, "a builder's configuration");
}

static kelp_status *require_parser(const trt_library *library, const void *function) {
    if (function != NULL)
        return NULL;
    return KELP_ERROR(
        KELP_NOT_FOUND, "cannot find TensorRT's ONNX parser next to '%s': %s", library->path,
        library->parser_reason != NULL ? library->parser_reason : "it lacks a function");
}

kelp_status *trt_create_parser(const trt_library *library, trt_log *log, trt_network *network,
                               trt_parser **out) {
    *out = NULL;
    KELP_TRY(require_parser(library, TRT_ADDRESS(library->create_parser)));
    trt_log_clear(log);
    *out = library->create_parser(network, trt_log_logger(log), library->parser_version);
    return check_created(log, *out, "an ONNX parser");
}

kelp_status *trt_create_parser_refitter(const trt_library *library, trt_log *log,
                                        trt_refitter *refitter, trt_parser_refitter **out) {
    *out = NULL;
    KELP_TRY(require_parser(library, TRT_ADDRESS(library->create_parser_refitter)));
    trt_log_clear(log);
    *out = library->create_parser_refitter(refitter, trt_log_logger(log), library->parser_version);
    return check_created(log, *out, "an ONNX refitter");
}

/* Calls the destructor in `slot` of the object's table. */
static void destroy_through(void *object, size_t slot) {
    typedef void (*destroy)(void *);
    if (object != NULL)
        TRT_AS(destroy, (*(void *const *const *)object)[slot])(object);
}

void trt_destroy(void *object) {
    destroy_through(object, 1);
}

void trt_destroy_parser(trt_parser *parser) {
    destroy_through(parser, TRT_SLOT_PARSER_DESTROY_DELETING);
}

void trt_destroy_parser_refitter(trt_parser_refitter *refitter) {
    destroy_through(refitter, TRT_SLOT_PARSER_REFITTER_DESTROY_DELETING);
}

kelp_status *trt_require(const trt_library *library, trt_method method) {
    char supported_by[128] = "";
    size_t length = 0;
    if (trt_has(library->methods, method))
        return NULL;
    for (size_t i = 0; i < trt_methods_count() && length < sizeof supported_by; i++)
        if (trt_has(trt_methods_at(i), method))
            length += (size_t)snprintf(supported_by + length, sizeof supported_by - length, "%s%s",
                                       length > 0 ? ", " : "", trt_methods_at(i)->name);
    return KELP_ERROR(KELP_UNIMPLEMENTED, "%s %d.%d.%d does not support %s (supported by: %s)",
                      trt_flavor_name(library->flavor), library->major, library->minor,
                      library->patch, trt_method_name(method), supported_by);
}

/* ---- building ---- */
static void append_inputs(const trt_methods *m, trt_layer *layer, char *buffer, size_t capacity) {
    size_t length = 0;
    int32_t count = layer != NULL ? trt_layer_get_nb_inputs(m, layer) : 0;
    buffer[0] = '\0';
    for (int32_t i = 0; i < count && length < capacity; i++) {
        char shape[160];
        trt_tensor *input = trt_layer_get_input(m, layer, i);
        if (input == NULL)
            continue;
        trt_dims dims = trt_tensor_get_dimensions(m, input);
        trt_dims_format(&dims, shape, sizeof shape);
        length +=
            (size_t)snprintf(buffer + length, capacity - length, "%s'%s' %s",
                             length > 0 ? ", " : " of ", trt_tensor_get_name(m, input), shape);
    }
}

kelp_status *trt_check_layer(const trt_library *library, trt_log *log, trt_layer *layer,
                             const char *what) {
    const trt_methods *m = library->methods;
    KELP_ASSERT(m != NULL && what != NULL);
    char inputs[600];
    bool good = layer != NULL;
    int32_t count = good ? trt_layer_get_nb_outputs(m, layer) : 0;
    for (int32_t i = 0; i < count && good; i++) {
        trt_tensor *output = trt_layer_get_output(m, layer, i);
        good = output == NULL || trt_tensor_get_dimensions(m, output).rank >= 0;
    }
    if (good)
        return NULL;
    append_inputs(m, layer, inputs, sizeof inputs);
    return trt_log_failure(log, KELP_INVALID_ARGUMENT, "TensorRT: cannot add %s%s", what, inputs);
}

kelp_status *trt_build(const trt_library *library, trt_log *log, trt_builder *builder,
                       trt_network *network, trt_config *config, trt_progress *progress,
                       trt_memory **out) {
    const trt_methods *m = library->methods;
    KELP_ASSERT(builder != NULL && network != NULL && config != NULL);
    trt_log_clear(log);
    if (progress != NULL)
        trt_config_set_progress_monitor(m, config, TRT_PROGRESS(progress));
    *out = trt_builder_build_serialized_network(m, builder, network, config);
    if (progress != NULL)
        trt_config_set_progress_monitor(m, config, NULL);
    if (*out != NULL)
        return NULL;
    if (progress != NULL && atomic_load(&progress->cancelled)) {
        trt_log_clear(log); /* it only repeats that a callback cancelled the build */
        return KELP_ERROR(KELP_CANCELLED, "the build was cancelled");
    }
    return trt_log_failure(log, KELP_INTERNAL, "TensorRT: cannot build the network");
}

kelp_status *trt_set_profile(const trt_library *library, trt_log *log, trt_profile *profile,
                             const char *input, const trt_dims *min, const trt_dims *opt,
                             const trt_dims *max) {
    const trt_methods *m = library->methods;
    const struct {
        trt_opt_profile_selector select;
        const char *name;
        const trt_dims *dims;
    } ends[] = {{TRT_OPT_PROFILE_SELECTOR_MIN, "min", min},
                {TRT_OPT_PROFILE_SELECTOR_OPT, "opt", opt},
                {TRT_OPT_PROFILE_SELECTOR_MAX, "max", max}};
    trt_log_clear(log);
    for (size_t i = 0; i < KELP_COUNT(ends); i++) {
        char shape[160];
        if (trt_profile_set_dimensions(m, profile, input, ends[i].select, ends[i].dims))
            continue;
        trt_dims_format(ends[i].dims, shape, sizeof shape);
        return trt_log_failure(log, KELP_INVALID_ARGUMENT,
                               "TensorRT: invalid %s shape %s of input '%s' in the profile",
                               ends[i].name, shape, input);
    }
    return NULL;
}

kelp_status *trt_set_compute_capabilities(const trt_library *library, trt_log *log,
                                          trt_config *config, const int *capabilities,
                                          size_t count) {
    const trt_methods *m = library->methods;
    KELP_TRY(trt_require(library, TRT_M_config_set_compute_capability));
    trt_log_clear(log);
    if (!trt_config_set_nb_compute_capabilities(m, config, (int32_t)count))
        return trt_log_failure(log, KELP_INVALID_ARGUMENT,
                               "TensorRT: invalid number of compute capabilities: %zu", count);
    for (size_t i = 0; i < count; i++)
        if (!trt_config_set_compute_capability(m, config, capabilities[i], (int32_t)i))
            return trt_log_failure(log, KELP_INVALID_ARGUMENT,
                                   "TensorRT: invalid compute capability %d.%d",
                                   capabilities[i] / 10, capabilities[i] % 10);
    return NULL;
}

/* ---- ONNX ---- */
static const struct {
    const char *name;
    kelp_code code;
} parser_codes[] = {
    [TRT_ONNX_ERROR_CODE_INTERNAL_ERROR] = {"internal error", KELP_INTERNAL},
    [TRT_ONNX_ERROR_CODE_MEM_ALLOC_FAILED] = {"no memory", KELP_RESOURCE_EXHAUSTED},
    [TRT_ONNX_ERROR_CODE_MODEL_DESERIALIZE_FAILED] = {"not a model", KELP_INVALID_ARGUMENT},
    [TRT_ONNX_ERROR_CODE_INVALID_VALUE] = {"invalid value", KELP_INVALID_ARGUMENT},
    [TRT_ONNX_ERROR_CODE_INVALID_GRAPH] = {"invalid graph", KELP_INVALID_ARGUMENT},
    [TRT_ONNX_ERROR_CODE_INVALID_NODE] = {"invalid node", KELP_INVALID_ARGUMENT},
    [TRT_ONNX_ERROR_CODE_UNSUPPORTED_GRAPH] = {"unsupported graph", KELP_UNIMPLEMENTED},
    [TRT_ONNX_ERROR_CODE_UNSUPPORTED_NODE] = {"unsupported node", KELP_UNIMPLEMENTED},
    [TRT_ONNX_ERROR_CODE_UNSUPPORTED_NODE_ATTR] = {"unsupported attribute", KELP_UNIMPLEMENTED},
    [TRT_ONNX_ERROR_CODE_UNSUPPORTED_NODE_INPUT] = {"unsupported input", KELP_UNIMPLEMENTED},
    [TRT_ONNX_ERROR_CODE_UNSUPPORTED_NODE_DATATYPE] = {"unsupported type", KELP_UNIMPLEMENTED},
    [TRT_ONNX_ERROR_CODE_UNSUPPORTED_NODE_DYNAMIC] = {"unsupported when dynamic",
                                                      KELP_UNIMPLEMENTED},
    [TRT_ONNX_ERROR_CODE_UNSUPPORTED_NODE_SHAPE] = {"unsupported shape", KELP_UNIMPLEMENTED},
    [TRT_ONNX_ERROR_CODE_REFIT_FAILED] = {"refit failed", KELP_INTERNAL}};

static const char *or_empty(const char *text) {
    return text != NULL ? text : "";
}

/* Appends a parser error as text. Returns its code. */
static kelp_code append_error(const trt_methods *m, trt_parser *parser, trt_parser_error *error,
                              kelp_buf *out) {
    const char *name = or_empty(trt_parser_error_node_name(m, error));
    const char *kind = or_empty(trt_parser_error_node_operator(m, error));
    trt_onnx_error_code number = trt_parser_error_code(m, error);
    bool known = number > 0 && number < (trt_onnx_error_code)KELP_COUNT(parser_codes) &&
                 parser_codes[number].name != NULL;
    kelp_code code = known ? parser_codes[number].code : KELP_INTERNAL;
    if (out->length > 0)
        kelp_buf_append_cstr(out, "; ");
    if (*kind != '\0' || *name != '\0')
        kelp_buf_printf(out, "node %d '%s' (%s): ", trt_parser_error_node(m, error), name, kind);
    if (*kind != '\0' && !trt_parser_supports_operator(m, parser, kind)) {
        /* The parser looks for a plugin of that name, and reports the node as invalid. */
        kelp_buf_append_cstr(out, "unknown operator: ");
        code = KELP_UNIMPLEMENTED;
    } else {
        kelp_buf_printf(out, "%s: ", known ? parser_codes[number].name : "unknown error");
    }
    kelp_buf_append_cstr(out, or_empty(trt_parser_error_desc(m, error)));
    return code;
}

/* Appends all parser errors as text. Returns the code of the first one. */
static kelp_code append_errors(const trt_methods *m, trt_parser *parser, kelp_buf *out) {
    kelp_code first = KELP_OK;
    int count = trt_parser_get_nb_errors(m, parser);
    for (int i = 0; i < count; i++) {
        trt_parser_error *error = (void *)(uintptr_t)trt_parser_get_error(m, parser, i);
        kelp_code code = append_error(m, parser, error, out);
        if (first == KELP_OK)
            first = code;
    }
    trt_parser_clear_errors(m, parser);
    return first;
}

/* Returns a failure with the parser's errors as its cause. They are more detailed than the log. */
static kelp_status *parse_failure(const trt_library *library, trt_log *log, trt_parser *parser,
                                  const char *what) {
    kelp_buf text;
    kelp_buf_init(&text, library->allocator);
    kelp_code code = append_errors(library->methods, parser, &text);
    const char *reasons = kelp_buf_cstr(&text);
    kelp_status *status;
    if (code == KELP_OK) {
        status = trt_log_failure(log, KELP_INVALID_ARGUMENT, "TensorRT: cannot parse '%s'", what);
    } else {
        trt_log_clear(log);
        status = reasons == NULL ? kelp_status_oom()
                                 : KELP_ANNOTATE(KELP_ERROR(code, "%s", reasons),
                                                 "TensorRT: cannot parse '%s'", what);
    }
    kelp_buf_deinit(&text);
    return status;
}

kelp_status *trt_parse(const trt_library *library, trt_log *log, trt_parser *parser,
                       const void *data, size_t size, const char *path) {
    trt_log_clear(log);
    if (trt_parser_parse(library->methods, parser, data, size, path))
        return NULL;
    return parse_failure(library, log, parser, path != NULL ? path : "(bytes)");
}

kelp_status *trt_parse_file(const trt_library *library, trt_log *log, trt_parser *parser,
                            const char *path) {
    trt_log_clear(log);
    if (trt_parser_parse_from_file(library->methods, parser, path, TRT_SEVERITY_WARNING))
        return NULL;
    return parse_failure(library, log, parser, path);
}

static kelp_status *query_parser(const trt_library *library, trt_parser *parser, const void *data,
                                 size_t size, const char *path, trt_subgraph_fn fn, void *userp,
                                 bool *out_all, char **out_reasons) {
    const trt_methods *m = library->methods;
    kelp_buf text;
    *out_all = trt_parser_supports_model_v2(m, parser, data, size, path);
    int64_t count = fn != NULL ? trt_parser_get_nb_subgraphs(m, parser) : 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t length = 0;
        bool certain = trt_parser_is_subgraph_supported(m, parser, i);
        const int64_t *nodes = trt_parser_get_subgraph_nodes(m, parser, i, &length);
        fn(userp, certain, nodes, nodes != NULL ? length : 0);
    }
    kelp_buf_init(&text, library->allocator);
    (void)append_errors(m, parser, &text); /* the reasons are a result here, not a failure */
    const char *reasons = kelp_buf_cstr(&text);
    kelp_status *status =
        reasons != NULL ? kelp_strdup(library->allocator, reasons, out_reasons) : kelp_status_oom();
    kelp_buf_deinit(&text);
    return status;
}

kelp_status *trt_supports_model(const trt_library *library, trt_log *log, trt_builder *builder,
                                const void *data, size_t size, const char *path, trt_subgraph_fn fn,
                                void *userp, bool *out_all, char **out_reasons) {
    trt_network *network = NULL;
    trt_parser *parser = NULL;
    *out_reasons = NULL;
    *out_all = false;
    KELP_TRY(trt_create_network(library, log, builder, 0, &network));
    kelp_status *status = trt_create_parser(library, log, network, &parser);
    if (status == NULL)
        status = query_parser(library, parser, data, size, path, fn, userp, out_all, out_reasons);
    trt_destroy_parser(parser);
    trt_destroy(network);
    trt_log_clear(log);
    return status;
}

/* ---- running ---- */
kelp_status *trt_deserialize(const trt_library *library, trt_log *log, trt_runtime *runtime,
                             const void *data, size_t size, trt_engine **out) {
    trt_log_clear(log);
    *out = trt_runtime_deserialize_cuda_engine(library->methods, runtime, data, size);
    if (*out != NULL)
        return NULL;
    return trt_log_failure(log, KELP_INVALID_ARGUMENT,
                           "TensorRT: cannot read an engine from %zu bytes", size);
}

/* ---- values ---- */
kelp_status *trt_dims_from(size_t rank, const int64_t *shape, trt_dims *out) {
    if (rank > TRT_MAX_DIMS)
        return KELP_ERROR(KELP_OUT_OF_RANGE, "TensorRT supports at most %d dimensions: found %zu",
                          TRT_MAX_DIMS, rank);
    *out = (trt_dims){.rank = (int32_t)rank};
    for (size_t i = 0; i < rank; i++)
        out->d[i] = shape[i];
    return NULL;
}

size_t trt_dims_format(const trt_dims *dims, char *buffer, size_t capacity) {
    KELP_ASSERT(dims->rank <= TRT_MAX_DIMS);
    char text[TRT_MAX_DIMS * 22 + 3] = "[";
    size_t length = 1;
    for (int32_t i = 0; i < dims->rank && i < TRT_MAX_DIMS; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%lld", i > 0 ? "," : "",
                                   (long long)dims->d[i]);
    return (size_t)snprintf(buffer, capacity, "%s]", text);
}

static const struct {
    kelp_dtype dtype;
    trt_data_type type;
} types[] = {{KELP_F32, TRT_DATA_TYPE_FLOAT},    {KELP_F16, TRT_DATA_TYPE_HALF},
             {KELP_I8, TRT_DATA_TYPE_INT8},      {KELP_I32, TRT_DATA_TYPE_INT32},
             {KELP_BOOL, TRT_DATA_TYPE_BOOL},    {KELP_U8, TRT_DATA_TYPE_UINT8},
             {KELP_F8E4M3FN, TRT_DATA_TYPE_FP8}, {KELP_BF16, TRT_DATA_TYPE_BF16},
             {KELP_I64, TRT_DATA_TYPE_INT64},    {KELP_I4, TRT_DATA_TYPE_INT4},
             {KELP_F4E2M1, TRT_DATA_TYPE_FP4},   {KELP_F8E8M0, TRT_DATA_TYPE_E8M0}};

kelp_status *trt_data_type_from(kelp_dtype dtype, trt_data_type *out) {
    for (size_t i = 0; i < KELP_COUNT(types); i++) {
        if (types[i].dtype == dtype) {
            *out = types[i].type;
            return NULL;
        }
    }
    return KELP_ERROR(KELP_UNIMPLEMENTED, "TensorRT does not support type %s",
                      kelp_dtype_name(dtype));
}

kelp_status *trt_data_type_to(trt_data_type type, kelp_dtype *out) {
    for (size_t i = 0; i < KELP_COUNT(types); i++) {
        if (types[i].type == type) {
            *out = types[i].dtype;
            return NULL;
        }
    }
    return KELP_ERROR(KELP_UNIMPLEMENTED, "unknown type %d of TensorRT", (int)type);
}
