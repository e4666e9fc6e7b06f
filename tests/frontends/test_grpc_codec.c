/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of ModelInferRequest into a request without a server, and the text formats of gRPC. */
#include "base/wire/protobuf_write.h"
#include "frontends/grpc/codec/infer_request.h"
#include "frontends/grpc/exchange.h"
#include "support/fake_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Fields of ModelInferRequest, InferInputTensor and InferParameter. */
enum { MODEL = 1, VERSION, ID, PARAMETERS, INPUTS, OUTPUTS, RAW };
enum { NAME = 1, TYPE, SHAPE, INPUT_PARAMETERS, CONTENTS };
enum { BOOL_PARAM = 1, INT64_PARAM, STRING_PARAM, DOUBLE_PARAM, UINT64_PARAM };

typedef struct fixture {
    kelp_buf message;
    kelp_arena arena;
    kelp_grpc_infer_request decoded;
    fake_request request;
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    kelp_buf_init(&f->message, kelp_allocator_system());
    kelp_arena_init(&f->arena, kelp_allocator_system(), 0);
    kelp_protobuf_put_text(&f->message, MODEL, "m");
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    kelp_buf_deinit(&f->message);
    kelp_arena_deinit(&f->arena);
    free(f);
    return 0;
}

/* Appends an input without data; `contents` is an InferTensorContents or NULL. */
static void put_input(fixture *f, const char *name, const char *type, int64_t dimension,
                      const kelp_buf *contents) {
    kelp_buf *out = &f->message;
    size_t start = out->length;
    kelp_protobuf_put_text(out, NAME, name);
    kelp_protobuf_put_text(out, TYPE, type);
    kelp_protobuf_put_i64(out, SHAPE, dimension);
    if (contents != NULL)
        kelp_protobuf_put_bytes(out, CONTENTS, contents->data, contents->length);
    kelp_protobuf_wrap(out, INPUTS, start);
}

static void put_int(fixture *f, const char *name, uint32_t choice, int64_t value) {
    kelp_buf *out = &f->message;
    size_t start = out->length;
    kelp_protobuf_put_text(out, 1, name);
    size_t inner = out->length;
    kelp_protobuf_put_i64(out, choice, value);
    kelp_protobuf_wrap(out, 2, inner);
    kelp_protobuf_wrap(out, PARAMETERS, start);
}

static kelp_status *decode_message(fixture *f) {
    kelp_str message = {f->message.data, f->message.length};
    KELP_TRY(kelp_grpc_scan_request(&f->arena, message, &f->decoded));
    return kelp_grpc_fill_request(&f->arena, NULL, &f->decoded, fake_handle(&f->request));
}

static void expect_failure(fixture *f, kelp_code code, const char *part) {
    kelp_status *status = decode_message(f);
    assert_int_equal(kelp_status_code(status), code);
    if (strstr(kelp_status_message(status), part) == NULL)
        fail_msg("'%s' is not in '%s'", part, kelp_status_message(status));
    kelp_status_free(status);
}

/* ---- tensors ---- */

static void raw_tensors_are_slices_of_the_message(void **state) {
    fixture *f = *state;
    static const unsigned char bytes[] = {1, 2, 3};
    put_input(f, "a", "UINT8", 3, NULL);
    put_input(f, "b", "BYTES", 0, NULL);
    kelp_protobuf_put_bytes(&f->message, RAW, bytes, sizeof bytes);
    kelp_protobuf_put_bytes(&f->message, RAW, NULL, 0);
    assert_null(decode_message(f));
    assert_int_equal(f->request.input_count, 2);
    assert_string_equal(f->request.inputs[0].name, "a");
    assert_int_equal(f->request.inputs[0].type, TRITONSERVER_TYPE_UINT8);
    assert_int_equal(f->request.inputs[0].shape[0], 3);
    assert_int_equal(f->request.inputs[0].size_bytes, 3);
    const char *data = f->request.inputs[0].data;
    assert_true(data > f->message.data && data < f->message.data + f->message.length);
    assert_int_equal(f->request.inputs[1].size_bytes, 0);
    assert_int_equal(kelp_grpc_find_tensor(f->message.data, f->message.length),
                     (size_t)(data - f->message.data));
}

static void a_misaligned_tensor_is_copied(void **state) {
    fixture *f = *state;
    static const int64_t values[] = {1, -2};
    char padding[8] = "";
    put_input(f, "a", "INT64", 2, NULL);
    for (size_t i = 0; i < 8; i++) { /* every alignment */
        size_t length = f->message.length;
        kelp_protobuf_put_bytes(&f->message, 100, padding, i); /* an unknown field */
        kelp_protobuf_put_bytes(&f->message, RAW, values, sizeof values);
        f->request = (fake_request){0};
        assert_null(decode_message(f));
        assert_int_equal((uintptr_t)f->request.inputs[0].data % sizeof(int64_t), 0);
        assert_memory_equal(f->request.inputs[0].data, values, sizeof values);
        f->message.length = length;
    }
}

static void contents_may_be_packed_or_not(void **state) {
    fixture *f = *state;
    kelp_buf contents;
    kelp_buf_init(&contents, kelp_allocator_system());
    kelp_protobuf_put_i64(&contents, 2, -1); /* int_contents */
    size_t start = contents.length;
    kelp_protobuf_put_varint(&contents, 300);
    kelp_protobuf_put_varint(&contents, (uint64_t)-300);
    kelp_protobuf_wrap(&contents, 2, start);
    kelp_protobuf_put_i64(&contents, 2, 7);
    put_input(f, "a", "INT16", 4, &contents);
    kelp_buf_deinit(&contents);
    static const int16_t expected[] = {-1, 300, -300, 7};
    assert_null(decode_message(f));
    assert_int_equal(f->request.inputs[0].size_bytes, sizeof expected);
    assert_memory_equal(f->request.inputs[0].data, expected, sizeof expected);
}

static void announced_elements_reserve_no_memory(void **state) {
    fixture *f = *state;
    put_input(f, "a", "FP64", INT64_C(1) << 50, NULL);
    expect_failure(f, KELP_INVALID_ARGUMENT, "found 0");
    assert_true(f->arena.used_bytes < 4096);
}

static void wrong_shapes_are_rejected(void **state) {
    fixture *f = *state;
    size_t length = f->message.length;
    put_input(f, "a", "INT8", -1, NULL);
    expect_failure(f, KELP_INVALID_ARGUMENT, "negative");
    f->message.length = length;
    put_input(f, "a", "INT99", 1, NULL);
    expect_failure(f, KELP_INVALID_ARGUMENT, "'INT99'");
}

/* ---- parameters ---- */

static void parameters_of_requests_are_decoded(void **state) {
    fixture *f = *state;
    kelp_protobuf_put_text(&f->message, ID, "r1");
    kelp_protobuf_put_text(&f->message, VERSION, "12");
    put_int(f, "sequence_id", INT64_PARAM, 9);
    put_int(f, "sequence_start", BOOL_PARAM, 1);
    put_int(f, "sequence_end", BOOL_PARAM, 1);
    put_int(f, "priority", UINT64_PARAM, 3);
    put_int(f, "timeout", INT64_PARAM, 500);
    put_int(f, "triton_enable_empty_final_response", BOOL_PARAM, 1);
    put_int(f, "own", INT64_PARAM, -4);
    put_int(f, "flag", BOOL_PARAM, 1);
    assert_null(decode_message(f));
    assert_string_equal(f->request.id, "r1");
    assert_int_equal(f->decoded.version, 12);
    assert_int_equal(f->request.correlation, 9);
    assert_int_equal(f->request.flags, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START |
                                           TRITONSERVER_REQUEST_FLAG_SEQUENCE_END);
    assert_int_equal(f->request.priority, 3);
    assert_int_equal(f->request.timeout_us, 500);
    assert_true(f->decoded.sends_empty_final);
    assert_int_equal(f->request.parameter_count, 2);
    assert_int_equal(f->request.parameters[0].i64, -4);
    assert_int_equal(f->request.parameters[1].type, TRITONSERVER_PARAMETER_BOOL);
}

static void the_number_of_items_is_limited(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i <= KELP_GRPC_MAX_ITEMS; i++)
        kelp_protobuf_put_bytes(&f->message, OUTPUTS, NULL, 0);
    expect_failure(f, KELP_INVALID_ARGUMENT, "more than 16384 outputs");
}

static void every_cut_of_a_message_is_rejected_or_decoded(void **state) {
    fixture *f = *state;
    static const float values[] = {1, 2};
    put_int(f, "own", INT64_PARAM, 5);
    put_input(f, "a", "FP32", 2, NULL);
    kelp_protobuf_put_bytes(&f->message, RAW, values, sizeof values);
    for (size_t length = 0; length < f->message.length; length++) {
        char *copy = malloc(length + 1); /* sanitizers notice reads after the end */
        assert_non_null(copy);
        memcpy(copy, f->message.data, length);
        kelp_grpc_infer_request decoded;
        fake_request request = {0};
        kelp_status *status = kelp_grpc_scan_request(&f->arena, (kelp_str){copy, length}, &decoded);
        if (status == NULL)
            status = kelp_grpc_fill_request(&f->arena, NULL, &decoded, fake_handle(&request));
        kelp_status_free(status);
        free(copy);
    }
}

/* ---- text formats ---- */

static void timeouts_have_units(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {{"1H", UINT64_C(3600000000000)},
                {"2M", UINT64_C(120000000000)},
                {"3S", 3000000000u},
                {"100m", 100000000},
                {"5u", 5000},
                {"99999999n", 99999999},
                {"99999999H", UINT64_MAX}};
    static const char *const bad[] = {"",    "m",          "5",   "5x",  "-5m",
                                      "+5m", "123456789m", "5 m", "0x5m"};
    uint64_t ns;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(kelp_grpc_parse_timeout(kelp_str_from(good[i].text), &ns));
        assert_int_equal(ns, good[i].ns);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(kelp_grpc_parse_timeout(kelp_str_from(bad[i]), &ns));
}

static void messages_are_percent_encoded(void **state) {
    (void)state;
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_grpc_encode_text(&text, KELP_STR("a b%\n\xc3\xa8~"));
    assert_string_equal(kelp_buf_cstr(&text), "a b%25%0A%C3%A8~");
    kelp_buf_deinit(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(raw_tensors_are_slices_of_the_message, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_misaligned_tensor_is_copied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(contents_may_be_packed_or_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(announced_elements_reserve_no_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_shapes_are_rejected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parameters_of_requests_are_decoded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_number_of_items_is_limited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_cut_of_a_message_is_rejected_or_decoded, set_up,
                                        tear_down),
        cmocka_unit_test(timeouts_have_units),
        cmocka_unit_test(messages_are_percent_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
