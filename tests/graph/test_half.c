/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the pass that computes 16-bit floats in float32: which nodes change, and where casts
 * remain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/text.h"

static void heavy_nodes_compute_in_float32(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {"x:f16[4,8]; w:f16[8,8]=2; y=MatMul(x,w)",
         "x=Cast(x){to=1}; w=Cast(<2 x64>){to=1}; y=MatMul(x,w); y=Cast(y){to=10}"},
        {"x:f16[4,8]; w:f16[8,8]=2; a=MatMul(x,w); b=Relu(a); y=MatMul(b,w)",
         "x=Cast(x){to=1}; w=Cast(<2 x64>){to=1}; a=MatMul(x,w); b=Relu(a); y=MatMul(b,w); "
         "y=Cast(y){to=10}"},
        {"x:bf16[4,8]; y=Softmax(x)", "x=Cast(x){to=1}; y=Softmax(x); y=Cast(y){to=16}"},
        {"x:f32[4,8]; w:f32[8,8]=2; y=MatMul(x,w)", NULL},
        {"x:f16[4,8]; y=any.Custom(x)", NULL},
        {"x:f16[4,8]; a=any.Custom(x); y=Softmax(a)", NULL},
    };
    EXPECT_PASSES(kelp_pass_half, cases);
}

static void light_nodes_follow_heavy_ones(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {"x:f16[4,8]; y=Add(x,x)", NULL},
        {"x:f16[4,8]; a=Add(x,x); y=Tanh(a)", NULL},
        {"x:f16[4,8]; a=Add(x,x); y=Softmax(a)",
         "x=Cast(x){to=1}; a=Add(x,x); y=Softmax(a); y=Cast(y){to=10}"},
        {"x:f16[4,8]; a=Softmax(x); b=Reshape(a,[8,4]); y=Greater(b,b)",
         "x=Cast(x){to=1}; a=Softmax(x); b=Reshape(a,<8 4>); y=Greater(b,b)"},
    };
    EXPECT_PASSES(kelp_pass_half, cases);
}

static void moves_stay_in_16_bits_unless_all_inputs_are_float32(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {"x:f16[4,8]; a=Transpose(x); y=Softmax(a)",
         "a=Transpose(x); a=Cast(a){to=1}; y=Softmax(a); y=Cast(y){to=10}"},
        {"x:f16[4,8]; a=Softmax(x); y=Transpose(a)",
         "x=Cast(x){to=1}; a=Softmax(x); y=Transpose(a); y=Cast(y){to=10}"},
        {"x:f16[4,8]; z:f16[4,8]; a=Softmax(x); y=Concat(a,z){axis=0}",
         "x=Cast(x){to=1}; a=Softmax(x); a=Cast(a){to=10}; y=Concat(a,z){axis=0}"},
        {"t:f16[4,8]=1; i:i64[3]; a=Gather(t,i); y=Softmax(a)",
         "a=Gather(<1 x32>,i); a=Cast(a){to=1}; y=Softmax(a); y=Cast(y){to=10}"},
        {"x:f16[4,8]; a=Softmax(x); y=Shape(a)", "x=Cast(x){to=1}; a=Softmax(x); y=Shape(a)"},
    };
    EXPECT_PASSES(kelp_pass_half, cases);
}

static void casts_of_the_model_are_not_repeated(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {"x:f32[4,8]; a=Cast(x){to=10}; b=Softmax(a); y=Cast(b){to=1}",
         "b=Softmax(x); y=Cast(b){to=1}"},
        {"x:f32[4,8]; y=Cast(x){to=10}", NULL},
        {"x:f16[4,8]; y=Cast(x){to=1}", NULL},
    };
    EXPECT_PASSES(kelp_pass_half, cases);
}

static void attention_with_a_cache_stays_in_16_bits(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {"q:f16[1,2,1,8]; k:f16[1,2,4,8]; y=Attention(q,q,q,_,k,k)@23", NULL},
        {"q:f16[1,2,1,8]; y=Attention(q,q,q)@23",
         "q=Cast(q){to=1}; y=Attention(q,q,q); y=Cast(y){to=10}"},
    };
    EXPECT_PASSES(kelp_pass_half, cases);
}

static void blocks_without_weights_stay_in_16_bits(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {"x:f16[4,4]; s:f16[1]=2; a=Mul(x,s); b=MatMul(a,a); y=Softmax(b)", NULL},
        {"x:f16[4,8]; w:f16[8,8]=2; y=MatMul(x,w)",
         "x=Cast(x){to=1}; w=Cast(<2 x64>){to=1}; y=MatMul(x,w); y=Cast(y){to=10}"},
    };
    EXPECT_PASSES(kelp_passes_run_half, cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heavy_nodes_compute_in_float32),
        cmocka_unit_test(light_nodes_follow_heavy_ones),
        cmocka_unit_test(moves_stay_in_16_bits_unless_all_inputs_are_float32),
        cmocka_unit_test(casts_of_the_model_are_not_repeated),
        cmocka_unit_test(attention_with_a_cache_stays_in_16_bits),
        cmocka_unit_test(blocks_without_weights_stay_in_16_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
