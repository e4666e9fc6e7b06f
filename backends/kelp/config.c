/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, checks and completes the configuration of a model of the `kelp` backend. */
#include "config.h"

#include "ragged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- settings ---- */

/* Returns the model's parameter, or the backend's setting of that name. */
static const char *parameter(const kelp_backend_model *model, const char *name) {
    const kelp_backend_host *host = kelp_backend_model_host(model);
    return kelp_backend_model_text(model, name, kelp_backend_host_setting(host, name, NULL));
}

/* Reads the number of threads, also under the name that Triton's onnxruntime backend uses. */
static kelp_status *read_threads(const kelp_backend_model *model, int64_t *out) {
    const char *name = kelp_backend_model_text(model, "intra_op_threads", NULL) == NULL &&
                               kelp_backend_model_text(model, "intra_op_thread_count", NULL) != NULL
                           ? "intra_op_thread_count"
                           : "intra_op_threads";
    kelp_status *status = kelp_backend_model_i64(model, name, 0, out);
    if (status == NULL && *out >= 0 && *out <= 4096)
        return NULL;
    kelp_status_free(status);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "model '%s': parameter '%s' must be a number from 0 to 4096, found '%s'",
                      kelp_backend_model_name(model), name,
                      kelp_backend_model_text(model, name, ""));
}

static kelp_status *read_precision(const kelp_backend_model *model, kelp_precision *out) {
    const char *name = parameter(model, "precision");
    if (name == NULL || kelp_precision_parse(name, out))
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "model '%s': parameter 'precision' must be f32 or bf16, found '%s'",
                      kelp_backend_model_name(model), name);
}

/* Writes "LIBRARY\nKERNEL\nNAME=VALUE…". Returns the length and truncates like snprintf. */
static size_t write_kernel(const kelp_backend_model *model, const char *library, const char *kernel,
                           char *out, size_t capacity) {
    const kelp_backend_value *all =
        kelp_backend_value_get(kelp_backend_model_config(model), "parameters");
    size_t length = (size_t)snprintf(out, capacity, "%s\n%s", library, kernel);
    for (const kelp_backend_value *one = kelp_backend_value_first(all); one != NULL;
         one = kelp_backend_value_next(one)) {
        const char *name = kelp_backend_value_name(one);
        const char *value =
            kelp_backend_value_text(kelp_backend_value_get(one, "string_value"), NULL);
        if (value == NULL || strcmp(name, "kernel_library") == 0 || strcmp(name, "kernel") == 0)
            continue;
        bool fits = length < capacity;
        length += (size_t)snprintf(fits ? out + length : NULL, fits ? capacity - length : 0,
                                   "\n%s=%s", name, value);
    }
    return length;
}

/* Reads "kernel_library" and "kernel"; the other parameters are the kernel's scalars. */
static kelp_status *read_kernel(const kelp_backend_model *model, kelp_model_settings *out) {
    const char *library = kelp_backend_model_text(model, "kernel_library", NULL);
    const char *kernel = kelp_backend_model_text(model, "kernel", NULL);
    if (library == NULL && kernel == NULL)
        return NULL;
    if (library == NULL || kernel == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "model '%s': parameter '%s' is missing: 'kernel_library' and 'kernel' "
                          "require each other",
                          kelp_backend_model_name(model),
                          library == NULL ? "kernel_library" : "kernel");
    size_t size_bytes = write_kernel(model, library, kernel, NULL, 0) + 1;
    out->kernel = malloc(size_bytes);
    if (out->kernel == NULL)
        return kelp_status_oom();
    write_kernel(model, library, kernel, out->kernel, size_bytes);
    out->provider = "kernels";
    return NULL;
}

/* Logs the parameters of Triton's onnxruntime backend that have no effect here. */
static void warn_of_parameters(const kelp_backend_model *model) {
    static const char *const names[] = {
        "inter_op_thread_count",  "execution_mode",        "enable_mem_arena",
        "enable_mem_pattern",     "arena_extend_strategy", "memory.enable_memory_arena_shrinkage",
        "cudnn_conv_algo_search", "gpu_mem_limit",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (kelp_backend_model_text(model, names[i], NULL) != NULL)
            kelp_backend_log(TRITONSERVER_LOG_WARN, __FILE__, __LINE__,
                             "model '%s': parameter '%s' has no effect",
                             kelp_backend_model_name(model), names[i]);
}

static kelp_status *read_map_files(const kelp_backend_model *model, bool *out) {
    const char *text = parameter(model, "map_files");
    *out = text != NULL && strcmp(text, "true") == 0;
    if (text == NULL || *out || strcmp(text, "false") == 0)
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "model '%s': parameter 'map_files' must be true or false, found '%s'",
                      kelp_backend_model_name(model), text);
}

kelp_status *kelp_model_settings_read(const kelp_backend_model *model, kelp_model_settings *out) {
    const kelp_backend_value *file =
        kelp_backend_value_get(kelp_backend_model_config(model), "default_model_filename");
    *out = (kelp_model_settings){.file_name = kelp_backend_value_text(file, ""),
                                 .provider = kelp_backend_model_text(model, "provider", ""),
                                 .providers = parameter(model, "providers")};
    if (out->file_name[0] == '\0')
        out->file_name = "model.onnx";
    if (out->provider[0] == '\0')
        out->provider = "cpu";
    if (out->providers != NULL && out->providers[0] == '\0')
        out->providers = NULL;
    KELP_TRY(read_kernel(model, out));
    KELP_TRY(read_threads(model, &out->threads));
    KELP_TRY(read_map_files(model, &out->map_files));
    warn_of_parameters(model);
    return read_precision(model, &out->precision);
}

/* ---- sequences ---- */

const kelp_backend_value *kelp_model_sequence(const kelp_backend_model *model) {
    return kelp_backend_value_get(kelp_backend_model_config(model), "sequence_batching");
}

bool kelp_model_resets(const kelp_backend_model *model) {
    const kelp_backend_value *sequence = kelp_model_sequence(model);
    const kelp_backend_value *states = kelp_backend_value_get(sequence, "state");
    const kelp_backend_value *oldest = kelp_backend_value_get(sequence, "oldest");
    int64_t slots = kelp_backend_model_max_batch(model);
    if (oldest != NULL)
        slots = kelp_backend_value_i64(kelp_backend_value_get(oldest, "max_candidate_sequences"),
                                       slots);
    return sequence != NULL && slots <= 1 && kelp_backend_value_first(states) == NULL;
}

/* Returns true if a list of objects has one whose `field` is `name`. */
static bool has_name(const kelp_backend_value *list, const char *field, const char *name) {
    for (const kelp_backend_value *one = kelp_backend_value_first(list); one != NULL;
         one = kelp_backend_value_next(one))
        if (strcmp(kelp_backend_value_text(kelp_backend_value_get(one, field), ""), name) == 0)
            return true;
    return false;
}

/* Returns true if the server sets the input, or stores the output, of a sequence. */
static bool is_of_server(const kelp_backend_model *model, const char *kind, const char *name) {
    const kelp_backend_value *sequence = kelp_model_sequence(model);
    const kelp_backend_value *states = kelp_backend_value_get(sequence, "state");
    if (strcmp(kind, "output") == 0)
        return has_name(states, "output_name", name);
    return has_name(states, "input_name", name) ||
           has_name(kelp_backend_value_get(sequence, "control_input"), "name", name);
}

/* ---- checks ---- */

static kelp_status *not_in_the_model(const kelp_backend_model *model, const char *kind,
                                     const char *name, const kelp_io_info *tensors, size_t count) {
    char names[1024];
    size_t length = (size_t)snprintf(names, sizeof names, "%s", count > 0 ? "" : "none");
    for (size_t i = 0; i < count && length < sizeof names; i++)
        length += (size_t)snprintf(names + length, sizeof names - length, "%s'%s'",
                                   i > 0 ? ", " : "", tensors[i].name);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "model '%s': the configuration's %s '%s' is not in the model, which has %s",
                      kelp_backend_model_name(model), kind, name, names);
}

/* Compares dims with the model. The backend receives the reshaped tensor if `reshape` is set. */
static kelp_status *check_dims(const kelp_backend_model *model, const char *kind,
                               const kelp_backend_value *tensor, const kelp_io_info *info) {
    const kelp_backend_value *dims = kelp_backend_value_get(tensor, "dims");
    const kelp_backend_value *reshape =
        kelp_backend_value_get(kelp_backend_value_get(tensor, "reshape"), "shape");
    bool batches = kelp_backend_model_max_batch(model) > 0;
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = 0;
    if (reshape != NULL)
        dims = reshape;
    if (info->rank < 0 || dims == NULL)
        return NULL;
    if (batches)
        shape[rank++] = -1;
    for (const kelp_backend_value *dim = kelp_backend_value_first(dims);
         dim != NULL && rank < KELP_MAX_RANK; dim = kelp_backend_value_next(dim))
        shape[rank++] = kelp_backend_value_i64(dim, -1);
    bool fits = rank == info->rank;
    for (int32_t i = 0; fits && i < rank; i++)
        fits = shape[i] < 0 || info->shape[i] < 0 || shape[i] == info->shape[i];
    if (fits)
        return NULL;
    char found[256], expected[256];
    kelp_shape_format(rank, shape, found, sizeof found);
    kelp_shape_format(info->rank, info->shape, expected, sizeof expected);
    return KELP_ERROR(
        KELP_INVALID_ARGUMENT,
        "model '%s', %s '%s': wrong dims in the configuration%s: expected %s, found %s",
        kelp_backend_model_name(model), kind, info->name,
        batches ? " with the batch dimension (max_batch_size > 0)" : "", expected, found);
}

static kelp_status *check_tensor(const kelp_backend_model *model, const char *kind,
                                 const kelp_backend_value *tensor, const kelp_io_info *tensors,
                                 size_t count) {
    const char *name = kelp_backend_value_text(kelp_backend_value_get(tensor, "name"), "");
    const char *type = kelp_backend_value_text(kelp_backend_value_get(tensor, "data_type"), "");
    const kelp_io_info *info = NULL;
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, tensors[i].name) == 0)
            info = &tensors[i];
    if (info == NULL)
        return not_in_the_model(model, kind, name, tensors, count);
    if (kelp_dtype_parse(type) != info->dtype && info->dtype != KELP_DTYPE_INVALID)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "model '%s', %s '%s': wrong data_type in the configuration: expected %s, found %s",
            kelp_backend_model_name(model), kind, info->name, kelp_dtype_name(info->dtype), type);
    return kelp_ragged_has_own_shape(model, tensor, name) ? NULL
                                                          : check_dims(model, kind, tensor, info);
}

static kelp_status *check_tensors(const kelp_backend_model *model, const char *kind,
                                  const kelp_io_info *tensors, size_t count) {
    const kelp_backend_value *list = kelp_backend_value_get(kelp_backend_model_config(model), kind);
    for (const kelp_backend_value *tensor = kelp_backend_value_first(list); tensor != NULL;
         tensor = kelp_backend_value_next(tensor))
        KELP_TRY(check_tensor(model, kind, tensor, tensors, count));
    return NULL;
}

/* Checks that the model has the tensors that a list of the sequence batcher names. */
static kelp_status *check_list(const kelp_backend_model *model, const char *list, const char *field,
                               const kelp_io_info *tensors, size_t count) {
    const kelp_backend_value *all = kelp_backend_value_get(kelp_model_sequence(model), list);
    for (const kelp_backend_value *one = kelp_backend_value_first(all); one != NULL;
         one = kelp_backend_value_next(one)) {
        const char *name = kelp_backend_value_text(kelp_backend_value_get(one, field), "");
        size_t i = 0;
        while (i < count && strcmp(tensors[i].name, name) != 0)
            i++;
        if (i == count)
            return not_in_the_model(model, list, name, tensors, count);
    }
    return NULL;
}

static kelp_status *check_sequence(const kelp_backend_model *model,
                                   const kelp_compute_metadata *metadata) {
    KELP_TRY(check_list(model, "control_input", "name", metadata->inputs, metadata->input_count));
    KELP_TRY(check_list(model, "state", "input_name", metadata->inputs, metadata->input_count));
    return check_list(model, "state", "output_name", metadata->outputs, metadata->output_count);
}

/* ---- completion ---- */

/* Describes tensors without their batch dimension, except those that only the server uses; `out`
 * has `count` entries. */
static kelp_status *describe(const kelp_backend_model *model, const char *kind,
                             const kelp_io_info *tensors, size_t count, kelp_backend_io *out,
                             size_t *out_count) {
    int32_t batch = kelp_backend_model_max_batch(model) > 0;
    *out_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_of_server(model, kind, tensors[i].name))
            continue;
        if (tensors[i].rank < batch)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "model '%s': the number of dimensions of %s '%s' is unknown: set "
                              "dims in config.pbtxt",
                              kelp_backend_model_name(model), kind, tensors[i].name);
        out[(*out_count)++] = (kelp_backend_io){.name = tensors[i].name,
                                                .dtype = tensors[i].dtype,
                                                .rank = tensors[i].rank - batch,
                                                .shape = tensors[i].shape + batch};
    }
    return NULL;
}

static kelp_status *complete(kelp_backend_model *model, const kelp_compute_metadata *metadata,
                             kelp_backend_io *ios) {
    size_t declared_inputs = 0, declared_outputs = 0;
    kelp_backend_io *outputs = ios + metadata->input_count;
    kelp_backend_model_inputs(model, &declared_inputs);
    kelp_backend_model_outputs(model, &declared_outputs);
    size_t inputs = declared_inputs > 0 ? 0 : metadata->input_count;
    size_t outputs_count = declared_outputs > 0 ? 0 : metadata->output_count;
    KELP_TRY(describe(model, "input", metadata->inputs, inputs, ios, &inputs));
    KELP_TRY(describe(model, "output", metadata->outputs, outputs_count, outputs, &outputs_count));
    return kelp_backend_model_complete(model, ios, inputs, outputs, outputs_count);
}

kelp_status *kelp_model_complete(kelp_backend_model *model, const kelp_compute_metadata *metadata) {
    bool wanted = false;
    KELP_TRY(check_tensors(model, "input", metadata->inputs, metadata->input_count));
    KELP_TRY(check_tensors(model, "output", metadata->outputs, metadata->output_count));
    KELP_TRY(check_sequence(model, metadata));
    KELP_TRY(kelp_backend_model_wants_config(model, &wanted));
    if (!wanted)
        return NULL;
    kelp_backend_io *ios = calloc(metadata->input_count + metadata->output_count + 1, sizeof *ios);
    if (ios == NULL)
        return kelp_status_oom();
    kelp_status *status = complete(model, metadata, ios);
    free(ios);
    return status;
}
