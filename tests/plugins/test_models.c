/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of models of the provider `kernels`: their text, inputs and outputs. */
#include <kelp/compute.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

static const char *folder;

static kelp_status *load(kelp_runtime *runtime, const char *text, size_t length,
                         kelp_compute_model **out) {
    kelp_artifact artifact = {.data = text, .size_bytes = length, .label = "the model"};
    return kelp_compute_load(runtime, "kernels", &artifact, out);
}

static void expect_rejected(kelp_runtime *runtime, const char *rest, const char *reason) {
    char text[8192];
    kelp_compute_model *model = NULL;
    snprintf(text, sizeof text, "%s/libcounting.so\n%s", folder, rest);
    expect_failure(load(runtime, text, strlen(text), &model), KELP_INVALID_ARGUMENT, reason);
}

static void wrong_models_are_rejected(void **state) {
    (void)state;
    kelp_runtime *runtime = NULL;
    kelp_compute_model *model = NULL;
    char many[4096] = "describe\n";
    check_ok(kelp_runtime_create(NULL, &runtime));
    expect_rejected(runtime, "describe\nnegate=0\ntext", "expected NAME=VALUE, found 'text'");
    expect_rejected(runtime, "describe\nnegate=0\ntext=a\nnegate=1\n",
                    "parameter 'negate' has two values");
    expect_rejected(runtime, "describe\nnegate=0\ntext=a\nx=1\n",
                    "kernel 'describe' has no scalar parameter 'x'"); /* a tensor */
    expect_rejected(runtime, "describe\nnegate=0\ntext=a\nother=1\n",
                    "kernel 'describe' has no scalar parameter 'other'");
    expect_rejected(runtime, "describe\nnegate=0\n", "parameter 'text' (string) is missing");
    expect_rejected(runtime, "describe\ntext=a\n", "parameter 'negate' (bool) is missing");
    expect_rejected(runtime, "scale\nfactor=much\n",
                    "parameter 'factor' is 'much': expected float32");
    expect_rejected(runtime, "repeat\nn=1.5\n", "parameter 'n' is '1.5': expected int64");
    expect_rejected(runtime, "counts\n", "kernel 'counts' of library '");
    for (int i = 0; i < 65; i++)
        strcat(many, "a=1\n");
    expect_rejected(runtime, many, "too many scalars: expected at most");
    expect_failure(load(runtime, "", 0, &model), KELP_INVALID_ARGUMENT,
                   "a model of provider 'kernels' is text");
    expect_failure(load(runtime, "one line", 8, &model), KELP_INVALID_ARGUMENT,
                   "a model of provider 'kernels' is text");
    expect_failure(load(runtime, "a\nb\0c\n", 6, &model), KELP_INVALID_ARGUMENT,
                   "a model of provider 'kernels' is text");
    expect_failure(load(runtime, "/no/such.so\nf\n", 14, &model), KELP_NOT_FOUND,
                   "cannot load 'the model'");
    kelp_runtime_release(runtime);
}

static void scaled(kelp_compute_model *model, float *out) {
    float x[2] = {1, 2};
    kelp_tensor inputs[2], output = {0};
    check_ok(kelp_tensor_init(&inputs[0], KELP_F32, 1, (const int64_t[]){2}, x));
    check_ok(kelp_tensor_init(&inputs[1], KELP_F32, 1, (const int64_t[]){2}, x));
    kelp_infer_item item = {.inputs = inputs, .outputs = &output};
    check_ok(kelp_compute_init(model));
    check_ok(kelp_compute_infer_one(model, &item));
    memcpy(out, output.data, 2 * sizeof *out);
}

static void models_describe_their_tensors(void **state) {
    (void)state;
    kelp_runtime *runtime = NULL;
    kelp_compute_model *model = NULL;
    char text[4096], path[] = "/tmp/kelp-model-XXXXXX";
    float y[2];
    check_ok(kelp_runtime_create(NULL, &runtime));
    snprintf(text, sizeof text, "%s/libcounting.so\nrepeat\n\nn=3\n\n", folder); /* empty lines */
    check_ok(load(runtime, text, strlen(text), &model));
    const kelp_compute_metadata *metadata = kelp_compute_metadata_of(model);
    assert_int_equal(metadata->input_count, 1);
    assert_string_equal(metadata->inputs[0].name, "x");
    assert_int_equal(metadata->inputs[0].rank, 1);
    assert_int_equal(metadata->inputs[0].shape[0], -1);
    assert_string_equal(metadata->inputs[0].symbols[0], "k");
    assert_int_equal(metadata->output_count, 1);
    assert_string_equal(metadata->outputs[0].name, "y");
    assert_int_equal(metadata->outputs[0].dtype, KELP_F32);
    assert_int_equal(metadata->outputs[0].rank, 2);
    assert_string_equal(metadata->outputs[0].symbols[1], "k");
    kelp_compute_destroy(model);
    /* from a file; a default and a value */
    snprintf(text, sizeof text, "%s/libcounting.so\nscale\nfactor=3\n", folder);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "wb");
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
    kelp_artifact artifact = {.path = path};
    check_ok(kelp_compute_load(runtime, "kernels", &artifact, &model));
    scaled(model, y);
    assert_true(y[0] == 4 && y[1] == 8); /* 3 x + offset */
    kelp_compute_destroy(model);
    remove(path);
    expect_failure(kelp_compute_load(runtime, "kernels", &artifact, &model), KELP_NOT_FOUND, path);
    snprintf(text, sizeof text, "%s/libcounting.so\nscale\n", folder);
    check_ok(load(runtime, text, strlen(text), &model));
    scaled(model, y);
    assert_true(y[0] == 3 && y[1] == 6);
    kelp_compute_destroy(model);
    kelp_runtime_release(runtime);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_models_are_rejected),
        cmocka_unit_test(models_describe_their_tensors),
    };
    folder = getenv("KERNEL_FOLDER");
    return folder ? cmocka_run_group_tests_name("models", tests, NULL, NULL) : 2;
}
