/* SPDX-License-Identifier: Apache-2.0 */
/* Unusual values of arguments, defaults, and the shapes that follow from a signature. */
#include "signature/signature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

static const DLDevice cpu = {kDLCPU, 0};
static double data[16];

typedef struct call {
    kelp_arena arena;
    kelp_signature signature;
    DLTensor x;
    kelp_kernel_arg args[4];
} call;

/* Prepares a call whose first argument is a float32 tensor. */
static void begin(call *c, const char *text, int32_t rank, int64_t *shape) {
    memset(c, 0, sizeof *c);
    kelp_arena_init(&c->arena, kelp_allocator_system(), 0);
    check_ok(kelp_signature_parse(&c->arena, text, &c->signature));
    c->x = (DLTensor){
        .data = data, .device = cpu, .ndim = rank, .dtype = {kDLFloat, 32, 1}, .shape = shape};
    c->args[0] = (kelp_kernel_arg){.kind = KELP_ARG_TENSOR, .as.tensor = &c->x};
}

static kelp_status *check(call *c, int32_t count) {
    return kelp_signature_check(&c->signature, c->args, count, cpu);
}

static void dimensions_of_one_have_any_stride(void **state) {
    (void)state;
    call c;
    int64_t shape[3] = {1, 3, 1}, strides[3] = {77, 1, 99};
    begin(&c, "x: T[a, b, c]", 3, shape);
    c.x.strides = strides;
    check_ok(check(&c, 1));
    strides[1] = 2;
    expect_failure(check(&c, 1), KELP_INVALID_ARGUMENT, "argument 'x'");
    kelp_arena_deinit(&c.arena);
}

static void only_empty_tensors_need_no_data(void **state) {
    (void)state;
    call c;
    int64_t shape[2] = {0, 3};
    begin(&c, "x: T[...]", 2, shape);
    c.x.data = NULL;
    check_ok(check(&c, 1));
    shape[0] = 3;
    shape[1] = 0;
    check_ok(check(&c, 1));
    shape[1] = 2;
    expect_failure(check(&c, 1), KELP_INVALID_ARGUMENT, "argument 'x' has no data");
    c.x.ndim = 1; /* the dimension after the last one does not count */
    shape[1] = 0;
    expect_failure(check(&c, 1), KELP_INVALID_ARGUMENT, "argument 'x' has no data");
    c.x.ndim = 0;
    expect_failure(check(&c, 1), KELP_INVALID_ARGUMENT, "argument 'x' has no data");
    kelp_arena_deinit(&c.arena);
}

static void addresses_are_multiples_of_the_element(void **state) {
    static const struct {
        DLDataType type;
        uint64_t good, bad; /* offsets in bytes; 0: every offset is good */
    } rows[] = {{{kDLFloat, 64, 1}, 8, 4}, {{kDLInt, 16, 1}, 2, 1}, {{kDLInt, 32, 1}, 4, 2},
                {{kDLUInt, 8, 1}, 1, 0},   {{kDLInt, 64, 1}, 8, 7}, {{kDLComplex, 128, 1}, 8, 4}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        call c;
        int64_t shape[1] = {1};
        begin(&c, "x: any[n]", 1, shape);
        c.x.dtype = rows[i].type;
        c.x.byte_offset = rows[i].good;
        check_ok(check(&c, 1));
        c.x.byte_offset = rows[i].bad;
        if (rows[i].bad != 0)
            expect_failure(check(&c, 1), KELP_INVALID_ARGUMENT, "is not aligned");
        kelp_arena_deinit(&c.arena);
    }
}

static void sizes_may_be_zero_and_not_negative(void **state) {
    (void)state;
    call c;
    int64_t shape[1] = {0};
    begin(&c, "x: T[n], n: int64", 1, shape);
    c.args[1] = (kelp_kernel_arg){.kind = KELP_ARG_INT, .as.i = 0};
    check_ok(check(&c, 2));
    c.args[1].as.i = -1;
    expect_failure(check(&c, 2), KELP_INVALID_ARGUMENT, "a dimension cannot be negative");
    kelp_arena_deinit(&c.arena);
}

static void omitted_arguments_get_their_defaults(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_signature s;
    kelp_kernel_arg args[3] = {{0}}, filled[3];
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    check_ok(kelp_signature_parse(&arena, "i: int64 = 7, f: float64 = 2.5, s: string = 'abc'", &s));
    assert_ptr_equal(kelp_signature_fill(&s, args, filled), filled);
    assert_int_equal(filled[0].kind, KELP_ARG_INT);
    assert_int_equal(filled[0].as.i, 7);
    assert_int_equal(filled[1].kind, KELP_ARG_FLOAT);
    assert_true(filled[1].as.f == 2.5);
    assert_int_equal(filled[2].kind, KELP_ARG_STRING);
    assert_string_equal(filled[2].as.s, "abc");
    for (int i = 0; i < 3; i++)
        args[i] = filled[i];
    assert_ptr_equal(kelp_signature_fill(&s, args, filled), args);
    kelp_arena_deinit(&arena);
}

static void shapes_follow_from_bound_names(void **state) {
    (void)state;
    call c;
    int64_t shape[8] = {1, 1, 1, 1, 1, 1, 1, 2}, found[KELP_MAX_RANK];
    int32_t rank = 0;
    DLDataType type;
    kelp_signature_binding binding;
    begin(&c, "x: T[...s], out y: T[...s, 5], out z: U[...s], out w: T[...t]", 8, shape);
    kelp_signature_begin(&binding);
    assert_false(kelp_signature_shape(&c.signature, 1, &binding, &rank, found, &type));
    check_ok(kelp_signature_check_tensor(&c.signature, 0, &c.x, &binding));
    assert_true(kelp_signature_shape(&c.signature, 1, &binding, &rank, found, &type));
    assert_int_equal(rank, 9);
    assert_memory_equal(found, shape, sizeof shape);
    assert_int_equal(found[8], 5);
    assert_int_equal(type.bits, 32);
    assert_false(kelp_signature_shape(&c.signature, 2, &binding, &rank, found, &type)); /* U */
    assert_false(kelp_signature_shape(&c.signature, 3, &binding, &rank, found, &type)); /* ...t */
    kelp_arena_deinit(&c.arena);
}

static void outputs_beyond_the_maximum_rank_are_not_determined(void **state) {
    (void)state;
    call c;
    int64_t shape[KELP_MAX_RANK], found[KELP_MAX_RANK];
    int32_t rank = 0;
    DLDataType type;
    kelp_signature_binding binding;
    for (int i = 0; i < KELP_MAX_RANK; i++)
        shape[i] = 1;
    begin(&c, "x: T[...s], out y: T[...s, 2]", KELP_MAX_RANK, shape);
    kelp_signature_begin(&binding);
    check_ok(kelp_signature_check_tensor(&c.signature, 0, &c.x, &binding));
    assert_false(kelp_signature_shape(&c.signature, 1, &binding, &rank, found, &type));
    kelp_signature_facts facts;
    kelp_signature_view view = {.dtype = KELP_F32, .rank = KELP_MAX_RANK}, told;
    kelp_signature_problem problem;
    memcpy(view.shape, shape, sizeof shape);
    kelp_signature_facts_init(&c.signature, &facts);
    assert_true(kelp_signature_learn(&c.signature, 0, &view, &facts, &problem));
    kelp_signature_tell(&c.signature, 1, &facts, &told);
    assert_int_equal(told.rank, -1);
    assert_int_equal(told.dtype, KELP_F32);
    kelp_arena_deinit(&c.arena);
}

static void leading_dimensions_are_told_with_their_names(void **state) {
    (void)state;
    call c;
    int64_t shape[3] = {2, 3, 4};
    kelp_signature_facts facts;
    kelp_signature_view view = {.dtype = KELP_F32,
                                .rank = 4,
                                .shape = {-1, 3, 4, 5},
                                .symbols = {"batch", NULL, NULL, NULL}},
                        scalar = {.dtype = KELP_F32, .rank = 0}, told;
    kelp_signature_problem problem;
    begin(&c, "x: T[...s, k], s: T[], out y: T[...s]", 3, shape);
    kelp_signature_facts_init(&c.signature, &facts);
    assert_true(kelp_signature_learn(&c.signature, 0, &view, &facts, &problem));
    assert_true(kelp_signature_learn(&c.signature, 1, &scalar, &facts, &problem));
    assert_false(kelp_signature_learn(&c.signature, 0, &scalar, &facts, &problem));
    assert_non_null(strstr(problem.text, "rank of at least 1"));
    kelp_signature_tell(&c.signature, 2, &facts, &told);
    assert_int_equal(told.rank, 3);
    assert_int_equal(told.shape[0], -1);
    assert_string_equal(told.symbols[0], "batch");
    assert_int_equal(told.shape[1], 3);
    assert_int_equal(told.shape[2], 4);
    scalar.rank = 1;
    scalar.shape[0] = 1;
    assert_false(kelp_signature_learn(&c.signature, 1, &scalar, &facts, &problem));
    kelp_arena_deinit(&c.arena);
}

static void names_of_dimensions_are_limited(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_signature s;
    char text[1024] = "x: T[";
    size_t length = strlen(text);
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    for (int i = 0; i < 12; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "a%d, ", i);
    length += (size_t)snprintf(text + length, sizeof text - length - 1, "b], y: T[");
    for (int i = 0; i < 12; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "c%d, ", i);
    length += (size_t)snprintf(text + length, sizeof text - length, "d], z: T[");
    size_t third = length;
    for (int i = 0; i < 5; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "e%d, ", i);
    (void)snprintf(text + length, sizeof text - length, "f]");
    check_ok(kelp_signature_parse(&arena, text, &s)); /* 13 + 13 + 6 names */
    assert_int_equal(s.symbol_count, KELP_SIGNATURE_SYMBOLS);
    (void)snprintf(text + third, sizeof text - third, "e0, e1, e2, e3, e4, e5, f]");
    expect_failure(kelp_signature_parse(&arena, text, &s), KELP_INVALID_ARGUMENT,
                   "expected at most 32 names of dimensions");
    kelp_arena_deinit(&arena);
}

static void spaces_are_allowed_between_words(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_signature s;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    check_ok(kelp_signature_parse(
        &arena, "  out  y  :  T  [  ... s  ,  3  ]  ,  x : T [ ] where  T  :  int8  |  int16  ",
        &s));
    assert_int_equal(s.count, 2);
    assert_true(s.params[0].leading);
    assert_int_equal(s.params[0].dim_count, 1);
    assert_false(s.params[1].leading);
    assert_int_equal(s.params[1].dim_count, 0);
    kelp_arena_deinit(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dimensions_of_one_have_any_stride),
        cmocka_unit_test(only_empty_tensors_need_no_data),
        cmocka_unit_test(addresses_are_multiples_of_the_element),
        cmocka_unit_test(sizes_may_be_zero_and_not_negative),
        cmocka_unit_test(omitted_arguments_get_their_defaults),
        cmocka_unit_test(shapes_follow_from_bound_names),
        cmocka_unit_test(outputs_beyond_the_maximum_rank_are_not_determined),
        cmocka_unit_test(leading_dimensions_are_told_with_their_names),
        cmocka_unit_test(names_of_dimensions_are_limited),
        cmocka_unit_test(spaces_are_allowed_between_words),
    };
    return cmocka_run_group_tests_name("signature.values", tests, NULL, NULL);
}
