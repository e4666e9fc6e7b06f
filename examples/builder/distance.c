/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines a network in C, builds a plan file, loads it and runs it. The network has two dense
 * layers with weights that compute the distance of two numbers: |a - b| = relu(a - b) + relu(b -
 * a).
 *
 *     cc -std=c17 distance.c -o distance $(pkg-config --cflags --libs kelp)
 *     ./distance distance.plan && kelp inspect distance.plan
 */
#include <kelp/builder.h>

#include <stdio.h>

static const float hidden_weights[4] = {1, -1, -1, 1}, output_weights[2] = {1, 1};

/* Adds y = x W for a constant matrix W of `rows` x `columns`. */
static kelp_status *add_dense(kelp_network *network, kelp_net_tensor *x, const char *name,
                              const float *weights, int64_t rows, int64_t columns,
                              kelp_net_tensor **out) {
    kelp_layer *constant, *product;
    const kelp_weights w = {KELP_F32, weights, rows * columns, name};
    KELP_TRY(kelp_network_add_constant(network, (kelp_shape){2, {rows, columns}}, w, &constant));
    KELP_TRY(kelp_network_add_matrix_multiply(
        network, x, KELP_MATRIX_NONE, kelp_layer_output(constant, 0), KELP_MATRIX_NONE, &product));
    *out = kelp_layer_output(product, 0);
    return NULL;
}

/* Tensors and layers belong to the network. */
static kelp_status *define(kelp_network *network) {
    kelp_net_tensor *pairs, *hidden, *distance;
    kelp_layer *relu;
    /* The number of pairs is dynamic. */
    KELP_TRY(kelp_network_add_input(network, "pairs", KELP_F32, (kelp_shape){2, {-1, 2}}, &pairs));
    KELP_TRY(add_dense(network, pairs, "hidden", hidden_weights, 2, 2, &hidden));
    KELP_TRY(kelp_network_add_activation(network, hidden, KELP_ACTIVATION_RELU, 0, 0, &relu));
    KELP_TRY(
        add_dense(network, kelp_layer_output(relu, 0), "output", output_weights, 2, 1, &distance));
    KELP_TRY(kelp_net_tensor_set_name(distance, "distance"));
    return kelp_network_mark_output(network, distance);
}

/* The plan is optimized for four pairs, and runs with 1 to 16. */
static kelp_status *configure(kelp_builder_config *config) {
    static const int64_t shapes[3][2] = {{1, 2}, {4, 2}, {16, 2}};
    static const kelp_profile_selector selectors[3] = {KELP_PROFILE_MIN, KELP_PROFILE_OPT,
                                                       KELP_PROFILE_MAX};
    size_t profile;
    KELP_TRY(kelp_builder_config_add_profile(config, &profile));
    for (int i = 0; i < 3; i++)
        KELP_TRY(kelp_builder_config_set_profile_shape(config, profile, "pairs", selectors[i], 2,
                                                       shapes[i]));
    return NULL;
}

static kelp_status *build(kelp_runtime *runtime, const char *path) {
    kelp_builder *builder = NULL;
    kelp_network *network = NULL;
    kelp_builder_config *config = NULL;
    kelp_blob *plan = NULL;
    kelp_status *status = kelp_builder_create(runtime, "cpu", &builder);
    if (status == NULL)
        status = kelp_builder_create_network(builder, &network);
    if (status == NULL)
        status = define(network);
    if (status == NULL)
        status = kelp_builder_create_config(builder, &config);
    if (status == NULL)
        status = configure(config);
    if (status == NULL)
        status = kelp_builder_build(builder, network, config, &plan);
    if (status == NULL)
        status = kelp_blob_save(plan, path);
    kelp_blob_release(plan);
    kelp_builder_config_release(config);
    kelp_network_release(network);
    kelp_builder_release(builder);
    return status;
}

static kelp_status *print_distances(const kelp_engine *engine, kelp_context *context) {
    float values[3][2] = {{5, 3}, {-1, 4}, {2, 2}};
    const int64_t shape[2] = {3, 2};
    kelp_tensor pairs;
    KELP_TRY(kelp_tensor_init(&pairs, KELP_F32, 2, shape, values));
    KELP_TRY(kelp_context_set_input(context, kelp_engine_find_input(engine, "pairs"), &pairs));
    KELP_TRY(kelp_context_invoke(context));
    const kelp_tensor *distance =
        kelp_context_output(context, kelp_engine_find_output(engine, "distance"));
    for (int64_t i = 0; i < distance->shape[0]; i++)
        printf("|%g - %g| = %g\n", values[i][0], values[i][1], ((const float *)distance->data)[i]);
    return NULL;
}

/* A process that only runs plans needs this function, and no builder. */
static kelp_status *run(kelp_runtime *runtime, const char *path) {
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    KELP_TRY(kelp_engine_load_file(runtime, path, &engine));
    kelp_status *status = kelp_context_create(engine, &context);
    if (status == NULL)
        status = print_distances(engine, context);
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    return status;
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "distance.plan";
    kelp_runtime *runtime = NULL;
    char text[1024];
    kelp_status *status = kelp_runtime_create(NULL, &runtime);
    if (status == NULL)
        status = build(runtime, path);
    if (status == NULL)
        status = run(runtime, path);
    int code = status != NULL;
    if (status != NULL) {
        kelp_status_format(status, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    kelp_status_free(status);
    kelp_runtime_release(runtime);
    return code;
}
