/* SPDX-License-Identifier: Apache-2.0 */
/* Reads fields of protobuf's wire format, and checks that no byte after the end is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx/onnx_writer.h"
#include "base/wire/protobuf.h"

static kelp_str str_of(const pb *message) {
    return (kelp_str){message->data, message->length};
}

static void fields_come_in_order(void **state) {
    (void)state;
    pb message = {0};
    pb_int(&message, 1, 300);
    pb_text(&message, 2, "kelp");
    pb_float(&message, 3, 1.5f);
    pb_int(&message, 536870911, UINT64_MAX);
    kelp_protobuf wire = kelp_protobuf_of(str_of(&message));
    kelp_protobuf_field field;
    assert_int_equal(kelp_protobuf_next(&wire, &field), KELP_PROTOBUF_FIELD);
    assert_int_equal(field.number, 1);
    assert_int_equal(field.value, 300);
    assert_int_equal(kelp_protobuf_next(&wire, &field), KELP_PROTOBUF_FIELD);
    assert_int_equal(field.type, KELP_PROTOBUF_BYTES);
    assert_true(kelp_str_is(field.bytes, "kelp"));
    assert_int_equal(kelp_protobuf_next(&wire, &field), KELP_PROTOBUF_FIELD);
    assert_int_equal(field.value, 0x3fc00000);
    assert_int_equal(kelp_protobuf_next(&wire, &field), KELP_PROTOBUF_FIELD);
    assert_int_equal(field.number, 536870911);
    assert_true(field.value == UINT64_MAX);
    assert_int_equal(kelp_protobuf_next(&wire, &field), KELP_PROTOBUF_END);
}

static void every_cut_is_noticed(void **state) {
    (void)state;
    pb message = {0};
    pb_int(&message, 1, 1u << 20);
    size_t first = message.length;
    pb_text(&message, 15, "some text");
    for (size_t cut = 1; cut < message.length; cut++) {
        kelp_protobuf wire = kelp_protobuf_of((kelp_str){message.data, cut});
        kelp_protobuf_field field;
        kelp_protobuf_result result;
        while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD) {
        }
        assert_int_equal(result, cut == first ? KELP_PROTOBUF_END : KELP_PROTOBUF_MALFORMED);
    }
}

static void what_is_not_a_field_is_malformed(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
    } wrong[] = {
        {"\x00\x01", 2},                                          /* field 0 */
        {"\x0b", 1},                                              /* a group begins */
        {"\x0f\x00", 2},                                          /* wire type 7 */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* 11 bytes of one number */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},     /* a length past all memory */
        {"\x0d\x00\x00\x00", 4},                                  /* 3 of 4 bytes */
        {"\x09\x00\x00\x00\x00\x00\x00\x00", 8},                  /* 7 of 8 bytes */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        kelp_protobuf wire = kelp_protobuf_of((kelp_str){wrong[i].bytes, wrong[i].length});
        kelp_protobuf_field field;
        assert_int_equal(kelp_protobuf_next(&wire, &field), KELP_PROTOBUF_MALFORMED);
    }
}

static void fields_are_counted_up_to_what_is_malformed(void **state) {
    (void)state;
    pb message = {0};
    for (int i = 0; i < 3; i++) {
        pb_int(&message, 4, 7);
        pb_text(&message, 5, "x");
    }
    assert_int_equal(kelp_protobuf_count(str_of(&message), 4), 3);
    pb_varint(&message, 4 << 3 | 2);
    pb_varint(&message, 1000);
    assert_int_equal(kelp_protobuf_count(str_of(&message), 4), 3);
    assert_int_equal(kelp_protobuf_count((kelp_str){NULL, 0}, 4), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_come_in_order),
        cmocka_unit_test(every_cut_is_noticed),
        cmocka_unit_test(what_is_not_a_field_is_malformed),
        cmocka_unit_test(fields_are_counted_up_to_what_is_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
