/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures: parsing, errors with their position, and checks of arguments. */
#include "signature/signature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

static const DLDevice cpu = {kDLCPU, 0};

static void expect_parse_error(const char *text, const char *part) {
    kelp_arena arena;
    kelp_signature signature;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    expect_failure(kelp_signature_parse(&arena, text, &signature), KELP_INVALID_ARGUMENT, part);
    kelp_arena_deinit(&arena);
}

static void parses_all_parts_of_a_signature(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_signature s;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    check_ok(kelp_signature_parse(
        &arena, " out y : T[...s, 3], inout z: strided float16[h,?], k: uint32, name: string", &s));
    assert_int_equal(s.count, 4);
    assert_string_equal(s.params[0].name, "y");
    assert_int_equal(s.params[0].direction, KELP_PARAM_OUT);
    assert_int_equal(s.params[0].letter, 'T' - 'A');
    assert_true(s.params[0].leading);
    assert_int_equal(s.params[0].dims[0], 3);
    assert_int_equal(s.params[1].direction, KELP_PARAM_INOUT);
    assert_int_equal(s.params[1].dtype, KELP_F16);
    assert_true(s.params[1].strided);
    assert_int_equal(s.params[1].dims[1], -1);
    assert_int_equal(s.params[2].kind, KELP_ARG_INT);
    assert_int_equal(s.params[3].kind, KELP_ARG_STRING);
    check_ok(kelp_signature_parse(&arena, "", &s));
    assert_int_equal(s.count, 0);
    check_ok(kelp_signature_parse(&arena, "out: int32", &s)); /* a name like any other */
    assert_string_equal(s.params[0].name, "out");
    kelp_arena_deinit(&arena);
}

static void rejects_malformed_signatures(void **state) {
    (void)state;
    expect_parse_error("y float32[n]", "character 3");
    expect_parse_error("y: float33[n]", "found 'float33'");
    expect_parse_error("y: float32[n", "after a dimension");
    expect_parse_error("y: float32[...s n]", "after '...'");
    expect_parse_error("y: float16", "expected a scalar type");
    expect_parse_error("out k: int32", "a scalar cannot be written: parameter 'k'");
    expect_parse_error("a: int32 b: int32", "expected ',' or the end");
    expect_parse_error("y: ints[n]", "the type of elements before '['");
    expect_parse_error("out y: ints", "a scalar cannot be written: parameter 'y'");
    expect_parse_error("a: int32 = 1.5", "the default of 'a': int32, found '1.5'");
    expect_parse_error("a: int32 = 4294967296", "found '4294967296'");
    expect_parse_error("a: bool = maybe", "the default of 'a': bool, found 'maybe'");
    expect_parse_error("a: float32 = ", "expected the default of 'a'");
    expect_parse_error("a: string = abc", "a string in quotes");
    expect_parse_error("a: string = 'abc", "a string in quotes");
    expect_parse_error("optional a: int32 = 1", "is optional: expected no default");
    expect_parse_error("variadic a: int32", "is variadic: expected a tensor");
    expect_parse_error("variadic inout a: T[n]", "expected an input or an output");
    expect_parse_error("optional inout a: T[n]", "expected an input or an output");
    expect_parse_error("variadic a: T[n], b: T[n]", "'a' is variadic: expected no input after it");
    expect_parse_error("variadic out a: T[n], out b: T[n]", "expected no output after it");
    expect_parse_error("a: T[n], a: T[n]", "two parameters have the name 'a'");
    expect_parse_error("x: T[n], n: int64 = 3", "'n' is the size of a dimension: expected no");
    expect_parse_error("x: T[n] where U: int8", "no parameter has type 'U'");
    expect_parse_error("x: T[n] where t: int8", "a capital letter after 'where', found 't'");
    expect_parse_error("x: T[n] where T int8", "expected ':' after 'T'");
    expect_parse_error("x: T[n] where T: int9", "expected a type, found 'int9'");
    expect_parse_error("x: T[n] where T: int8 | int8", "type 'int8' is repeated");
    expect_parse_error("x: T[n] where T: int8, T: int16", "type 'T' has two constraints");
    expect_parse_error("x: T[n] where T: int8 int16", "expected '|', ',' or the end, found 'i'");
    expect_parse_error("y: int8[99999999999999999999]", "expected a number");
    expect_parse_error("a: int32,, b: int32", "the name of a parameter");
    expect_parse_error("a: *int8", "only a tensor has elements");
    expect_parse_error("a: int8[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "at most 16 dimensions");
}

static void parses_optional_parameters_and_constraints(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_signature s;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    check_ok(kelp_signature_parse(
        &arena,
        "optional variadic out y: T[n], x: U[n], optional b: string[n], axis: int64 = -1, "
        "e: float32 = 1e-5, ok: bool = true, mode: string = 'a b', optional pads: ints, "
        "optional variadic rest: U[...] where T: float32 | float16, U: int8",
        &s));
    assert_true(s.params[0].optional && s.params[0].variadic);
    assert_int_equal(s.params[0].direction, KELP_PARAM_OUT);
    assert_true(s.letters['T' - 'A'].dtypes == (1u << KELP_F32 | 1u << KELP_F16));
    assert_true(s.letters['U' - 'A'].dtypes == 1u << KELP_I8);
    assert_false(s.params[1].optional);
    assert_int_equal(s.params[2].dtype, KELP_STRING);
    assert_true(s.params[3].has_default && s.params[3].optional);
    assert_int_equal(s.params[3].fallback.i, -1);
    assert_true(s.params[4].fallback.f == 1e-5);
    assert_int_equal(s.params[5].fallback.i, 1);
    assert_string_equal(s.params[6].fallback.s, "a b");
    assert_int_equal(s.params[7].attr, KELP_ATTR_INTS);
    check_ok(kelp_signature_parse(&arena, "optional: int32, variadic: int32, where: int32", &s));
    assert_string_equal(s.params[2].name, "where"); /* names like any other */
    kelp_arena_deinit(&arena);
}

static void kernels_have_no_parameters_of_operators(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {{"y: string[n]", "DLPack has no tensors of this type"},
                 {"variadic x: T[n]", "fixed number of parameters"},
                 {"optional pads: ints", "tensors and scalars"},
                 {"optional k: int64", "needs a default"}};
    kelp_arena arena;
    kelp_signature s;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_ok(kelp_signature_parse(&arena, cases[i].text, &s));
        expect_failure(kelp_signature_check_kernel(&s), KELP_INVALID_ARGUMENT, cases[i].says);
    }
    check_ok(kelp_signature_parse(&arena, "optional x: T[n], k: int64 = 2", &s));
    check_ok(kelp_signature_check_kernel(&s));
    kelp_arena_deinit(&arena);
}

typedef struct call {
    kelp_arena arena;
    kelp_signature signature;
    DLTensor a, b;
    int64_t a_shape[2], b_shape[2];
    kelp_kernel_arg args[3];
} call;

static float data[16];

static void begin(call *c, const char *text) {
    memset(c, 0, sizeof *c);
    kelp_arena_init(&c->arena, kelp_allocator_system(), 0);
    check_ok(kelp_signature_parse(&c->arena, text, &c->signature));
    c->a = (DLTensor){
        .data = data, .device = cpu, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = c->a_shape};
    c->b = c->a;
    c->b.shape = c->b_shape;
    c->a_shape[0] = c->b_shape[0] = 2;
    c->a_shape[1] = c->b_shape[1] = 3;
    c->args[0] = (kelp_kernel_arg){.kind = KELP_ARG_TENSOR, .as.tensor = &c->a};
    c->args[1] = (kelp_kernel_arg){.kind = KELP_ARG_TENSOR, .as.tensor = &c->b};
    c->args[2] = (kelp_kernel_arg){.kind = KELP_ARG_INT, .as.i = 5};
}

static void expect_check_error(call *c, int32_t count, const char *part) {
    expect_failure(kelp_signature_check(&c->signature, c->args, count, cpu), KELP_INVALID_ARGUMENT,
                   part);
}

static void checks_arguments_against_parameters(void **state) {
    (void)state;
    call c;
    begin(&c, "out y: float32[h, w], x: float32[h, w], k: int32");
    check_ok(kelp_signature_check(&c.signature, c.args, 3, cpu));
    expect_check_error(&c, 2, "has 3 parameters: found 2 arguments");
    c.b_shape[1] = 4;
    expect_check_error(&c, 3,
                       "argument 'x' has shape [2,4]: expected dimension 'w' of axis 1 to be 3");
    c.b_shape[1] = 3;
    c.b.dtype.bits = 64;
    expect_check_error(&c, 3, "argument 'x' has the wrong type: expected float32, found float64");
    c.b.dtype.bits = 32;
    c.b.ndim = 1;
    expect_check_error(&c, 3, "expected rank 2");
    c.b.ndim = 2;
    c.args[0].flags = KELP_ARG_READ_ONLY;
    expect_check_error(&c, 3, "argument 'y' is read-only");
    c.args[0].flags = 0;
    c.args[1].flags = KELP_ARG_READ_ONLY; /* an input */
    check_ok(kelp_signature_check(&c.signature, c.args, 3, cpu));
    c.args[2].as.i = (int64_t)1 << 40;
    expect_check_error(&c, 3, "1099511627776 is not a valid int32");
    c.args[2].kind = KELP_ARG_FLOAT;
    expect_check_error(&c, 3, "argument 'k' must be an integer: found a number");
    c.args[2] = (kelp_kernel_arg){.kind = KELP_ARG_INT, .as.i = 1};
    int64_t strides[2] = {8, 1};
    c.b.strides = strides;
    expect_check_error(&c, 3, "gaps between its elements");
    c.b_shape[0] = c.b_shape[1] = (int64_t)1 << 33; /* their product overflows */
    c.a_shape[0] = c.a_shape[1] = (int64_t)1 << 33;
    strides[0] = (int64_t)1 << 33;
    expect_check_error(&c, 3, "gaps between its elements");
    c.a_shape[0] = c.b_shape[0] = 2;
    c.a_shape[1] = c.b_shape[1] = 3;
    strides[0] = 3;
    check_ok(kelp_signature_check(&c.signature, c.args, 3, cpu));
    c.b.device.device_type = kDLCUDA;
    expect_check_error(&c, 3, "is on the wrong device");
    c.b.device = cpu;
    c.b.data = NULL;
    expect_check_error(&c, 3, "has no data");
    kelp_arena_deinit(&c.arena);
}

static void names_have_one_value_per_call(void **state) {
    (void)state;
    call c;
    begin(&c, "out y: T[...s], x: T[...s]");
    check_ok(kelp_signature_check(&c.signature, c.args, 2, cpu));
    c.b.dtype.code = kDLInt;
    expect_check_error(&c, 2, "expected float32, found int32");
    c.b.dtype.code = kDLFloat;
    c.b.ndim = 1;
    expect_check_error(&c, 2, "leading dimensions [2,3], as for the other '...s'");
    kelp_arena_deinit(&c.arena);
    begin(&c, "out y: any[..., 3], x: any[?, ?]");
    c.b.dtype.code = kDLInt;
    check_ok(kelp_signature_check(&c.signature, c.args, 2, cpu));
    c.a_shape[1] = 4;
    expect_check_error(&c, 2, "argument 'y' has shape [2,4]: expected axis 1 to be 3");
    kelp_arena_deinit(&c.arena);
}

static void letters_are_restricted_and_arguments_omitted(void **state) {
    (void)state;
    call c;
    kelp_kernel_arg filled[3];
    begin(&c, "out y: T[h, w], optional x: T[h, w], k: int32 = 7 where T: float32 | int8");
    check_ok(kelp_signature_check(&c.signature, c.args, 3, cpu));
    assert_ptr_equal(kelp_signature_fill(&c.signature, c.args, filled), c.args);
    c.args[1].kind = c.args[2].kind = 0;
    check_ok(kelp_signature_check(&c.signature, c.args, 3, cpu));
    assert_ptr_equal(kelp_signature_fill(&c.signature, c.args, filled), filled);
    assert_int_equal(filled[1].kind, 0);
    assert_int_equal(filled[2].as.i, 7);
    c.args[0].kind = 0;
    expect_check_error(&c, 3, "argument 'y' must be a tensor: found nothing");
    c.args[0].kind = KELP_ARG_TENSOR;
    c.a.dtype.bits = 64;
    expect_check_error(&c, 3, "expected float32 or int8, found float64");
    kelp_arena_deinit(&c.arena);
}

/* An integer with the name of a dimension. */
static void integers_bind_dimensions(void **state) {
    (void)state;
    call c;
    begin(&c, "out y: float32[h, w], x: float32[h, w], w: int64");
    expect_check_error(&c, 3, "argument 'w' is 5: expected 3, which is dimension 'w'");
    c.args[2].as.i = 3;
    check_ok(kelp_signature_check(&c.signature, c.args, 3, cpu));
    c.args[2].as.i = -1;
    expect_check_error(&c, 3, "a dimension cannot be negative");
    kelp_arena_deinit(&c.arena);
}

static void checks_alignment_of_elements(void **state) {
    (void)state;
    call c;
    begin(&c, "out y: float32[h, w], x: T[h, w]");
    c.b.byte_offset = 4;
    check_ok(kelp_signature_check(&c.signature, c.args, 2, cpu));
    c.b.byte_offset = 2;
    expect_check_error(
        &c, 2,
        "the address of argument 'x' is not aligned: expected a multiple of the size of float32");
    c.b.byte_offset = 0;
    c.a.byte_offset = 1;
    expect_check_error(&c, 2, "the address of argument 'y' is not aligned");
    kelp_arena_deinit(&c.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_all_parts_of_a_signature),
        cmocka_unit_test(rejects_malformed_signatures),
        cmocka_unit_test(parses_optional_parameters_and_constraints),
        cmocka_unit_test(kernels_have_no_parameters_of_operators),
        cmocka_unit_test(letters_are_restricted_and_arguments_omitted),
        cmocka_unit_test(checks_arguments_against_parameters),
        cmocka_unit_test(names_have_one_value_per_call),
        cmocka_unit_test(integers_bind_dimensions),
        cmocka_unit_test(checks_alignment_of_elements),
    };
    return cmocka_run_group_tests_name("signature", tests, NULL, NULL);
}
