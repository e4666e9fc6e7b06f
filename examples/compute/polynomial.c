/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plug-in library with a compute provider. A model is a text with the coefficients of a
 * polynomial: "1 0 2" is y = 1 + 0 x + 2 x^2. Each item has one value of x. The library is linked
 * with nothing: the process that loads it, such as host.c, provides Kelp's functions.
 *
 *     cc -std=c17 -fPIC -shared polynomial.c -o libpolynomial.so $(pkg-config --cflags kelp)
 */
#include <kelp/compute.h>
#include <kelp/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COEFFICIENTS = 16, MAX_TEXT = 1024, MAX_BATCH = 64 };

/* A model; one for each thread. */
typedef struct polynomial {
    kelp_compute_model base; /* must be the first member */
    kelp_compute_metadata metadata;
    kelp_io_info input, output;
    double coefficients[MAX_COEFFICIENTS];
    size_t count;
    float result; /* used if the caller provides no memory for the output */
} polynomial;

static const kelp_compute_model_vtbl vtbl;

/* ---- loading ---- */

static void describe(polynomial *model) {
    model->base = (kelp_compute_model){.vtbl = &vtbl};
    model->input = (kelp_io_info){.name = "x", .dtype = KELP_F32, .rank = 1, .shape = {1}};
    model->output = (kelp_io_info){.name = "y", .dtype = KELP_F32, .rank = 1, .shape = {1}};
    model->metadata = (kelp_compute_metadata){
        .input_count = 1, .inputs = &model->input, .output_count = 1, .outputs = &model->output};
}

/* Copies the artifact, a file or bytes, as text. */
static kelp_status *read_text(const kelp_artifact *artifact, char *out) {
    size_t length = artifact->size_bytes;
    if (artifact->path != NULL) {
        FILE *file = fopen(artifact->path, "rb");
        if (file == NULL)
            return KELP_ERROR(KELP_NOT_FOUND, "cannot open '%s'", artifact->path);
        length = fread(out, 1, MAX_TEXT, file);
        fclose(file);
    } else if (length < MAX_TEXT) {
        memcpy(out, artifact->data, length);
    }
    if (length >= MAX_TEXT)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the model is longer than %d bytes", MAX_TEXT - 1);
    out[length] = '\0';
    return NULL;
}

static kelp_status *parse(const char *text, polynomial *model) {
    char *end;
    for (const char *at = text + strspn(text, " \n"); *at != '\0'; at = end + strspn(end, " \n")) {
        if (model->count == MAX_COEFFICIENTS)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "the model has more than %d coefficients",
                              MAX_COEFFICIENTS);
        model->coefficients[model->count++] = strtod(at, &end);
        if (end == at)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "coefficient %zu: expected a number, found '%s'", model->count - 1,
                              at);
    }
    return model->count > 0 ? NULL
                            : KELP_ERROR(KELP_INVALID_ARGUMENT, "the model has no coefficients");
}

static kelp_status *load(const kelp_artifact *artifact, kelp_compute_model **out) {
    char text[MAX_TEXT];
    polynomial *model = calloc(1, sizeof *model);
    if (model == NULL)
        return kelp_status_oom();
    kelp_status *status = read_text(artifact, text);
    if (status == NULL)
        status = parse(text, model);
    if (status != NULL) {
        free(model);
        return status;
    }
    describe(model);
    *out = &model->base;
    return NULL;
}

static kelp_status *load_model(void *self, kelp_runtime *runtime, const kelp_artifact *artifact,
                               kelp_compute_model **out) {
    (void)self;
    (void)runtime;
    kelp_status *status = load(artifact, out);
    if (artifact->release != NULL) /* also after a failure */
        artifact->release(artifact->userp);
    return status;
}

/* ---- the functions of a model ---- */

static kelp_status *do_nothing(kelp_compute_model *base) {
    (void)base;
    return NULL;
}

/* Kelp checked types and shapes before this. */
static kelp_status *infer_one(kelp_compute_model *base, kelp_infer_item *item) {
    static const int64_t shape[] = {1};
    polynomial *model = (polynomial *)base;
    kelp_tensor *y = &item->outputs[0];
    double x = *(const float *)item->inputs[0].data, sum = 0;
    for (size_t i = model->count; i > 0; i--)
        sum = sum * x + model->coefficients[i - 1];
    KELP_TRY(kelp_tensor_init(y, KELP_F32, 1, shape, y->data != NULL ? y->data : &model->result));
    *(float *)y->data = (float)sum;
    return NULL;
}

static const kelp_compute_metadata *metadata(const kelp_compute_model *base) {
    return &((const polynomial *)base)->metadata;
}

/* Creates a model for another thread. */
static kelp_status *fork_model(kelp_compute_model *base, kelp_compute_model **out) {
    polynomial *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return kelp_status_oom();
    *copy = *(const polynomial *)base;
    describe(copy);
    *out = &copy->base;
    return NULL;
}

static void destroy(kelp_compute_model *base) {
    free(base);
}

/* Without infer_batch, Kelp calls infer_one for each item of a batch. */
static const kelp_compute_model_vtbl vtbl = {.struct_size = sizeof vtbl,
                                             .init = do_nothing,
                                             .infer_one = infer_one,
                                             .drain = do_nothing,
                                             .reset = do_nothing,
                                             .metadata = metadata,
                                             .fork = fork_model,
                                             .destroy = destroy};

/* ---- the provider ---- */

static kelp_compute_capabilities capabilities(void *self) {
    (void)self;
    return (kelp_compute_capabilities){.max_batch = MAX_BATCH,
                                       .dtype_mask = (uint64_t)1 << KELP_F32};
}

static const kelp_compute_backend provider = {.abi_version = KELP_COMPUTE_ABI_VERSION,
                                              .struct_size = sizeof provider,
                                              .name = "polynomial",
                                              .capabilities = capabilities,
                                              .load_model = load_model};

const kelp_plugin *kelp_plugin_query(uint32_t host_abi_version) {
    static const kelp_plugin plugin = {.magic = KELP_PLUGIN_MAGIC,
                                       .abi_version = KELP_PLUGIN_ABI_VERSION,
                                       .struct_size = sizeof plugin,
                                       .name = "polynomial",
                                       .compute = &provider};
    return host_abi_version == KELP_PLUGIN_ABI_VERSION ? &plugin : NULL;
}
