/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that a provider leaves on its device. The addresses of these tensors cannot be read: a
 * program that takes them for host memory ends at once. */
#include "onnx/onnx_writer.h"

#include <kelp/compute.h>
#include <kelp/engine.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "support/check_status.h"

#define MEMORY_BYTES 4096
#define SLOTS 32

/* ---- a device of 32 tensors of up to 8 floats ---- */
static struct slot {
    void *address; /* not readable; NULL: free */
    float values[8];
} slots[SLOTS];
static int created, released;

static struct slot *slot_of(const kelp_tensor *tensor) {
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].address == tensor->data)
            return &slots[i];
    fail_msg("not a tensor of the device");
    return NULL;
}

static bool is_on_device(const kelp_tensor *tensor) {
    return tensor->device.device_type == kDLCUDA;
}

static const float *values_of(const kelp_tensor *tensor) {
    return is_on_device(tensor) ? slot_of(tensor)->values : tensor->data;
}

static float *place(kelp_tensor *out) {
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].address != NULL)
            continue;
        slots[i].address = mmap(NULL, MEMORY_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(slots[i].address != MAP_FAILED);
        out->data = slots[i].address;
        out->device = (DLDevice){kDLCUDA, 3};
        created++;
        return slots[i].values;
    }
    fail_msg("the device is full");
    return NULL;
}

static void release_tensor(void *self, kelp_tensor *tensor) {
    (void)self;
    struct slot *slot = slot_of(tensor);
    munmap(slot->address, MEMORY_BYTES);
    slot->address = NULL;
    released++;
}

static int copies;

static kelp_status *to_host(void *self, const kelp_op_env *env, const kelp_tensor *tensor,
                            void *out_data) {
    (void)self, (void)env;
    copies++;
    memcpy(out_data, slot_of(tensor)->values, kelp_tensor_bytes(tensor));
    return NULL;
}

/* ---- a provider: Up leaves its result on the device, Work too, Down does not; y = x + 1 ---- */
static const kelp_opset_op ops[] = {
    {.name = "Up", .since_version = 1, .signature = "out y: T[n], x: T[n] where T: float32"},
    {.name = "Work", .since_version = 1, .signature = "out y: T[n], x: T[n] where T: float32"},
    {.name = "Down", .since_version = 1}};
static const kelp_opset opset = {"com.example", 1, ops, 3};

static const kelp_opset *extension_opsets(void *self, size_t *out_count) {
    (void)self;
    *out_count = 1;
    return &opset;
}

static int read_in_place;

static kelp_status *run_one(const kelp_op_env *env, const kelp_node *node, const kelp_tensor *x,
                            kelp_tensor *y) {
    float *to = NULL;
    read_in_place += is_on_device(x);
    KELP_TRY(kelp_tensor_init(y, KELP_F32, x->rank, x->shape, NULL));
    if (strcmp(kelp_node_op_type(node), "Down") == 0)
        to = y->data = kelp_op_env_alloc(env, kelp_tensor_bytes(y));
    else
        to = place(y);
    for (int64_t i = 0; i < kelp_tensor_elements(x); i++)
        to[i] = values_of(x)[i] + 1;
    return NULL;
}

static kelp_status *dispatch(void *self, const kelp_op_env *env, const kelp_node *node,
                             const kelp_tensor *const *inputs, kelp_tensor *outputs,
                             kelp_completion *completion, kelp_dispatch_result *out_result) {
    (void)self, (void)completion;
    *out_result = KELP_DISPATCH_IMMEDIATE;
    return run_one(env, node, inputs[0], &outputs[0]);
}

/* The nodes of a block are a chain. */
static kelp_status *execute_graph(void *self, const kelp_op_env *env, const kelp_block *block,
                                  const kelp_tensor *const *inputs, kelp_tensor *outputs) {
    const kelp_tensor *x = inputs[0];
    kelp_tensor between[4];
    size_t count = kelp_block_node_count(block);
    for (size_t i = 0; i < count; i++) {
        kelp_tensor *y = i + 1 == count ? &outputs[0] : &between[i];
        KELP_TRY(run_one(env, kelp_block_node(block, i), x, y));
        if (i > 0 && is_on_device(x))
            release_tensor(self, &between[i - 1]);
        x = y;
    }
    return NULL;
}

static kelp_opset_backend make_provider(void) {
    return (kelp_opset_backend){.abi_version = KELP_OPSET_ABI_VERSION,
                                .struct_size = sizeof(kelp_opset_backend),
                                .name = "device",
                                .extension_opsets = extension_opsets,
                                .dispatch = dispatch,
                                .release_tensor = release_tensor,
                                .placements = KELP_PLACED_DEVICE(3)};
}

/* ---- models ---- */
static void add(pb *graph, const char *op_type, const char *inputs, const char *outputs) {
    pb node = pb_node(op_type, inputs, outputs);
    pb_text(&node, 3, op_type);
    if (strcmp(op_type, "Neg") != 0 && strcmp(op_type, "Add") != 0)
        pb_text(&node, 7, "com.example");
    pb_add_node(graph, &node);
}

static void keep_bytes(void *userp) {
    free(userp);
}

/* Runs y = model(x), given as "Op in out; Op in out". */
static kelp_status *run_model(const kelp_opset_backend *provider, const char *providers,
                              const char *text, float *out) {
    kelp_runtime *runtime = NULL;
    kelp_graph *graph = NULL;
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    pb made = {0};
    pb *model = malloc(sizeof *model);
    char op_type[16], inputs[16], outputs[16];
    assert_non_null(model);
    pb_text(&made, 2, "placed");
    pb_add_input(&made, "x", "float32[2]");
    for (int length = 0;
         sscanf(text, " %15[^:]: %15[^>]> %15[^;];%n", op_type, inputs, outputs, &length) == 3;
         text += length)
        add(&made, op_type, inputs, outputs);
    pb_add_output(&made, "y", "float32[2]");
    *model = pb_model(&made, 17);
    pb_import(model, "com.example", 1);
    created = released = copies = read_in_place = 0;
    check_ok(kelp_runtime_create(NULL, &runtime));
    check_ok(kelp_runtime_register_opset(runtime, provider, NULL));
    check_ok(kelp_graph_load_bytes(kelp_allocator_system(), model->data, model->length, "placed",
                                   NULL, keep_bytes, model, NULL, &graph));
    kelp_engine_options options = {.struct_size = sizeof options, .providers = providers};
    check_ok(kelp_engine_create(runtime, graph, &options, &engine));
    check_ok(kelp_context_create(engine, &context));
    float data[2] = {1, 2};
    kelp_tensor x;
    check_ok(kelp_tensor_init(&x, KELP_F32, 1, (int64_t[1]){2}, data));
    check_ok(kelp_context_set_input(context, 0, &x));
    kelp_status *status = NULL;
    for (int i = 0; status == NULL && i < 3; i++)
        status = kelp_context_invoke(context);
    if (status == NULL)
        memcpy(out, kelp_context_output(context, 0)->data, sizeof data);
    kelp_context_destroy(context);
    assert_int_equal(created, released);
    kelp_engine_release(engine);
    kelp_graph_release(graph);
    kelp_runtime_release(runtime);
    return status;
}

static void expect_result(const kelp_opset_backend *provider, const char *providers,
                          const char *text, float expected) {
    float found[2] = {0};
    check_ok(run_model(provider, providers, text, found));
    assert_true(found[0] == expected);
}

/* ---- tests ---- */
static void tensors_stay_on_the_device_of_their_provider(void **state) {
    (void)state;
    kelp_opset_backend provider = make_provider();
    expect_result(&provider, NULL, "Up: x> a; Work: a> b; Down: b> c; Neg: c> y;", -4);
    assert_int_equal(created, 2 * 3);
    assert_int_equal(read_in_place, 2 * 3);
    assert_int_equal(copies, 0);
}

static void other_readers_are_rejected(void **state) {
    (void)state;
    kelp_opset_backend provider = make_provider();
    float found[2];
    expect_failure(
        run_model(&provider, NULL, "Up: x> a; Neg: a> y;", found), KELP_UNIMPLEMENTED,
        "provider 'device' left 'a' of node 'Up' (Up) on device type 2, id 3, and cannot "
        "copy it to host memory: node 'Neg' (Neg) does not run on this provider");
    expect_failure(
        run_model(&provider, NULL, "Up: x> a; Work: a> b; Neg: a> c; Add: c b> y;", found),
        KELP_UNIMPLEMENTED, "node 'Neg' (Neg) does not run on this provider");
    expect_failure(run_model(&provider, NULL, "Up: x> a; Work: a> y;", found), KELP_UNIMPLEMENTED,
                   "left 'y' of node 'Work' (Work) on device type 2, id 3, and cannot copy it to "
                   "host memory: it is an output of graph 'placed'");
}

static void provider_copies_tensors_for_other_readers(void **state) {
    (void)state;
    kelp_opset_backend provider = make_provider();
    provider.to_host = to_host;
    expect_result(&provider, NULL, "Up: x> a; Neg: a> y;", -2);
    assert_int_equal(copies, 3);
    expect_result(&provider, NULL, "Up: x> a; Work: a> y;", 3);
    assert_int_equal(copies, 3);
    assert_int_equal(read_in_place, 3);
    expect_result(&provider, NULL, "Up: x> a; Work: a> b; Neg: a> c; Add: b c> y;", 1);
    assert_int_equal(read_in_place, 0);
}

/* Without `placements`, the provider accepts host memory only. */
static void undeclared_placement_is_copied_or_rejected(void **state) {
    (void)state;
    kelp_opset_backend provider = make_provider();
    float found[2];
    provider.placements = 0;
    provider.release_tensor = NULL;
    kelp_runtime *runtime = NULL;
    check_ok(kelp_runtime_create(NULL, &runtime));
    provider.release_tensor = release_tensor;
    expect_failure(kelp_runtime_register_opset(runtime, &provider, NULL), KELP_INVALID_ARGUMENT,
                   "release_tensor without materialize and placements");
    kelp_runtime_release(runtime);
    provider.placements = KELP_PLACED_DEVICE(2);
    expect_failure(run_model(&provider, NULL, "Up: x> a; Work: a> b; Down: b> y;", found),
                   KELP_UNIMPLEMENTED,
                   "input 0 of 'Work' is on device type 2, id 3, which provider 'device' does not "
                   "accept");
}

static void subgraphs_leave_results_on_the_device(void **state) {
    (void)state;
    kelp_opset_backend provider = make_provider();
    float found[2];
    provider.execute_graph = execute_graph;
    expect_failure(run_model(&provider, "device,cpu", "Up: x> a; Work: a> b; Neg: b> y;", found),
                   KELP_UNIMPLEMENTED, "left 'b' of node");
    provider.to_host = to_host;
    expect_result(&provider, "device,cpu", "Up: x> a; Work: a> b; Neg: b> y;", -3);
    assert_int_equal(copies, 3);
    expect_result(&provider, "device,cpu", "Up: x> a; Work: a> y;", 3);
}

static void hosts_pass_tensors_on_the_device(void **state) {
    (void)state;
    kelp_opset_backend provider = make_provider();
    kelp_runtime *runtime = NULL;
    kelp_op_env *env = NULL;
    kelp_tensor x, y, z;
    float data[2] = {1, 2};
    const kelp_tensor *inputs[1] = {&x};
    created = released = 0;
    check_ok(kelp_runtime_create(NULL, &runtime));
    check_ok(kelp_runtime_register_opset(runtime, &provider, NULL));
    check_ok(kelp_op_env_create(runtime, &env));
    check_ok(kelp_tensor_init(&x, KELP_F32, 1, (int64_t[1]){2}, data));
    static const char *const names[] = {"Up", "Work", "Neg"};
    for (int i = 0; i < 3; i++) {
        kelp_node_desc desc = {.struct_size = sizeof desc,
                               .domain = i < 2 ? "com.example" : "",
                               .name = names[i],
                               .version = i < 2 ? 1 : 17,
                               .inputs = inputs,
                               .input_count = 1,
                               .output_count = 1};
        kelp_graph *graph = NULL;
        kelp_opset_match match;
        check_ok(kelp_graph_create_node(kelp_allocator_system(), &desc, NULL, &graph));
        const kelp_node *node = kelp_block_node(kelp_graph_main(graph), 0);
        assert_true(kelp_opset_find(kelp_runtime_opsets(runtime), node, &match));
        kelp_status *status = kelp_opset_dispatch(&match, env, node, inputs, i == 0 ? &y : &z);
        kelp_graph_release(graph);
        if (i < 2)
            check_ok(status);
        else
            expect_failure(status, KELP_UNIMPLEMENTED,
                           "input 0 of 'Neg' is on device type 2, id 3, which provider 'cpu' does "
                           "not accept");
        inputs[0] = i == 0 ? &y : &z;
    }
    assert_true(is_on_device(&z) && values_of(&z)[1] == 4);
    assert_int_equal(created - released, 2);
    kelp_op_env_reset(env);
    assert_int_equal(created, released);
    kelp_op_env_destroy(env);
    kelp_runtime_release(runtime);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_stay_on_the_device_of_their_provider),
        cmocka_unit_test(other_readers_are_rejected),
        cmocka_unit_test(provider_copies_tensors_for_other_readers),
        cmocka_unit_test(undeclared_placement_is_copied_or_rejected),
        cmocka_unit_test(subgraphs_leave_results_on_the_device),
        cmocka_unit_test(hosts_pass_tensors_on_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
