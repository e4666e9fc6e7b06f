/* SPDX-License-Identifier: Apache-2.0 */
/* The table of schemas: entries of well-known operators, and completeness. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx/schema.h"
#include "onnx/schema_index.h"

static void the_schema_in_force_is_found(void **state) {
    (void)state;
    static const struct {
        uint16_t newest;
        int64_t version;
        int since; /* 0: none */
    } cases[] = {{KELP_ONNX_SCHEMA_ONNX_Add, 1, 1},
                 {KELP_ONNX_SCHEMA_ONNX_Add, 6, 6},
                 {KELP_ONNX_SCHEMA_ONNX_Add, 12, 7},
                 {KELP_ONNX_SCHEMA_ONNX_Add, 13, 13},
                 {KELP_ONNX_SCHEMA_ONNX_Add, 28, 14},
                 {KELP_ONNX_SCHEMA_ONNX_LayerNormalization, 16, 0},
                 {KELP_ONNX_SCHEMA_ONNX_LayerNormalization, 17, 17},
                 {KELP_ONNX_SCHEMA_ONNX_Gelu, 19, 0},
                 {KELP_ONNX_SCHEMA_ONNX_Gelu, 20, 20},
                 {KELP_ONNX_NO_SCHEMA, 17, 0},
                 {KELP_ONNX_SCHEMA_ML_LabelEncoder, 1, 1},
                 {KELP_ONNX_SCHEMA_ML_LabelEncoder, 3, 2},
                 {KELP_ONNX_SCHEMA_ONNX_Xor, 28, 7},
                 {KELP_ONNX_SCHEMA_ONNX_Abs, 28, 13}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const kelp_onnx_schema *schema = kelp_onnx_schema_at(cases[i].newest, cases[i].version);
        assert_int_equal(schema ? schema->since : 0, cases[i].since);
    }
    assert_true(kelp_onnx_newest("") >= 28);
    assert_int_equal(kelp_onnx_newest("com.example"), 0);
}

static void every_schema_is_whole(void **state) {
    (void)state;
    assert_true(kelp_onnx_schemas_count > 600);
    for (size_t i = 0; i < kelp_onnx_schemas_count; i++) {
        const kelp_onnx_schema *schema = &kelp_onnx_schemas[i];
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
    const kelp_onnx_schema *concat = kelp_onnx_schema_at(KELP_ONNX_SCHEMA_ONNX_Concat, 13);
    assert_string_equal(kelp_onnx_text(kelp_onnx_input_param(concat, 0)->name), "inputs");
    assert_true(kelp_onnx_input_param(concat, 100)->flags & KELP_ONNX_VARIADIC);
    assert_int_equal(concat->max_inputs, 255);
    assert_int_equal(concat->attr_count, 1);
    assert_true(kelp_onnx_attrs[concat->attrs].flags & KELP_ONNX_REQUIRED);
    const kelp_onnx_schema *clip = kelp_onnx_schema_at(KELP_ONNX_SCHEMA_ONNX_Clip, 13);
    assert_true(kelp_onnx_input_param(clip, 1)->flags & KELP_ONNX_OPTIONAL);
    assert_null(kelp_onnx_input_param(clip, 3));
    const kelp_onnx_schema *gather = kelp_onnx_schema_at(KELP_ONNX_SCHEMA_ONNX_Gather, 13);
    const kelp_onnx_type_set *indices =
        kelp_onnx_param_types(gather, kelp_onnx_input_param(gather, 1));
    assert_int_equal(indices->tensors, 1u << KELP_I32 | 1u << KELP_I64);
    const kelp_onnx_schema *at = kelp_onnx_schema_at(KELP_ONNX_SCHEMA_ONNX_SequenceAt, 11);
    assert_int_equal(kelp_onnx_param_types(at, kelp_onnx_input_param(at, 0))->tensors, 0);
    assert_true(kelp_onnx_schema_at(KELP_ONNX_SCHEMA_ONNX_Upsample, 10)->flags &
                KELP_ONNX_DEPRECATED);
    assert_true(kelp_onnx_schema_at(KELP_ONNX_SCHEMA_ONNX_Relu, 14)->flags & KELP_ONNX_FUNCTION);
    assert_true(kelp_onnx_schema_at(KELP_ONNX_SCHEMA_ONNX_Gelu, 20)->flags &
                KELP_ONNX_CONTEXT_FUNCTION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_schema_in_force_is_found),
        cmocka_unit_test(every_schema_is_whole),
        cmocka_unit_test(parameters_are_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
