/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the list of operators: its order, its records and their schemas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "operator/operator.h"

static const kelp_operator *find(const char *domain, const char *name) {
    return kelp_operator_find(kelp_str_from(domain), kelp_str_from(name));
}

static void every_operator_is_found_by_domain_and_name(void **state) {
    (void)state;
    for (int i = 0; i < KELP_OPERATOR_COUNT; i++) {
        const kelp_operator *op = &kelp_operators[i];
        assert_int_equal(op->id, i);
        assert_ptr_equal(find(op->domain, op->name), op);
    }
}

static void rows_of_a_domain_are_sorted_by_name(void **state) {
    (void)state;
    int sorted = 0;
    for (int i = 1; i < KELP_OPERATOR_COUNT; i++)
        if (strcmp(kelp_operators[i - 1].domain, kelp_operators[i].domain) == 0)
            sorted += strcmp(kelp_operators[i - 1].name, kelp_operators[i].name) < 0;
        else
            sorted++;
    /* operators of the runtime are a separate sorted range of the same domain */
    assert_in_range(KELP_OPERATOR_COUNT - 1 - sorted, 0, 1);
}

static void unknown_names_are_not_found(void **state) {
    (void)state;
    assert_null(find("", "Con"));
    assert_null(find("", "ConvX"));
    assert_null(find("", ""));
    assert_null(find("", "FusedConv"));
    assert_null(find("com.example", "Conv"));
    assert_null(kelp_operator_find((kelp_str){0}, (kelp_str){"Conv\0x", 6}));
    assert_null(kelp_operator_find((kelp_str){0}, (kelp_str){0}));
}

static void one_name_in_two_domains_is_two_operators(void **state) {
    (void)state;
    assert_ptr_equal(find("", "Attention"), KELP_OP(Attention));
    assert_ptr_equal(find("com.microsoft", "Attention"), KELP_OP_MS(Attention));
    assert_ptr_equal(find("kelp", "Attention"), KELP_OP_KELP(Attention));
    assert_ptr_not_equal(KELP_OP(Attention), KELP_OP_MS(Attention));
    assert_ptr_not_equal(KELP_OP_MS(Attention), KELP_OP_KELP(Attention));
    assert_ptr_equal(find("kelp", "BackendSubgraph"), KELP_OPERATOR(RUNTIME, BackendSubgraph));
}

/* Operators outside the list never have a schema. */
static void every_schema_belongs_to_an_operator(void **state) {
    (void)state;
    for (size_t i = 0; i < kelp_onnx_schemas_count; i++) {
        const kelp_onnx_schema *schema = &kelp_onnx_schemas[i];
        const kelp_operator *op =
            find(kelp_onnx_text(schema->domain), kelp_onnx_text(schema->name));
        assert_non_null(op);
        assert_ptr_equal(kelp_operator_schema(op, schema->since), schema);
    }
}

static void operators_outside_onnx_have_no_schema(void **state) {
    (void)state;
    assert_null(kelp_operator_schema(KELP_OP_MS(FusedConv), 1));
    assert_null(kelp_operator_schema(KELP_OP_KELP(ConvAct), 1));
    assert_null(kelp_operator_schema(KELP_OP(SimplifiedLayerNormalization), 17));
    assert_null(kelp_operator_schema(KELP_OP(Gelu), 19));
    assert_non_null(kelp_operator_schema(KELP_OP(Gelu), 20));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_is_found_by_domain_and_name),
        cmocka_unit_test(rows_of_a_domain_are_sorted_by_name),
        cmocka_unit_test(unknown_names_are_not_found),
        cmocka_unit_test(one_name_in_two_domains_is_two_operators),
        cmocka_unit_test(every_schema_belongs_to_an_operator),
        cmocka_unit_test(operators_outside_onnx_have_no_schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
