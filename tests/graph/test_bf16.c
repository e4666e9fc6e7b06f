/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the passes that use bfloat16: which operators and values change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/text.h"

static void gemms_with_constant_weights_are_rounded(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {"x:f32[4,32]; w:f32[32,32]=2; y=MatMul(x,w)", "y=MatMulBf16(x,<2 x1024>)"},
        {"x:f32[4,128]; w:f32[128,8]=2; y=MatMul(x,w)", "y=MatMulBf16(x,<2 x1024>)"},
        {"x:f32[4,8]; w:f32[8,128]=2; y=MatMul(x,w)", "y=MatMulBf16(x,<2 x1024>)"},
        {"x:f32[4,32]; w:f32[32,32]=2; b:f32[32]=1; y=kelp.MatMulBias(x,w,b){activation=relu}",
         "y=MatMulBf16(x,<2 x1024>,<1 x32>){activation=relu}"},
        {"x:f32[4,31]; w:f32[31,33]=2; y=MatMul(x,w)", NULL}, /* 1023 elements */
        {"x:f32[4,147]; w:f32[147,7]=2; y=MatMul(x,w)", NULL},
        {"x:f32[4,7]; w:f32[7,147]=2; y=MatMul(x,w)", NULL},
        {"x:f32[4,32]; w:f32[32,32]; y=MatMul(x,w)", NULL},
        {"x:f64[4,32]; w:f64[32,32]=2; y=MatMul(x,w)", NULL},
        {"x:f32[1,4,32]; w:f32[1,32,32]=2; y=MatMul(x,w)", NULL},
        {"x:f32[32,32]; w:f32[32,32]=2; y=Add(x,w)", NULL},
        {"x:f32[4,32]; w:f32[32,32]=2; y=Gemm(x,w)", "y=MatMulBf16(x,<2 x1024>)"},
        {"x:f32[4,32]; w:f32[64,32]=2; b:f32[64]=1; y=Gemm(x,w,b){transB=1}",
         "y=MatMulBf16(x,<2 x2048>,<1 x64>){transB=1}"},
        {"x:f32[4,32]; w:f32[32,64]=2; b:f32[64]=1; y=Gemm(x,w,b)",
         "y=MatMulBf16(x,<2 x2048>,<1 x64>)"},
        {"x:f32[4,32]; w:f32[32,64]=2; b:f32[1,64]=1; y=Gemm(x,w,b)",
         "y=MatMulBf16(x,<2 x2048>,<1 x64>)"},
        {"x:f32[4,32]; w:f32[32,64]=2; b:f32[64]; y=Gemm(x,w,b)", "y=MatMulBf16(x,<2 x2048>,b)"},
        {"x:f32[4,32]; w:f32[32,64]=2; b:f32[4,64]=1; y=Gemm(x,w,b)", NULL},
        {"x:f32[4,32]; w:f32[32,64]=2; b:f32[4,1]=1; y=Gemm(x,w,b)", NULL},
        {"x:f32[4,32]; w:f32[32,64]=2; b:f32[]=1; y=Gemm(x,w,b)", NULL},
        {"x:f32[4,32]; w:f32[32,64]=2; b:f32[?,64]; y=Gemm(x,w,b)", NULL},
        {"x:f32[4,32]; w:f32[32,64]=2; b:f32[64]=1; y=Gemm(x,w,b){beta=0.5}", NULL},
        {"x:f32[4,32]; w:f32[32,64]=2; y=Gemm(x,w){beta=0.5}",
         "y=MatMulBf16(x,<2 x2048>){beta=0.5}"},
        {"x:f32[4,32]; w:f32[32,64]=2; y=Gemm(x,w){alpha=0.5}", NULL},
        {"x:f32[32,4]; w:f32[32,64]=2; y=Gemm(x,w){transA=1}", NULL},
        {"q:f32[1,3,8]; y=kelp.Attention(q,q,q){num_heads=2}",
         "y=AttentionBf16(q,q,q){num_heads=2}"},
    };
    EXPECT_PASSES(kelp_pass_bf16, cases);
}

static void convolutions_with_constant_weights_are_rounded(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {"x:f32[1,8,9]; w:f32[32,8,1]=2; y=Conv(x,w)", "y=ConvBf16(x,<2 x256>)"},
        {"x:f32[1,8,9,9]; w:f32[8,8,2,2]=2; y=Conv(x,w){strides=[2,2]}",
         "y=ConvBf16(x,<2 x256>){strides=[2 2]}"},
        {"x:f32[1,8,9]; w:f32[32,8,1]=2; y=kelp.ConvAct(x,w){activation=relu}",
         "y=ConvBf16(x,<2 x256>){activation=relu}"},
        {"x:f32[1,4,9]; w:f32[8,2,16]=2; y=Conv(x,w){group=2}", "y=ConvBf16(x,<2 x256>){group=2}"},
        {"x:f32[1,5,9]; w:f32[51,5,1]=2; y=Conv(x,w)", NULL}, /* 255 elements */
        {"x:f32[1,8,9]; w:f32[32,8,1]; y=Conv(x,w)", NULL},
        {"x:f32[1,64,9]; w:f32[64,1,4]=2; y=Conv(x,w){group=64}", NULL},
        {"x:f32[1,1,90]; w:f32[32,1,8]=2; y=Conv(x,w)", NULL},
        {"x:f32[1,16,90]; w:f32[3,16,8]=2; y=Conv(x,w)", NULL},
        {"x:f32[1,16,90]; w:f32[6,8,8]=2; y=Conv(x,w){group=2}", NULL},
        {"x:f32[1,8,9,9,9]; w:f32[32,8,1,1,1]=2; y=Conv(x,w)", NULL},
        {"x:f32[1,8,9]; w:f32[8,32,1]=2; y=ConvTranspose(x,w)", NULL},
    };
    EXPECT_PASSES(kelp_pass_bf16, cases);
}

/* Convolutions of 16 channels, which prefer channels last. */
#define CONV_OF(name, x, rest) name "=kelp.ConvBf16(" x ",w" rest "); "
#define STARTS "x:f32[1,16,9,9]; w:f32[16,16,1,1]=2; b:f32[16]=1; r:f32[1,16,9,9]; "
#define CONV(name, x) CONV_OF(name, x, "")
#define FOUND(name, x) name "=ConvBf16(" x ",<2 x256>)"
#define HALF "{half=1}"

static void values_that_only_convolutions_read_are_bfloat16(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {STARTS CONV("a", "x") CONV("y", "a") "y", FOUND("a", "x") HALF "; " FOUND("y", "a")},
        {STARTS CONV("a", "x") CONV("c", "a") CONV("y", "c") "y",
         FOUND("a", "x") HALF "; " FOUND("c", "a") HALF "; " FOUND("y", "c")},
        {STARTS CONV("a", "x") CONV("y", "a") CONV("z", "a") "y; z",
         FOUND("a", "x") HALF "; " FOUND("y", "a") "; " FOUND("z", "a")},
        {STARTS CONV("a", "x") CONV("y", "a") "y; a", NULL},
        {STARTS CONV("a", "x") CONV("y", "a") "z=Tanh(a); y; z", NULL},
        {STARTS CONV("a", "x") "y=Tanh(a)", NULL},
        {STARTS CONV("a", "x") "p=MaxPool(a){kernel_shape=[2,2]}; " CONV("y", "p") "y",
         FOUND("a", "x") HALF "; p=MaxPoolBf16(a){kernel_shape=[2 2]}; " FOUND("y", "p")},
        {STARTS CONV("a", "x") "p=MaxPool(a){kernel_shape=[2,2]}; y=Tanh(p)", NULL},
        {STARTS CONV("a", "x") "p=MaxPool(a){kernel_shape=[2,2]}; " CONV("y", "p") "y; p", NULL},
        {STARTS CONV("a", "x") "p,i=MaxPool(a){kernel_shape=[2,2]}; " CONV("y", "p") "y; i", NULL},
        {STARTS CONV("a", "x") "p=AveragePool(a){kernel_shape=[2,2]}; " CONV("y", "p") "y", NULL},
        /* a residual: the value is read, and the sum is bfloat16 only with a bfloat16 residual */
        {STARTS CONV("a", "x") CONV_OF("y", "x", ",b,a") "y",
         FOUND("a", "x") HALF "; y=ConvBf16(x,<2 x256>,<1 x16>,a)"},
        {STARTS CONV_OF("a", "x", ",b,r") CONV("y", "a") "y", NULL},
        {STARTS CONV("a", "x") CONV_OF("c", "x", ",b,a") CONV("y", "c") "y",
         FOUND("a", "x") HALF "; c=ConvBf16(x,<2 x256>,<1 x16>,a)" HALF "; " FOUND("y", "c")},
        /* numbers of channels */
        {"x:f32[1,16,9]; w:f32[16,16,1]=2; g:f32[16,8,2]=2; a=kelp.ConvBf16(x,w); "
         "y=kelp.ConvBf16(a,g){group=2}",
         NULL},
        {"x:f32[1,8,9]; w:f32[8,8,4]=2; a=kelp.ConvBf16(x,w); y=kelp.ConvBf16(a,w)", NULL},
        {"x:f32[1,17,9]; w:f32[17,17,1]=2; a=kelp.ConvBf16(x,w); y=kelp.ConvBf16(a,w)", NULL},
        {"x:f32[1,18,9]; w:f32[18,18,1]=2; a=kelp.ConvBf16(x,w); y=kelp.ConvBf16(a,w)", NULL},
        {"x:f32[1,24,9]; w:f32[24,24,1]=2; a=kelp.ConvBf16(x,w); y=kelp.ConvBf16(a,w)",
         "a=ConvBf16(x,<2 x576>)" HALF "; y=ConvBf16(a,<2 x576>)"},
        {"x:f32[1,48,9]; w:f32[48,48,1]=2; a=kelp.ConvBf16(x,w); y=kelp.ConvBf16(a,w)",
         "a=ConvBf16(x,<2 x2304>)" HALF "; y=ConvBf16(a,<2 x2304>)"},
    };
    EXPECT_PASSES(kelp_pass_bf16_values, cases);
}

static void a_model_in_bfloat16_has_bfloat16_values(void **state) {
    (void)state;
    kelp_graph *graph = graph_from_text(
        "x:f32[1,16,9,9]; w:f32[16,16,1,1]=2; a=Conv(x,w); p=MaxPool(a){kernel_shape=[2,2]}; "
        "y=Conv(p,w)");
    assert_null(kelp_passes_run_bf16(graph->main));
    assert_string_equal(nodes_as_text(graph->main),
                        "a=ConvBf16(x,<2 x256>){half=1}; p=MaxPoolBf16(a){kernel_shape=[2 2]}; "
                        "y=ConvBf16(p,<2 x256>)");
    static const kelp_dtype dtypes[] = {KELP_BF16, KELP_BF16, KELP_F32};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(graph->main->nodes[i]->outputs[0]->dtype, dtypes[i]);
        assert_int_equal(graph->main->nodes[i]->opset_version, 1);
    }
    kelp_graph_release(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemms_with_constant_weights_are_rounded),
        cmocka_unit_test(convolutions_with_constant_weights_are_rounded),
        cmocka_unit_test(values_that_only_convolutions_read_are_bfloat16),
        cmocka_unit_test(a_model_in_bfloat16_has_bfloat16_values),
    };
    return cmocka_run_group_tests_name("bf16", tests, NULL, NULL);
}
