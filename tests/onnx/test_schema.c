/* SPDX-License-Identifier: Apache-2.0 */
/* The table of schemas: what it says of well-known operators, and that it is whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx/schema.h"

static void the_schema_in_force_is_found(void **state) {
    (void)state;
    static const struct {
        const char *domain, *op_type;
        int64_t version;
        int since; /* 0: none */
    } cases[] = {{"", "Add", 1, 1},
                 {"", "Add", 6, 6},
                 {"", "Add", 12, 7},
                 {"", "Add", 13, 13},
                 {"", "Add", 28, 14},
                 {"", "LayerNormalization", 16, 0},
                 {"", "LayerNormalization", 17, 17},
                 {"", "Gelu", 19, 0},
                 {"", "Gelu", 20, 20},
                 {"", "NoSuchOperator", 17, 0},
                 {"com.example", "Add", 1, 0},
                 {"ai.onnx.ml", "LabelEncoder", 1, 1},
                 {"ai.onnx.ml", "LabelEncoder", 3, 2},
                 {"", "Xor", 28, 7},
                 {"", "Abs", 28, 13}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const kelp_onnx_schema *schema =
            kelp_onnx_schema_find(cases[i].domain, cases[i].op_type, cases[i].version);
        assert_int_equal(schema ? schema->since : 0, cases[i].since);
    }
    assert_true(kelp_onnx_newest("") >= 28);
    assert_int_equal(kelp_onnx_newest("com.example"), 0);
}

static void every_schema_is_found_by_its_name_and_whole(void **state) {
    (void)state;
    assert_true(kelp_onnx_schemas_count > 600);
    for (size_t i = 0; i < kelp_onnx_schemas_count; i++) {
        const kelp_onnx_schema *schema = &kelp_onnx_schemas[i];
        assert_ptr_equal(schema,
                         kelp_onnx_schema_find(kelp_onnx_text(schema->domain),
                                               kelp_onnx_text(schema->name), schema->since));
        assert_in_range(schema->type_count, 0, 16); /* that inference has room for */
        assert_true(schema->min_inputs <= schema->max_inputs);
        for (size_t k = 0; k < schema->input_count; k++) {
            const kelp_onnx_param *param = kelp_onnx_input_param(schema, k);
            const kelp_onnx_type_set *set = kelp_onnx_param_types(schema, param);
            assert_true(set->tensors | set->sequences | set->optionals | set->flags);
            assert_true(param->type < schema->type_count);
        }
        for (size_t k = 0; k < schema->attr_count; k++)
            assert_in_range(kelp_onnx_attrs[schema->attrs + k].type, 1, 14);
    }
}

static void parameters_are_described(void **state) {
    (void)state;
    const kelp_onnx_schema *concat = kelp_onnx_schema_find("", "Concat", 13);
    assert_string_equal(kelp_onnx_text(kelp_onnx_input_param(concat, 0)->name), "inputs");
    assert_true(kelp_onnx_input_param(concat, 100)->flags & KELP_ONNX_VARIADIC);
    assert_int_equal(concat->max_inputs, 255);
    assert_int_equal(concat->attr_count, 1);
    assert_true(kelp_onnx_attrs[concat->attrs].flags & KELP_ONNX_REQUIRED);
    const kelp_onnx_schema *clip = kelp_onnx_schema_find("", "Clip", 13);
    assert_true(kelp_onnx_input_param(clip, 1)->flags & KELP_ONNX_OPTIONAL);
    assert_null(kelp_onnx_input_param(clip, 3));
    const kelp_onnx_schema *gather = kelp_onnx_schema_find("", "Gather", 13);
    const kelp_onnx_type_set *indices =
        kelp_onnx_param_types(gather, kelp_onnx_input_param(gather, 1));
    assert_int_equal(indices->tensors, 1u << KELP_I32 | 1u << KELP_I64);
    const kelp_onnx_schema *at = kelp_onnx_schema_find("", "SequenceAt", 11);
    assert_int_equal(kelp_onnx_param_types(at, kelp_onnx_input_param(at, 0))->tensors, 0);
    assert_true(kelp_onnx_schema_find("", "Upsample", 10)->flags & KELP_ONNX_DEPRECATED);
    assert_true(kelp_onnx_schema_find("", "Relu", 14)->flags & KELP_ONNX_FUNCTION);
    assert_true(kelp_onnx_schema_find("", "Gelu", 20)->flags & KELP_ONNX_CONTEXT_FUNCTION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_schema_in_force_is_found),
        cmocka_unit_test(every_schema_is_found_by_its_name_and_whole),
        cmocka_unit_test(parameters_are_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
