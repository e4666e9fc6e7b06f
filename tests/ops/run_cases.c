/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the operator cases that gen_cases.py wrote, through the whole engine, and compares.
 *
 * usage: run_cases DIR [--isa 0|1|2] [--threads N] [--unsupported-ok] [--match TEXT]
 * A case whose operator nobody covers counts as failed unless --unsupported-ok. The last line sums
 * up.
 */
#include "ops/ops.h"
#include "tensor/convert.h"

#include <kelp/engine.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct named {
    char *name;
    kelp_tensor tensor;
} named;

typedef struct test_case {
    double rtol, atol;
    uint32_t input_count, output_count;
    named *inputs, *outputs;
} test_case;

static void *take(size_t size) {
    void *memory = aligned_alloc(64, (size + 64) / 64 * 64);
    if (memory == NULL)
        exit(2);
    return memory;
}

static void read_exactly(FILE *file, void *to, size_t size) {
    if (size > 0 && fread(to, 1, size, file) != size) {
        fprintf(stderr, "a case file is cut short\n");
        exit(2);
    }
}

static char *read_text(FILE *file, size_t *out_length) {
    uint32_t length;
    read_exactly(file, &length, sizeof length);
    char *text = take(length + 1);
    read_exactly(file, text, length);
    text[length] = '\0';
    *out_length = length;
    return text;
}

static void read_named(FILE *file, named *out) {
    uint32_t head[2];
    int64_t shape[KELP_MAX_RANK];
    size_t length;
    out->name = read_text(file, &length);
    read_exactly(file, head, sizeof head);
    read_exactly(file, shape, head[1] * sizeof *shape);
    kelp_status *status =
        kelp_tensor_init(&out->tensor, (kelp_dtype)head[0], (int32_t)head[1], shape, NULL);
    if (status != NULL)
        exit(2);
    size_t bytes = kelp_tensor_bytes(&out->tensor);
    out->tensor.data = take(bytes);
    if (out->tensor.dtype != KELP_STRING) {
        read_exactly(file, out->tensor.data, bytes);
        return;
    }
    kelp_string *strings = out->tensor.data;
    for (int64_t i = 0; i < kelp_tensor_elements(&out->tensor); i++)
        strings[i].data = read_text(file, &strings[i].length);
}

static named *read_list(FILE *file, uint32_t *out_count) {
    read_exactly(file, out_count, sizeof *out_count);
    named *list = take((*out_count + 1) * sizeof *list);
    for (uint32_t i = 0; i < *out_count; i++)
        read_named(file, &list[i]);
    return list;
}

static void free_list(named *list, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        kelp_string *strings = list[i].tensor.data;
        for (int64_t k = 0;
             list[i].tensor.dtype == KELP_STRING && k < kelp_tensor_elements(&list[i].tensor); k++)
            free((void *)(uintptr_t)strings[k].data);
        free(list[i].tensor.data);
        free(list[i].name);
    }
    free(list);
}

static double number_at(const kelp_tensor *tensor, int64_t i) {
    switch (tensor->dtype) {
    case KELP_F32:
        return (double)((const float *)tensor->data)[i];
    case KELP_F64:
        return ((const double *)tensor->data)[i];
    case KELP_F16:
        return (double)kelp_f16_to_f32(((const uint16_t *)tensor->data)[i]);
    default:
        return 0;
    }
}

static bool is_float(kelp_dtype dtype) {
    return dtype == KELP_F32 || dtype == KELP_F64 || dtype == KELP_F16;
}

/* false and a reason when they differ */
static bool same(const kelp_tensor *found, const kelp_tensor *expected, double rtol, double atol,
                 char *why, size_t room) {
    char a[256], b[256];
    kelp_shape_format(found->rank, found->shape, a, sizeof a);
    kelp_shape_format(expected->rank, expected->shape, b, sizeof b);
    if (found->dtype != expected->dtype || strcmp(a, b) != 0) {
        snprintf(why, room, "is %s%s, expected %s%s", kelp_dtype_name(found->dtype), a,
                 kelp_dtype_name(expected->dtype), b);
        return false;
    }
    for (int64_t i = 0; i < kelp_tensor_elements(expected); i++) {
        bool good;
        if (expected->dtype == KELP_STRING) {
            const kelp_string *x = (const kelp_string *)found->data + i,
                              *y = (const kelp_string *)expected->data + i;
            good = x->length == y->length && memcmp(x->data, y->data, x->length) == 0;
            snprintf(why, room, "differs at %lld", (long long)i);
        } else if (is_float(expected->dtype)) {
            double x = number_at(found, i), y = number_at(expected, i);
            good = x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= atol + rtol * fabs(y);
            snprintf(why, room, "at %lld is %.9g, expected %.9g", (long long)i, x, y);
        } else {
            size_t size = kelp_dtype_bits(expected->dtype) / 8;
            good = memcmp((const char *)found->data + (size_t)i * size,
                          (const char *)expected->data + (size_t)i * size, size) == 0;
            snprintf(why, room, "differs at %lld", (long long)i);
        }
        if (!good)
            return false;
    }
    return true;
}

static kelp_status *bind_and_invoke(const test_case *c, kelp_engine *engine,
                                    kelp_context *context) {
    for (uint32_t i = 0; i < c->input_count; i++) {
        size_t index = kelp_engine_find_input(engine, c->inputs[i].name);
        if (index != SIZE_MAX)
            KELP_TRY(kelp_context_set_input(context, index, &c->inputs[i].tensor));
    }
    return kelp_context_invoke(context);
}

/* Twice: the second time every plan and buffer is warm. */
static kelp_status *run(kelp_runtime *runtime, const char *model, const test_case *c, char *why,
                        size_t room) {
    kelp_graph *graph = NULL;
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    kelp_status *status = kelp_graph_load_file(kelp_allocator_system(), model, NULL, &graph);
    if (status == NULL)
        status = kelp_engine_create(runtime, graph, NULL, &engine);
    if (status == NULL)
        status = kelp_context_create(engine, &context);
    for (int round = 0; status == NULL && round < 2 && *why == '\0'; round++) {
        status = bind_and_invoke(c, engine, context);
        for (uint32_t i = 0; status == NULL && i < c->output_count; i++) {
            char text[1000];
            size_t index = kelp_engine_find_output(engine, c->outputs[i].name);
            if (index != SIZE_MAX &&
                !same(kelp_context_output(context, index), &c->outputs[i].tensor, c->rtol, c->atol,
                      text, sizeof text)) {
                snprintf(why, room, "output '%s' %s (round %d)", c->outputs[i].name, text, round);
                break;
            }
        }
    }
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_graph_release(graph);
    return status;
}

typedef struct totals {
    int passed, failed, unsupported;
} totals;

static void run_case(kelp_runtime *runtime, const char *directory, const char *name, bool lenient,
                     totals *sums) {
    char path[4096], why[2048] = "";
    test_case c = {0};
    snprintf(path, sizeof path, "%s/%s.bin", directory, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "cannot open %s\n", path);
        exit(2);
    }
    read_exactly(file, &c.rtol, sizeof c.rtol);
    read_exactly(file, &c.atol, sizeof c.atol);
    c.inputs = read_list(file, &c.input_count);
    c.outputs = read_list(file, &c.output_count);
    fclose(file);
    snprintf(path, sizeof path, "%s/%s.onnx", directory, name);
    kelp_status *status = run(runtime, path, &c, why, sizeof why);
    bool unsupported = kelp_status_code(status) == KELP_UNIMPLEMENTED;
    if (status != NULL)
        kelp_status_format(status, why, sizeof why);
    if (unsupported && lenient) {
        sums->unsupported++;
        printf("UNSUPPORTED %s: %s\n", name, why);
    } else if (*why != '\0') {
        sums->failed++;
        printf("FAILED %s: %s\n", name, why);
    } else {
        sums->passed++;
    }
    kelp_status_free(status);
    free_list(c.inputs, c.input_count);
    free_list(c.outputs, c.output_count);
}

int main(int argc, char **argv) {
    const char *directory = argc > 1 ? argv[1] : ".", *match = "";
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    bool lenient = false;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--unsupported-ok") == 0)
            lenient = true;
        else if (i + 1 < argc && strcmp(argv[i], "--isa") == 0)
            kelp_cpu_isa_limit((kelp_cpu_isa)atoi(argv[++i]));
        else if (i + 1 < argc && strcmp(argv[i], "--threads") == 0)
            options.threads = atoi(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--match") == 0)
            match = argv[++i];
    }
    kelp_runtime *runtime = NULL;
    char path[4096], name[512];
    kelp_status *status = kelp_runtime_create(&options, &runtime);
    snprintf(path, sizeof path, "%s/cases.txt", directory);
    FILE *list = fopen(path, "r");
    if (status != NULL || list == NULL) {
        fprintf(stderr, "cannot begin: %s\n", status ? kelp_status_message(status) : path);
        return 2;
    }
    totals sums = {0, 0, 0};
    while (fgets(name, sizeof name, list) != NULL) {
        name[strcspn(name, "\n")] = '\0';
        if (strstr(name, match) != NULL)
            run_case(runtime, directory, name, lenient, &sums);
    }
    fclose(list);
    kelp_runtime_release(runtime);
    printf("%d passed, %d failed, %d unsupported\n", sums.passed, sums.failed, sums.unsupported);
    return sums.failed == 0 && sums.passed > 0 ? 0 : 1;
}
