/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of plans besides the graph: packed weights, the graph for refits, stripped weights.
 * Modified contents fail when they are used; packed weights for another machine are packed again.
 * The results are always bit-identical. */
#include "builder/support.h"

#include "base/alloc.h"
#include "builder/network.h"
#include "cpu/image/image.h"
#include "engine/engine.h"
#include "cpu/kernels/cpu_features.h"
#include "support/failing_allocator.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define DEPTH 48
#define WIDTH 40
#define KERNEL (WIDTH * 16 * 3)

static float table[DEPTH * WIDTH], other[DEPTH * WIDTH], kernel[KERNEL], filters[KERNEL];
static float shift[WIDTH];

static void fill(float *to, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(seed >> 8) / (float)(1 << 24) - 0.5f;
    }
}

static int fill_all(void **state) {
    (void)state;
    fill(table, DEPTH * WIDTH, 1);
    fill(other, DEPTH * WIDTH, 2);
    fill(kernel, KERNEL, 3);
    fill(filters, KERNEL, 4);
    fill(shift, WIDTH, 5);
    return 0;
}

/* gelu(x [batch,48] · table), as [batch,40,1] through a convolution with few positions (packed when
 * shapes are known) and a transposed convolution. */
static kelp_status *add_layers(kelp_network *network) {
    kelp_net_tensor *x = NULL;
    kelp_layer *w = NULL, *layer = NULL;
    kelp_shuffle image = {
        .struct_size = sizeof image, .reshape_given = true, .reshape = dims(4, 0, 40, 1, 1)};
    kelp_window window = {
        .struct_size = sizeof window, .pre_padding = {0, 1}, .post_padding = {0, 1}};
    KELP_TRY(kelp_network_add_input(network, "x", KELP_F32, dims(2, -1, DEPTH), &x));
    KELP_TRY(kelp_network_add_constant(network, dims(2, DEPTH, WIDTH),
                                       (kelp_weights){KELP_F32, table, DEPTH * WIDTH, "table"},
                                       &w));
    KELP_TRY(kelp_network_add_matrix_multiply(network, x, KELP_MATRIX_NONE, out_of(w),
                                              KELP_MATRIX_NONE, &layer));
    KELP_TRY(kelp_network_add_constant(network, dims(2, 1, WIDTH),
                                       (kelp_weights){KELP_F32, shift, WIDTH, "shift"}, &w));
    KELP_TRY(kelp_network_add_elementwise(network, out_of(layer), out_of(w), KELP_ELEMENTWISE_SUM,
                                          &layer));
    KELP_TRY(kelp_network_add_shuffle(network, out_of(layer), &image, &layer));
    KELP_TRY(kelp_network_add_convolution(network, out_of(layer), 16, dims(2, 1, 3),
                                          (kelp_weights){KELP_F32, kernel, KERNEL, "kernel"},
                                          (kelp_weights){0}, &window, &layer));
    KELP_TRY(kelp_network_add_deconvolution(network, out_of(layer), 40, dims(2, 1, 3),
                                            (kelp_weights){KELP_F32, filters, KERNEL, "filters"},
                                            (kelp_weights){0}, NULL, &layer));
    KELP_TRY(kelp_net_tensor_set_name(out_of(layer), "y"));
    return kelp_network_mark_output(network, out_of(layer));
}

/* A plan at an aligned address, like a mapped file. */
typedef struct plan {
    char *data;
    size_t size;
} plan;

static plan build(bench *b, uint32_t flags) {
    kelp_blob *blob = NULL;
    plan p = {0};
    bench_open(b);
    check_ok(add_layers(b->network));
    check_ok(kelp_builder_config_set_flags(b->config, flags));
    check_ok(kelp_builder_build(b->builder, b->network, b->config, &blob));
    p.size = kelp_blob_size(blob);
    assert_int_equal((uintptr_t)kelp_blob_data(blob) % 64, 0);
    assert_int_equal(posix_memalign((void **)&p.data, 64, p.size + 64), 0);
    memcpy(p.data, kelp_blob_data(blob), p.size);
    kelp_blob_release(blob);
    return p;
}

static void drop(bench *b, plan *p) {
    bench_close(b);
    free(p->data);
}

static kelp_cpu_image_section section(const plan *p, int kind) {
    kelp_cpu_image_section found;
    memcpy(&found, p->data + sizeof(kelp_cpu_image_head) + (size_t)kind * sizeof found,
           sizeof found);
    return found;
}

static kelp_cpu_pack_entry *entry_of(const plan *p, size_t index) {
    return (kelp_cpu_pack_entry *)(void *)(p->data + section(p, KELP_SECTION_PACKS).offset) + index;
}

static kelp_status *load(bench *b, const plan *p, kelp_engine **out) {
    return kelp_engine_load(b->runtime, p->data, p->size, "p", NULL, NULL, out);
}

typedef struct answer {
    float y[2][WIDTH * 3];
} answer;

static void run(kelp_engine *engine, answer *out) {
    kelp_context *context = NULL;
    float x[2 * DEPTH];
    fill(x, 2 * DEPTH, 6);
    check_ok(kelp_context_create(engine, &context));
    bind(context, 0, KELP_F32, dims(2, 2, DEPTH), x);
    check_ok(kelp_context_invoke(context));
    const kelp_tensor *y = kelp_context_output(context, 0);
    assert_int_equal(kelp_tensor_bytes(y), sizeof out->y);
    memcpy(out->y, y->data, sizeof out->y);
    kelp_context_destroy(context);
}

/* A packed copy, as for a plan at an address that kernels cannot read. */
static void run_unpacked(bench *b, const plan *p, answer *out) {
    kelp_engine *engine = NULL;
    memmove(p->data + 16, p->data, p->size);
    plan moved = {p->data + 16, p->size};
    check_ok(load(b, &moved, &engine));
    assert_true(kelp_engine_get_stats(engine).weight_bytes_packed > DEPTH * WIDTH * sizeof(float));
    run(engine, out);
    kelp_engine_release(engine);
    memmove(p->data, p->data + 16, p->size);
}

static void packed_weights_are_used_in_place(void **state) {
    bench b;
    answer packed, unpacked;
    plan p = build(&b, 0);
    (void)state;
    assert_int_equal(section(&p, KELP_SECTION_PACKS).length, 3 * sizeof(kelp_cpu_pack_entry));
    assert_int_equal(section(&p, KELP_SECTION_SOURCE).length, 0);
    assert_true(section(&p, KELP_SECTION_ORIGINALS).length >= DEPTH * WIDTH * sizeof(float));
    check_ok(load(&b, &p, &b.engine));
    run(b.engine, &packed);
    /* states of kernels, without weights */
    assert_true(kelp_engine_get_stats(b.engine).weight_bytes_packed < 1024);
    run_unpacked(&b, &p, &unpacked);
    assert_memory_equal(&packed, &unpacked, sizeof packed);
    drop(&b, &p);
}

static bool names_a_layout(const plan *p, const char *start) {
    size_t count = section(p, KELP_SECTION_PACKS).length / sizeof(kelp_cpu_pack_entry);
    for (size_t i = 0; i < count; i++)
        if (strncmp(entry_of(p, i)->layout, start, strlen(start)) == 0)
            return true;
    return false;
}

/* Pairs of bfloat16 are stored like floats: half the size, the same for every instruction set, and
 * the original weights are not read. */
static void bf16_weights_are_used_in_place(void **state) {
    bench b;
    answer packed, unpacked, coarse;
    plan p = build(&b, KELP_BUILD_BF16);
    (void)state;
    assert_true(names_a_layout(&p, "bf16"));
    assert_int_equal(section(&p, KELP_SECTION_PACKS).length, 3 * sizeof(kelp_cpu_pack_entry));
    assert_true(section(&p, KELP_SECTION_ORIGINALS).length >=
                (DEPTH * WIDTH + KERNEL) * sizeof(float));
    p.data[section(&p, KELP_SECTION_ORIGINALS).offset] ^= 1;
    check_ok(load(&b, &p, &b.engine));
    assert_int_equal(kelp_engine_get_stats(b.engine).nodes_bf16, 2);
    run(b.engine, &packed);
    assert_true(kelp_engine_get_stats(b.engine).weight_bytes_packed < 1024);
    kelp_engine_release(b.engine);
    kelp_cpu_isa_limit(KELP_ISA_PORTABLE);
    check_ok(load(&b, &p,
                  &b.engine)); /* the weights of the deconvolution are floats and match as well */
    run(b.engine, &coarse);
    assert_true(kelp_engine_get_stats(b.engine).weight_bytes_packed < 1024);
    kelp_cpu_isa_limit(KELP_ISA_BEST);
    p.data[section(&p, KELP_SECTION_ORIGINALS).offset] ^= 1;
    run_unpacked(&b, &p, &unpacked);
    assert_memory_equal(&packed, &unpacked, sizeof packed);
    for (size_t i = 0; i < WIDTH * 3; i++)
        assert_float_equal(coarse.y[1][i], packed.y[1][i], 1e-4);
    drop(&b, &p);
}

static void modified_bf16_weights_fail(void **state) {
    bench b;
    plan p = build(&b, KELP_BUILD_BF16);
    answer before, repacked;
    (void)state;
    check_ok(load(&b, &p, &b.engine));
    run(b.engine, &before);
    kelp_engine_release(b.engine);
    b.engine = NULL;
    char *block = p.data + section(&p, KELP_SECTION_PACKED).offset + entry_of(&p, 0)->offset;
    block[3] ^= 1;
    expect_failure(load(&b, &p, &b.engine), KELP_INVALID_ARGUMENT, "packed weights of node");
    block[3] ^= 1;
    entry_of(&p, 0)->layout[0] = 'B'; /* another version: packed from the original weights */
    kelp_cpu_image_seal(p.data, p.size);
    check_ok(load(&b, &p, &b.engine));
    assert_true(kelp_engine_get_stats(b.engine).weight_bytes_packed >= DEPTH * WIDTH * 2);
    run(b.engine, &repacked);
    assert_memory_equal(&before, &repacked, sizeof before);
    drop(&b, &p);
}

static void modified_block_fails(void **state) {
    bench b;
    plan p = build(&b, 0);
    (void)state;
    kelp_cpu_image_section packed = section(&p, KELP_SECTION_PACKED);
    p.data[packed.offset + entry_of(&p, 0)->offset + 7] ^= 1;
    expect_failure(load(&b, &p, &b.engine), KELP_INVALID_ARGUMENT, "packed weights of node");
    p.data[packed.offset + entry_of(&p, 0)->offset + 7] ^= 1;
    entry_of(&p, 0)->length += 64;
    expect_failure(load(&b, &p, &b.engine), KELP_INVALID_ARGUMENT,
                   "section 4 (packed table) was altered");
    kelp_cpu_image_seal(p.data, p.size); /* not the layout of any kernel */
    check_ok(load(&b, &p, &b.engine));
    assert_true(kelp_engine_get_stats(b.engine).weight_bytes_packed >= DEPTH * WIDTH * 4);
    drop(&b, &p);
}

static void malformed_table_fails(void **state) {
    bench b;
    plan p = build(&b, 0);
    (void)state;
    const kelp_cpu_pack_entry good = *entry_of(&p, 0);
    for (int way = 0; way < 5; way++) {
        kelp_cpu_pack_entry *entry = entry_of(&p, 0);
        *entry = good;
        if (way == 0)
            entry->offset = p.size;
        else if (way == 1)
            entry->length = UINT64_MAX - 63;
        else if (way == 2)
            entry->offset += 4;
        else if (way == 3)
            memset(entry->layout, 'x', sizeof entry->layout);
        else
            entry->node = UINT32_MAX;
        kelp_cpu_image_seal(p.data, p.size);
        expect_failure(load(&b, &p, &b.engine), KELP_INVALID_ARGUMENT,
                       "the table of packed weights is invalid");
    }
    drop(&b, &p);
}

/* Another layout or constant: packed again from the original weights, which are checked then. */
static void block_of_another_layout_is_packed_again(void **state) {
    bench b;
    answer packed, repacked;
    plan p = build(&b, 0);
    kelp_engine *engine = NULL;
    (void)state;
    check_ok(load(&b, &p, &b.engine));
    run(b.engine, &packed);
    entry_of(&p, 0)->layout[0] = 'G';
    entry_of(&p, 2)->place += 64;
    kelp_cpu_image_seal(p.data, p.size);
    check_ok(load(&b, &p, &engine));
    assert_true(kelp_engine_get_stats(engine).weight_bytes_packed >= DEPTH * WIDTH * 4);
    run(engine, &repacked);
    assert_memory_equal(&packed, &repacked, sizeof packed);
    kelp_engine_release(engine);
    p.data[section(&p, KELP_SECTION_ORIGINALS).offset + 5] ^= 1;
    expect_failure(load(&b, &p, &engine), KELP_INVALID_ARGUMENT, "original weights were altered");
    drop(&b, &p);
}

static void other_format_versions_fail(void **state) {
    bench b;
    kelp_engine *engine = NULL;
    plan p = build(&b, 0);
    char expected[200];
    (void)state;
    for (int difference = -1; difference <= 1; difference += 2) {
        const uint32_t version = KELP_CPU_IMAGE_VERSION + (uint32_t)difference;
        snprintf(expected, sizeof expected,
                 "p: the plan has format version %u, but this version of Kelp reads version %u: "
                 "build it again",
                 version, KELP_CPU_IMAGE_VERSION);
        memcpy(p.data + offsetof(kelp_cpu_image_head, version), &version, sizeof version);
        expect_failure(load(&b, &p, &engine), KELP_FAILED_PRECONDITION, expected);
        kelp_cpu_image_seal(p.data, p.size);
        expect_failure(load(&b, &p, &engine), KELP_FAILED_PRECONDITION, expected);
        /* a future format may have another head and length */
        const plan shorter = {p.data, sizeof(kelp_cpu_image_head)};
        expect_failure(load(&b, &shorter, &engine), KELP_FAILED_PRECONDITION, expected);
        assert_true(kelp_plan_is_known(b.runtime, p.data, p.size));
    }
    drop(&b, &p);
}

/* The original weights are not read while the packed weights match. */
static void original_weights_are_checked_when_read(void **state) {
    bench b;
    answer before, after;
    plan p = build(&b, KELP_BUILD_REFIT);
    (void)state;
    const kelp_weights weights = {KELP_F32, other, DEPTH * WIDTH, "table"};
    check_ok(load(&b, &p, &b.engine));
    run(b.engine, &before);
    kelp_engine_release(b.engine);
    kelp_cpu_image_section source = section(&p, KELP_SECTION_SOURCE);
    assert_true(source.length > 0);
    p.data[source.offset + 9] ^= 1;
    check_ok(load(&b, &p, &b.engine));
    expect_failure(kelp_engine_refit(b.engine, &weights, 1), KELP_INVALID_ARGUMENT,
                   "the graph to refit was altered");
    p.data[source.offset + 9] ^= 1;
    p.data[section(&p, KELP_SECTION_ORIGINALS).offset] ^= 1;
    expect_failure(kelp_engine_refit(b.engine, &weights, 1), KELP_INVALID_ARGUMENT,
                   "original weights were altered");
    run(b.engine, &after);
    assert_memory_equal(&before, &after, sizeof before);
    drop(&b, &p);
}

static void block_of_another_instruction_set_is_packed_again(void **state) {
    bench b;
    answer there, direct;
    plan p = build(&b, 0);
    kelp_blob *blob = NULL;
    (void)state;
    kelp_cpu_isa_limit(KELP_ISA_PORTABLE);
    check_ok(load(&b, &p, &b.engine));
    run(b.engine, &there);
    kelp_engine_release(b.engine);
    check_ok(kelp_builder_build(b.builder, b.network, b.config, &blob));
    check_ok(kelp_engine_load(b.runtime, kelp_blob_data(blob), kelp_blob_size(blob), "there",
                              free_plan, blob, &b.engine));
    run(b.engine, &direct);
    kelp_cpu_isa_limit(KELP_ISA_BEST);
    assert_memory_equal(&there, &direct, sizeof there);
    drop(&b, &p);
}

static void refit_packs_again(void **state) {
    bench b, rebuilt;
    answer refitted, expected, before, again;
    plan p = build(&b, KELP_BUILD_REFIT), second;
    static float saved[DEPTH * WIDTH];
    kelp_weights weights = {KELP_F32, other, DEPTH * WIDTH, "table"};
    (void)state;
    check_ok(load(&b, &p, &b.engine));
    assert_true(kelp_engine_get_stats(b.engine).weight_bytes_packed < 1024);
    run(b.engine, &before);
    check_ok(kelp_engine_refit(b.engine, &weights, 1));
    run(b.engine, &refitted);
    memcpy(saved, table, sizeof saved);
    memcpy(table, other, sizeof table);
    second = build(&rebuilt, 0);
    memcpy(table, saved, sizeof table);
    check_ok(load(&rebuilt, &second, &rebuilt.engine));
    run(rebuilt.engine, &expected);
    assert_memory_equal(&refitted, &expected, sizeof refitted);
    assert_memory_not_equal(&refitted, &before, sizeof refitted);
    weights.data = table;
    check_ok(kelp_engine_refit(b.engine, &weights, 1));
    run(b.engine, &again);
    assert_memory_equal(&again, &before, sizeof again);
    drop(&rebuilt, &second);
    drop(&b, &p);
}

/* ---- stripped ---- */
static void stripped_plan_fails_until_it_is_refitted(void **state) {
    bench b, whole;
    answer expected, found;
    plan p = build(&b, KELP_BUILD_STRIP_WEIGHTS), full = build(&whole, KELP_BUILD_REFIT);
    kelp_context *context = NULL;
    size_t bytes = 0;
    const kelp_weights all[] = {{KELP_F32, table, DEPTH * WIDTH, "table"},
                                {KELP_F32, shift, WIDTH, "shift"},
                                {KELP_F32, kernel, KERNEL, "kernel"},
                                {KELP_F32, filters, KERNEL, "filters"}};
    (void)state;
    assert_true(p.size + (DEPTH * WIDTH + 2 * KERNEL) * sizeof(float) < full.size);
    check_ok(load(&b, &p, &b.engine));
    assert_int_equal(kelp_engine_refittable_count(b.engine), 4); /* not the shape of the reshape */
    assert_string_equal(kelp_engine_input(b.engine, 0)->name, "x");
    assert_int_equal(kelp_engine_output(b.engine, 0)->rank, 4);
    expect_failure(kelp_context_create(b.engine, &context), KELP_FAILED_PRECONDITION,
                   "built without its weights: refit the engine before use with 'table'");
    expect_failure(kelp_engine_workspace_bytes(b.engine, 0, &bytes), KELP_FAILED_PRECONDITION,
                   "refit the engine before use");
    expect_failure(kelp_engine_refit(b.engine, all, 3), KELP_FAILED_PRECONDITION,
                   "the refit lacks weights 'filters'");
    check_ok(kelp_engine_refit(b.engine, all, 4));
    run(b.engine, &found);
    check_ok(load(&whole, &full, &whole.engine));
    run(whole.engine, &expected);
    assert_memory_equal(&found, &expected, sizeof found);
    check_ok(kelp_engine_refit(b.engine, all + 2, 1)); /* afterwards like any other engine */
    run(b.engine, &found);
    assert_memory_equal(&found, &expected, sizeof found);
    drop(&b, &p);
    drop(&whole, &full);
}

static void append(void *userp, const char *text, size_t length) {
    strncat(userp, text, length);
}

static void only_marked_weights_are_stripped(void **state) {
    bench b;
    kelp_blob *blob = NULL;
    static char text[16384];
    const kelp_weights given = {KELP_F32, table, DEPTH * WIDTH, "table"};
    (void)state;
    bench_open(&b);
    check_ok(add_layers(b.network));
    check_ok(kelp_network_mark_refittable(b.network, "table"));
    check_ok(kelp_builder_config_set_flags(b.config,
                                           KELP_BUILD_STRIP_WEIGHTS | KELP_BUILD_REFIT_INDIVIDUAL));
    check_ok(kelp_builder_config_set_memory_limit(b.config, KELP_POOL_WORKSPACE, 16));
    size_t profile = 0;
    check_ok(kelp_builder_config_add_profile(b.config, &profile));
    for (int i = 0; i < 3; i++)
        check_ok(kelp_builder_config_set_profile_shape(
            b.config, profile, "x", (kelp_profile_selector)i, 2, (int64_t[]){2, DEPTH}));
    expect_failure(kelp_builder_build(b.builder, b.network, b.config, &blob),
                   KELP_RESOURCE_EXHAUSTED, "the limit is 16");
    check_ok(kelp_builder_config_set_memory_limit(b.config, KELP_POOL_WORKSPACE, 1 << 20));
    check_ok(kelp_builder_build(b.builder, b.network, b.config, &blob));
    check_ok(kelp_engine_load(b.runtime, kelp_blob_data(blob), kelp_blob_size(blob), "stripped",
                              free_plan, blob, &b.engine));
    check_ok(kelp_engine_inspect(b.engine, false, append, text));
    assert_non_null(strstr(text, "1 refittable, stripped of these"));
    check_ok(kelp_engine_refit(b.engine, &given, 1));
    answer found;
    run(b.engine, &found);
    *text = '\0';
    check_ok(kelp_engine_inspect(b.engine, true, append, text));
    assert_non_null(strstr(text, "\"stripped\":false"));
    bench_close(&b);
}

/* x [2,40] · first · second, both with the same bytes. */
static kelp_status *add_tied(kelp_network *network, const char *first, const char *second) {
    kelp_net_tensor *x = NULL;
    kelp_layer *w = NULL, *layer = NULL;
    const char *names[] = {first, second};
    KELP_TRY(kelp_network_add_input(network, "x", KELP_F32, dims(2, 2, WIDTH), &x));
    for (int i = 0; i < 2; i++) {
        KELP_TRY(kelp_network_add_constant(
            network, dims(2, WIDTH, WIDTH),
            (kelp_weights){KELP_F32, kernel, (int64_t)WIDTH * WIDTH, names[i]}, &w));
        KELP_TRY(kelp_network_add_matrix_multiply(network, x, KELP_MATRIX_NONE, out_of(w),
                                                  KELP_MATRIX_NONE, &layer));
        x = out_of(layer);
    }
    return kelp_network_mark_output(network, x);
}

static void run_tied(const char *first, const char *second, uint32_t flags, float *out) {
    bench b;
    float x[2 * WIDTH];
    kelp_blob *blob = NULL;
    const kelp_weights given = {KELP_F32, filters, (int64_t)WIDTH * WIDTH, "a"};
    fill(x, 2 * WIDTH, 6);
    bench_open(&b);
    check_ok(add_tied(b.network, first, second));
    check_ok(kelp_network_mark_refittable(b.network, "a"));
    check_ok(kelp_builder_config_set_flags(b.config, flags | KELP_BUILD_REFIT_INDIVIDUAL));
    check_ok(kelp_builder_build(b.builder, b.network, b.config, &blob));
    check_ok(kelp_engine_load(b.runtime, kelp_blob_data(blob), kelp_blob_size(blob), "tied",
                              free_plan, blob, &b.engine));
    assert_int_equal(kelp_engine_refittable_count(b.engine), 1);
    check_ok(kelp_engine_refit(b.engine, &given, 1));
    check_ok(kelp_context_create(b.engine, &b.context));
    bind(b.context, 0, KELP_F32, dims(2, 2, WIDTH), x);
    check_ok(kelp_context_invoke(b.context));
    memcpy(out, kelp_context_output(b.context, 0)->data, sizeof x);
    bench_close(&b);
}

/* Of two weights that share bytes, the unmarked one stays in the plan; of two with the same name,
 * the second. */
static void weights_with_shared_bytes_are_stripped_separately(void **state) {
    static const char *const names[][2] = {{"a", "b"}, {"b", "a"}, {"a", "a"}};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        float expected[2 * WIDTH], found[2 * WIDTH], all = 0;
        run_tied(names[i][0], names[i][1], 0, expected);
        run_tied(names[i][0], names[i][1], KELP_BUILD_STRIP_WEIGHTS, found);
        assert_memory_equal(found, expected, sizeof found);
        for (size_t k = 0; k < 2 * WIDTH; k++)
            all += found[k] * found[k];
        assert_true(all > 0);
    }
}

/* A plan of an earlier version may list a shape as refittable. */
static void declared_shapes_do_not_change(void **state) {
    static const int64_t columns[2] = {2, 3}, rows[2] = {3, 2};
    const kelp_weights same = {KELP_I64, columns, 2, "sizes"},
                       turned = {KELP_I64, rows, 2, "sizes"};
    bench b;
    kelp_blob *blob = NULL;
    kelp_net_tensor *x = NULL;
    kelp_layer *layer = NULL, *sizes = NULL;
    plan p = {0};
    kelp_shuffle shape = {.struct_size = sizeof shape};
    (void)state;
    bench_open(&b);
    check_ok(kelp_network_add_input(b.network, "x", KELP_F32, dims(2, 2, 3), &x));
    check_ok(kelp_network_add_constant(b.network, dims(2, 1, 3),
                                       (kelp_weights){KELP_F32, shift, 3, "shift"}, &layer));
    check_ok(kelp_network_add_constant(b.network, dims(1, 2), same, &sizes));
    check_ok(
        kelp_network_add_elementwise(b.network, x, out_of(layer), KELP_ELEMENTWISE_SUM, &layer));
    shape.shape = out_of(sizes);
    check_ok(kelp_network_add_shuffle(b.network, out_of(layer), &shape, &layer));
    check_ok(kelp_network_mark_output(b.network, out_of(layer)));
    check_ok(kelp_builder_config_set_flags(b.config, KELP_BUILD_REFIT));
    check_ok(kelp_builder_build(b.builder, b.network, b.config, &blob));
    p.size = kelp_blob_size(blob);
    assert_int_equal(posix_memalign((void **)&p.data, 64, p.size), 0);
    memcpy(p.data, kelp_blob_data(blob), p.size);
    kelp_blob_release(blob);
    const kelp_cpu_image_section info = section(&p, KELP_SECTION_INFO);
    char *name = memmem(p.data + info.offset, info.length, "\"shift\"", 7);
    assert_non_null(name);
    memcpy(name, "\"sizes\"", 7);
    kelp_cpu_image_seal(p.data, p.size);
    check_ok(load(&b, &p, &b.engine));
    check_ok(kelp_engine_refit(b.engine, &same, 1));
    expect_failure(kelp_engine_refit(b.engine, &turned, 1), KELP_INVALID_ARGUMENT,
                   "the weights change the shape of output 'tensor_4': expected [2,3], found "
                   "[3,2]");
    check_ok(kelp_engine_refit(b.engine, &same, 1));
    drop(&b, &p);
}

static void duplicate_names_fail(void **state) {
    bench b;
    plan p = build(&b, KELP_BUILD_STRIP_WEIGHTS);
    (void)state;
    const kelp_cpu_image_section info = section(&p, KELP_SECTION_INFO);
    char *name = memmem(p.data + info.offset, info.length, "\"shift\"", 7);
    assert_non_null(name);
    memcpy(name, "\"table\"", 7);
    kelp_cpu_image_seal(p.data, p.size);
    expect_failure(load(&b, &p, &b.engine), KELP_INVALID_ARGUMENT,
                   "'refittable' contains the name 'table' twice");
    drop(&b, &p);
}

/* ---- kernels of other providers ---- */
static void blocks_without_a_constant_are_not_stored(void **state) {
    bench b;
    kelp_graph *graph = NULL;
    kelp_cpu_engine *engine = NULL;
    kelp_engine *loaded = NULL;
    kelp_cpu_origin origin = {.prepared = false};
    kelp_engine_options options = {.struct_size = sizeof options};
    const uint32_t inputs[] = {0, 1u << 0, 1u << 31}; /* none, x, and one that does not exist */
    kelp_op_packed packed[3];
    kelp_allocator allocator;
    char *data = NULL;
    size_t size_bytes = 0;
    (void)state;
    bench_open(&b);
    allocator = kelp_runtime_allocator(b.runtime);
    check_ok(add_tied(b.network, "a", "b"));
    check_ok(kelp_network_lower(b.network, &graph));
    check_ok(kelp_cpu_packs_create(allocator, true, NULL, &origin.take_packs));
    check_ok(kelp_cpu_engine_make(b.runtime, graph, &options, &origin, &engine));
    const kelp_cpu_node *node = &engine->program->nodes[0];
    const kelp_op_pack_site site = {
        .packs = &engine->packs->packs, .node = node->node, .index = node->index};
    for (int i = 0; i < 3; i++) {
        const kelp_op_packing packing = {.layout = "x/1", .size_bytes = 64, .inputs = inputs[i]};
        void *room = NULL;
        check_ok(kelp_op_pack(&site, allocator, &packing, &packed[i], &room));
    }
    const kelp_cpu_image_contents contents = {
        .name = "n", .graph = engine->graph, .engine = engine, .prepared = true};
    check_ok(kelp_cpu_image_write(&contents, allocator, &data, &size_bytes));
    check_ok(kelp_engine_load(b.runtime, data, size_bytes, "p", NULL, NULL, &loaded));
    kelp_engine_release(loaded);
    kelp_free_aligned(allocator, data, size_bytes, KELP_CPU_IMAGE_ALIGNMENT);
    for (int i = 0; i < 3; i++)
        kelp_op_unpack(&packed[i], allocator);
    kelp_cpu_engine_release(engine);
    kelp_graph_release(graph);
    bench_close(&b);
}

/* ---- several contexts and engines ---- */
typedef struct user {
    kelp_engine *engine;
    answer found;
} user;

/* Runs x · kernel · second; returns the bytes of packed weights. */
static size_t run_twice(const float *second, float *out) {
    bench b;
    kelp_graph *graph = NULL;
    kelp_net_tensor *x = NULL;
    kelp_layer *w = NULL, *layer = NULL;
    const float *weights[] = {kernel, second};
    float row[2 * WIDTH];
    fill(row, 2 * WIDTH, 6);
    bench_open(&b);
    check_ok(kelp_network_add_input(b.network, "x", KELP_F32, dims(2, 2, WIDTH), &x));
    for (int i = 0; i < 2; i++) {
        const kelp_weights given = {KELP_F32, weights[i], (int64_t)WIDTH * WIDTH,
                                    i == 0 ? "a" : "b"};
        check_ok(kelp_network_add_constant(b.network, dims(2, WIDTH, WIDTH), given, &w));
        check_ok(kelp_network_add_matrix_multiply(b.network, x, KELP_MATRIX_NONE, out_of(w),
                                                  KELP_MATRIX_NONE, &layer));
        x = out_of(layer);
    }
    check_ok(kelp_network_mark_output(b.network, x));
    check_ok(kelp_network_lower(b.network, &graph));
    check_ok(kelp_engine_create(b.runtime, graph, NULL, &b.engine));
    check_ok(kelp_context_create(b.engine, &b.context));
    bind(b.context, 0, KELP_F32, dims(2, 2, WIDTH), row);
    check_ok(kelp_context_invoke(b.context));
    memcpy(out, kelp_context_output(b.context, 0)->data, 2 * WIDTH * sizeof *out);
    size_t packed = kelp_engine_get_stats(b.engine).weight_bytes_packed;
    kelp_graph_release(graph);
    bench_close(&b);
    return packed;
}

static void nodes_with_the_same_weights_share_a_packed_copy(void **state) {
    float copy[WIDTH * WIDTH], shared[2 * WIDTH], separate[2 * WIDTH];
    (void)state;
    memcpy(copy, kernel, sizeof copy);
    size_t once = run_twice(kernel, shared), twice = run_twice(copy, separate);
    assert_memory_equal(shared, separate, sizeof shared);
    assert_true(twice >= once + sizeof copy);
}

static void *use(void *userp) {
    user *u = userp;
    run(u->engine, &u->found);
    return NULL;
}

/* Only the batch is dynamic: shapes for one row are planned and packed without bound inputs. */
static void known_shapes_are_packed_in_the_build(void **state) {
    bench b;
    kelp_graph *graph = NULL;
    answer expected, found;
    float row[DEPTH];
    (void)state;
    bench_open(&b);
    check_ok(add_layers(b.network));
    check_ok(kelp_network_lower(b.network, &graph));
    check_ok(kelp_engine_create(b.runtime, graph, NULL, &b.engine));
    size_t made = kelp_engine_get_stats(b.engine).weight_bytes_packed;
    check_ok(kelp_context_create(b.engine, &b.context));
    kelp_context_warm_up(b.context);
    size_t packed = kelp_engine_get_stats(b.engine).weight_bytes_packed;
    assert_true(packed >= made + KERNEL * sizeof(float)); /* of the convolution */
    expect_failure(kelp_context_invoke(b.context), KELP_FAILED_PRECONDITION, "'x'");
    assert_int_equal(kelp_context_plan_stats(b.context).steps, 0);
    fill(row, DEPTH, 6);
    bind(b.context, 0, KELP_F32, dims(2, 1, DEPTH), row);
    check_ok(kelp_context_invoke(b.context));
    memcpy(found.y[0], kelp_context_output(b.context, 0)->data, sizeof found.y[0]);
    assert_int_equal(kelp_engine_get_stats(b.engine).weight_bytes_packed, packed);
    run(b.engine, &expected); /* another batch */
    for (size_t i = 0; i < WIDTH * 3; i++)
        assert_float_equal(found.y[0][i], expected.y[0][i], 1e-5);
    kelp_graph_release(graph);
    bench_close(&b);
}

static void contexts_share_packed_weights(void **state) {
    bench b;
    plan p = build(&b, 0);
    pthread_t threads[8];
    user users[8];
    (void)state;
    for (int round = 0; round < 2;
         round++) { /* first in the plan, then packed when shapes are known */
        if (round == 1) {
            for (size_t i = 0; i < 3; i++)
                entry_of(&p, i)->layout[0] = 'G';
            kelp_cpu_image_seal(p.data, p.size);
        }
        check_ok(load(&b, &p, &b.engine));
        for (int i = 0; i < 8; i++) {
            users[i].engine = b.engine;
            assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
        }
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
        for (int i = 1; i < 8; i++)
            assert_memory_equal(&users[0].found, &users[i].found, sizeof users[0].found);
        if (round == 0)
            kelp_engine_release(b.engine);
    }
    drop(&b, &p);
}

/* Private kilobytes of the mappings of the file in this process, and the number of mappings. */
static long private_kilobytes(const char *path, int *out_mappings) {
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    bool ours = false;
    long all = 0, kilobytes = 0;
    *out_mappings = 0;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        if (strchr(line, '-') != NULL && strstr(line, ":") != NULL && line[0] != 'P' &&
            strstr(line, " r") != NULL) {
            ours = strstr(line, path) != NULL;
            *out_mappings += ours;
        }
        if (ours && sscanf(line, "Private_Dirty: %ld kB", &kilobytes) == 1)
            all += kilobytes;
    }
    if (maps != NULL)
        fclose(maps);
    return all;
}

static void engines_of_one_file_share_pages(void **state) {
    bench b;
    plan p = build(&b, 0);
    kelp_engine *engines[3];
    char path[] = "plan-XXXXXX";
    int mappings = 0;
    answer first, next;
    (void)state;
    int file = mkstemp(path);
    assert_int_equal(write(file, p.data, p.size), (ssize_t)p.size);
    close(file);
    for (int i = 0; i < 3; i++) {
        check_ok(kelp_engine_load_file(b.runtime, path, &engines[i]));
        run(engines[i], i == 0 ? &first : &next);
        if (i > 0)
            assert_memory_equal(&first, &next, sizeof first);
        assert_true(kelp_engine_get_stats(engines[i]).weight_bytes_packed < 1024);
    }
    assert_int_equal(private_kilobytes(path, &mappings), 0);
    assert_int_equal(mappings, 3);
    for (int i = 0; i < 3; i++)
        kelp_engine_release(engines[i]);
    unlink(path);
    drop(&b, &p);
}

/* ---- memory ---- */
static kelp_status *whole_way(bench *b, uint32_t flags) {
    kelp_blob *blob = NULL;
    kelp_tensor tensor;
    static float x[2 * DEPTH];
    const kelp_weights all[] = {{KELP_F32, table, DEPTH * WIDTH, "table"},
                                {KELP_F32, shift, WIDTH, "shift"},
                                {KELP_F32, kernel, KERNEL, "kernel"},
                                {KELP_F32, filters, KERNEL, "filters"}};
    KELP_TRY(kelp_builder_create(b->runtime, "cpu", &b->builder));
    KELP_TRY(kelp_builder_create_network(b->builder, &b->network));
    KELP_TRY(add_layers(b->network));
    KELP_TRY(kelp_builder_create_config(b->builder, &b->config));
    KELP_TRY(kelp_builder_config_set_flags(b->config, flags));
    KELP_TRY(kelp_builder_build(b->builder, b->network, b->config, &blob));
    KELP_TRY(kelp_engine_load(b->runtime, kelp_blob_data(blob), kelp_blob_size(blob), "p",
                              free_plan, blob, &b->engine));
    if (flags != 0)
        KELP_TRY(kelp_engine_refit(b->engine, all, 4));
    KELP_TRY(kelp_context_create(b->engine, &b->context));
    KELP_TRY(kelp_tensor_init(&tensor, KELP_F32, 2, (int64_t[]){2, DEPTH}, x));
    KELP_TRY(kelp_context_set_input(b->context, 0, &tensor));
    return kelp_context_invoke(b->context);
}

static void failed_allocations_are_reported(void **state) {
    static const uint32_t ways[] = {0, KELP_BUILD_REFIT, KELP_BUILD_STRIP_WEIGHTS};
    (void)state;
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++)
        for (uint64_t n = 1;; n++) {
            test_failing memory;
            bench b = {0};
            test_failing_init(&memory, n);
            kelp_runtime_options options = {.struct_size = sizeof options,
                                            .allocator = test_failing_allocator(&memory),
                                            .threads = 1};
            kelp_status *status = kelp_runtime_create(&options, &b.runtime);
            if (status == NULL)
                status = whole_way(&b, ways[way]);
            if (b.runtime != NULL)
                bench_close(&b);
            if (test_failing_ended(&memory, status))
                break;
            assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
            kelp_status_free(status);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_weights_are_used_in_place),
        cmocka_unit_test(bf16_weights_are_used_in_place),
        cmocka_unit_test(modified_bf16_weights_fail),
        cmocka_unit_test(modified_block_fails),
        cmocka_unit_test(malformed_table_fails),
        cmocka_unit_test(block_of_another_layout_is_packed_again),
        cmocka_unit_test(other_format_versions_fail),
        cmocka_unit_test(original_weights_are_checked_when_read),
        cmocka_unit_test(block_of_another_instruction_set_is_packed_again),
        cmocka_unit_test(refit_packs_again),
        cmocka_unit_test(stripped_plan_fails_until_it_is_refitted),
        cmocka_unit_test(only_marked_weights_are_stripped),
        cmocka_unit_test(weights_with_shared_bytes_are_stripped_separately),
        cmocka_unit_test(declared_shapes_do_not_change),
        cmocka_unit_test(duplicate_names_fail),
        cmocka_unit_test(blocks_without_a_constant_are_not_stored),
        cmocka_unit_test(known_shapes_are_packed_in_the_build),
        cmocka_unit_test(nodes_with_the_same_weights_share_a_packed_copy),
        cmocka_unit_test(contexts_share_packed_weights),
        cmocka_unit_test(engines_of_one_file_share_pages),
        cmocka_unit_test(failed_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, fill_all, NULL);
}
