/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the passes over quantized operators: which nodes remain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/text.h"

/* Scales and zero points, and x dequantized: s and z, of the weights u and o. */
#define CONSTANTS "s:f32[]=0.5; z:u8[]=7; u:f32[]=2; o:i8[]=0; "
#define OPERAND(shape) CONSTANTS "x:u8" shape "; d=DequantizeLinear(x,s,z); "
#define WEIGHTS(shape) "w:i8" shape "=1 2 3; e=DequantizeLinear(w,u,o); "
#define MATMUL OPERAND("[2,4]") WEIGHTS("[4,3]") "m=MatMul(d,e); "
#define W "<1 2 3 3 3 3 3 3 3 3 3 3>"
#define BACK "y=DequantizeLinear(q,s,z)"

static void matmul_between_quantize_nodes_is_fused(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {MATMUL "m", "m=QMatMul(x,0.5,7,w,2,0)"},
        {MATMUL "y=QuantizeLinear(m,s,z)", "y=QMatMul(x,0.5,7,w,2,0,_,_,_,_,0.5,7)#m"},
        {MATMUL "y=QuantizeLinear(m,s)", "y=QMatMul(x,0.5,7,w,2,0,_,_,_,_,0.5)#m"},
        {MATMUL "y=QuantizeLinear(m,s){output_dtype=2}@21",
         "y=QMatMul(x,0.5,7,w,2,0,_,_,_,_,0.5)#m"},
        {MATMUL "y=QuantizeLinear(m,s){output_dtype=3}@21",
         "m=QMatMul(x,0.5,7,w,2,0); y=QuantizeLinear(m,0.5){output_dtype=3}"},
        {MATMUL "y=Relu(m)", "y=QMatMul(x,0.5,7,w,2,0){activation=relu}#m"},
        {MATMUL "y=Tanh(m)", "y=QMatMul(x,0.5,7,w,2,0){activation=tanh}#m"},
        {MATMUL "y=Sigmoid(m)", "y=QMatMul(x,0.5,7,w,2,0){activation=sigmoid}#m"},
        {MATMUL "y=Gelu(m)@20", "y=QMatMul(x,0.5,7,w,2,0){activation=gelu}#m"},
        {MATMUL "y=Gelu(m){approximate=tanh}@20",
         "y=QMatMul(x,0.5,7,w,2,0){activation=gelu_tanh}#m"},
        {MATMUL "y=Elu(m)", "m=QMatMul(x,0.5,7,w,2,0); y=Elu(m)"},
        {MATMUL "b:f32[3]=up; a=Add(m,b); y=Relu(a)",
         "y=QMatMul(x,0.5,7,w,2,0,_,_,_,<0 1 2>){activation=relu}#m"},
        {MATMUL "b:f32[1,3]=up; y=Add(b,m)", "y=QMatMul(x,0.5,7,w,2,0,_,_,_,<0 1 2>)#m"},
        {MATMUL "b:f32[2,3]=up; y=Add(m,b)", "m=QMatMul(x,0.5,7,w,2,0); y=Add(m,<0 1 2 3 4 5>)"},
        {MATMUL "b:f32[1]=3; y=Add(m,b)", "m=QMatMul(x,0.5,7,w,2,0); y=Add(m,<3>)"},
        {MATMUL "b:f32[3]; y=Add(m,b)", "m=QMatMul(x,0.5,7,w,2,0); y=Add(m,b)"},
        {MATMUL "b:f32[1,1,3]=up; y=Add(m,b)",
         "m=QMatMul(x,0.5,7,w,2,0); y=Add(m,<0 1 2>)"}, /* raises the rank */
        {MATMUL "y=Sub(m,1)", "m=QMatMul(x,0.5,7,w,2,0); y=Sub(m,1)"},
        /* results that are rounded, and go on as floats */
        {MATMUL "q=QuantizeLinear(m,s,z); f=DequantizeLinear(q,s,z); y=Elu(f)",
         "f=QMatMul(x,0.5,7,w,2,0,_,0.5,7)#m; y=Elu(f)"},
        {MATMUL "q=QuantizeLinear(m,s,z); f=DequantizeLinear(q,s,z); b:f32[3]=up; a=Add(f,b); "
                "r=Relu(a); y=QuantizeLinear(r,u)",
         "y=QMatMul(x,0.5,7,w,2,0,_,0.5,7,<0 1 2>,2){activation=relu}#m"},
        {MATMUL "q=QuantizeLinear(m,s,z); " BACK,
         "q=QMatMul(x,0.5,7,w,2,0,_,_,_,_,0.5,7)#m; y=DequantizeLinear(q,0.5,7)"},
        {MATMUL "q=QuantizeLinear(m,s,z); f=DequantizeLinear(q,s,z); y=Elu(f); y; q",
         "q=QMatMul(x,0.5,7,w,2,0,_,_,_,_,0.5,7)#m; f=DequantizeLinear(q,0.5,7); y=Elu(f)"},
        {MATMUL "q=QuantizeLinear(m,s,z); f=DequantizeLinear(q,u,z); y=Elu(f)",
         "q=QMatMul(x,0.5,7,w,2,0,_,_,_,_,0.5,7)#m; f=DequantizeLinear(q,2,7); y=Elu(f)"},
        {MATMUL "n:u8[]=8; q=QuantizeLinear(m,s,z); f=DequantizeLinear(q,s,n); y=Elu(f)",
         "q=QMatMul(x,0.5,7,w,2,0,_,_,_,_,0.5,7)#m; f=DequantizeLinear(q,0.5,8); y=Elu(f)"},
        {MATMUL "q=QuantizeLinear(m,s,z); f=DequantizeLinear(q,s); y=Elu(f)",
         "q=QMatMul(x,0.5,7,w,2,0,_,_,_,_,0.5,7)#m; f=DequantizeLinear(q,0.5); y=Elu(f)"},
        {MATMUL "v:i8[3,2]=4; g=DequantizeLinear(v,u,o); q=QuantizeLinear(m,s,z); "
                "f=DequantizeLinear(q,s,z); y=MatMul(f,g)",
         "q=QMatMul(x,0.5,7,w,2,0,_,_,_,_,0.5,7)#m; y=QMatMul(q,0.5,7,<4 x6>,2,0)"},
        {MATMUL "y=QuantizeLinear(m,s,z); y; m",
         "m=QMatMul(x,0.5,7,w,2,0); y=QuantizeLinear(m,0.5,7)"},
        {MATMUL "t:f32[]; y=QuantizeLinear(m,t,z)",
         "m=QMatMul(x,0.5,7,w,2,0); y=QuantizeLinear(m,t,7)"},
        {MATMUL "t:f32[3]=1 2 3; n:u8[3]=0; y=QuantizeLinear(m,t,n)",
         "m=QMatMul(x,0.5,7,w,2,0); y=QuantizeLinear(m,<1 2 3>,<0 x3>)"},
    };
    EXPECT_PASSES(kelp_passes_run_quant, cases);
}

static void operands_of_matmul(void **state) {
    (void)state;
    static const pass_case cases[] = {
        /* one scale for each column */
        {OPERAND("[2,4]") "w:i8[4,3]=1; t:f32[3]=1 2 3; n:i8[3]=up; e=DequantizeLinear(w,t,n); "
                          "y=MatMul(d,e)",
         "y=QMatMul(x,0.5,7,<1 x12>,<1 2 3>,<0 1 2>)"},
        {OPERAND("[2,4]") "w:i8[4,3]=1; t:f32[3]=1 2 3; e=DequantizeLinear(w,t){axis=-1}; "
                          "y=MatMul(d,e)",
         "y=QMatMul(x,0.5,7,<1 x12>,<1 2 3>)"},
        {OPERAND("[2,4]") "w:i8[4,3]=1; t:f32[4]=1 2 3; e=DequantizeLinear(w,t){axis=0}; "
                          "y=MatMul(d,e)",
         NULL},
        {OPERAND("[2,4]") "w:i8[4,4]=1; t:f32[4]=1 2 3; e=DequantizeLinear(w,t){axis=-2}; "
                          "y=MatMul(d,e)",
         NULL},
        {OPERAND("[2,4]") "w:i8[4,3]=1; t:f32[3]; e=DequantizeLinear(w,t); y=MatMul(d,e)", NULL},
        {OPERAND("[2,4]") "w:i8[4,3]=1; t:f32[3]=1 2 3; n:i8[3]; e=DequantizeLinear(w,t,n); "
                          "y=MatMul(d,e)",
         NULL},
        {OPERAND("[2,4]") "w:i32[4,3]=1; e=DequantizeLinear(w,u); y=MatMul(d,e)", NULL},
        {OPERAND("[2,4]") "w:i8[4,4]=1; t:f32[2,4]=1; e=DequantizeLinear(w,t){axis=0,block_size=2}"
                          "@21; y=MatMul(d,e)",
         NULL},
        /* weights that are computed */
        {OPERAND("[2,4]") "v:u8[4,3]; e=DequantizeLinear(v,u); y=MatMul(d,e)",
         "y=QMatMul(x,0.5,7,v,2)"},
        {OPERAND("[2,4]") "v:u8[4,3]; t:f32[3]=1; e=DequantizeLinear(v,t); y=MatMul(d,e)", NULL},
        {OPERAND("[1,2,4]") "w:i8[1,4,3]=1; e=DequantizeLinear(w,u,o); y=MatMul(d,e)",
         "y=QMatMul(x,0.5,7,<1 x12>,2,0)"},
        /* first operands */
        {"x:f32[2,4]; " CONSTANTS WEIGHTS("[4,3]") "y=MatMul(x,e)", NULL},
        {"x:u8[2,4]; " CONSTANTS WEIGHTS("[4,3]") "d=DequantizeLinear(x,s); y=MatMul(d,e)",
         "y=QMatMul(x,0.5,_,w,2,0)"},
        {"x:i32[2,4]; " CONSTANTS WEIGHTS("[4,3]") "d=DequantizeLinear(x,s); y=MatMul(d,e)", NULL},
        {"x:u8[2,4]; t:f32[]; " CONSTANTS WEIGHTS("[4,3]") "d=DequantizeLinear(x,t); y=MatMul(d,e)",
         NULL},
        {"x:u8[2,4]; n:u8[]; " CONSTANTS WEIGHTS(
             "[4,3]") "d=DequantizeLinear(x,s,n); y=MatMul(d,e)",
         NULL},
        {"x:u8[2,4]; t:f32[4]=1; " CONSTANTS WEIGHTS("[4,3]") "d=DequantizeLinear(x,t); "
                                                              "y=MatMul(d,e)",
         NULL},
    };
    EXPECT_PASSES(kelp_passes_run_quant, cases);
}

#define GEMM(shape, by) OPERAND("[2,4]") WEIGHTS(shape) "b:f32[3]=5 6 7; " by

static void gemm_between_quantize_nodes_is_fused(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {GEMM("[4,3]", "y=Gemm(d,e)"), "y=QMatMul(x,0.5,7,w,2,0)"},
        {GEMM("[4,3]", "y=Gemm(d,e,b)"), "y=QMatMul(x,0.5,7,w,2,0,<5 6 7>)"},
        {GEMM("[4,3]", "g=Gemm(d,e,b); y=Relu(g)"),
         "y=QMatMul(x,0.5,7,w,2,0,<5 6 7>){activation=relu}#g"},
        {GEMM("[4,3]", "y=Gemm(d,e){beta=0.5}"), "y=QMatMul(x,0.5,7,w,2,0)"},
        {GEMM("[4,3]", "y=Gemm(d,e,b){beta=0.5}"), NULL},
        {GEMM("[4,3]", "y=Gemm(d,e){alpha=0.5}"), NULL},
        {OPERAND("[4,2]") WEIGHTS("[4,3]") "y=Gemm(d,e){transA=1}", NULL},
        {GEMM("[4,3]", "c:f32[1]=5; y=Gemm(d,e,c)"), NULL},
        {GEMM("[4,3]", "c:f32[1,3]=5; y=Gemm(d,e,c)"), NULL},
        {GEMM("[4,3]", "c:f32[3]; y=Gemm(d,e,c)"), NULL},
        {GEMM("[4,3]", "c:i32[3]=5; t:f32[]=1; f=DequantizeLinear(c,t); y=Gemm(d,e,f)"),
         "f=DequantizeLinear(<5 x3>,1); y=QMatMul(x,0.5,7,w,2,0,f)"},
        {GEMM("[4,3]", "t:f32[3]=1 2 3; v=DequantizeLinear(w,t); y=Gemm(d,v)"),
         "y=QMatMul(x,0.5,7,w,<1 2 3>)"},
        /* transposed weights [3, 2] and [2, 4] */
        {OPERAND("[2,2]") WEIGHTS("[3,2]") "y=Gemm(d,e){transB=1}",
         "y=QMatMul(x,0.5,7,<1 3 3 2 3 3>,2,0)"},
        {OPERAND("[2,2]") "w:i8[3,2]=1 2 3 4 5 6; t:f32[3]=1 2 3; e=DequantizeLinear(w,t){axis=0}; "
                          "y=Gemm(d,e){transB=1}",
         "y=QMatMul(x,0.5,7,<1 3 5 2 4 6>,<1 2 3>)"},
        {OPERAND("[2,2]") "w:i8[3,2]=1 2 3 4 5 6; t:f32[2]=1 2; e=DequantizeLinear(w,t){axis=1}; "
                          "y=Gemm(d,e){transB=1}",
         NULL},
    };
    EXPECT_PASSES(kelp_passes_run_quant, cases);
}

#define CONV(rest) OPERAND("[1,2,5]") "w:i8[2,2,1]=1 2 3 4; e=DequantizeLinear(w,u,o); " rest
#define QCONV "QConv(x,0.5,7,<1 2 3 4>,2,0"

static void conv_between_quantize_nodes_is_fused(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {CONV("y=Conv(d,e){strides=[2]}"), "y=" QCONV "){strides=[2]}"},
        {CONV("c=Conv(d,e); y=Relu(c)"), "y=" QCONV "){activation=relu}#c"},
        {CONV("c=Conv(d,e); y=QuantizeLinear(c,s,z)"), "y=" QCONV ",_,_,_,_,0.5,7)#c"},
        {CONV("b:f32[2]=5; y=Conv(d,e,b)"), "y=" QCONV ",<5 x2>)"},
        {CONV("b:f32[5]=1; c=Conv(d,e); y=Add(c,b)"), "c=" QCONV "); y=Add(c,<1 x5>)"},
        /* an integer bias, whose scale is that of the products */
        {CONV("b:i32[2]=5 6; t:f32[]=1; f=DequantizeLinear(b,t); y=Conv(d,e,f)"),
         "y=" QCONV ",<5 6>)"},
        {CONV("b:i32[2]=5 6; t:f32[]=1; n:i32[]=0; f=DequantizeLinear(b,t,n); y=Conv(d,e,f)"),
         "y=" QCONV ",<5 6>)"},
        {CONV("b:i32[2]=5 6; t:f32[]=1; n:i32[]=1; f=DequantizeLinear(b,t,n); y=Conv(d,e,f)"),
         "f=DequantizeLinear(<5 6>,1,1); y=" QCONV ",f)"},
        {CONV("b:i32[2]=5 6; t:f32[]=1.1; f=DequantizeLinear(b,t); y=Conv(d,e,f)"),
         "f=DequantizeLinear(<5 6>,1.1); y=" QCONV ",f)"},
        {CONV("b:i32[2]=5 6; t:f32[2]=1; f=DequantizeLinear(b,t){axis=0}; y=Conv(d,e,f)"),
         "f=DequantizeLinear(<5 6>,<1 x2>){axis=0}; y=" QCONV ",f)"},
        {CONV("b:i8[2]=5 6; t:f32[]=1; f=DequantizeLinear(b,t); y=Conv(d,e,f)"),
         "f=DequantizeLinear(<5 6>,1); y=" QCONV ",f)"},
        {CONV("t:f32[2]=2 4; h:f32[2]=1 2; v=DequantizeLinear(w,t){axis=0}; b:i32[2]=5 6; "
              "f=DequantizeLinear(b,h){axis=0}; y=Conv(d,v,f)"),
         "y=QConv(x,0.5,7,<1 2 3 4>,<2 4>,_,<5 6>)"},
        {CONV("t:f32[2]=2 4; h:f32[2]=1 3; v=DequantizeLinear(w,t){axis=0}; b:i32[2]=5 6; "
              "f=DequantizeLinear(b,h){axis=0}; y=Conv(d,v,f)"),
         "f=DequantizeLinear(<5 6>,<1 3>){axis=0}; y=QConv(x,0.5,7,<1 2 3 4>,<2 4>,_,f)"},
        {CONV("t:f32[2]=2 4; v=DequantizeLinear(w,t){axis=1}; y=Conv(d,v)"),
         "d=DequantizeLinear(x,0.5,7); v=DequantizeLinear(<1 2 3 4>,<2 4>){axis=1}; y=Conv(d,v)"},
        {CONV("v:i8[2,2,1]; g=DequantizeLinear(v,u); y=Conv(d,g)"),
         "d=DequantizeLinear(x,0.5,7); g=DequantizeLinear(v,2); y=Conv(d,g)"},
    };
    EXPECT_PASSES(kelp_passes_run_quant, cases);
}

#define DYNAMIC(shape) "x:f32" shape "; q,s,z=DynamicQuantizeLinear(x); u:f32[]=2; "
#define BY_MATMUL DYNAMIC("[2,4]") "w:i8[4,3]=1; i=MatMulInteger(q,w,z); c=Cast(i){to=1}; "
#define BY_CONV DYNAMIC("[1,2,5]") "w:i8[2,2,1]=1; i=ConvInteger(q,w,z); c=Cast(i){to=1}; "
#define QUANTIZED "q,s,z=DynamicQuantizeLinear(x); "

static void dynamically_quantized_operands_are_fused(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {BY_MATMUL "m=Mul(s,u); y=Mul(c,m)", QUANTIZED "y=QMatMul(q,s,z,<1 x12>,2)#i"},
        {BY_MATMUL "m=Mul(u,s); y=Mul(m,c)", QUANTIZED "y=QMatMul(q,s,z,<1 x12>,2)#i"},
        {BY_MATMUL "y=Mul(c,s)", QUANTIZED "y=QMatMul(q,s,z,<1 x12>)#i"},
        {BY_MATMUL "t:f32[3]=1 2 3; m=Mul(s,t); y=Mul(c,m)",
         QUANTIZED "y=QMatMul(q,s,z,<1 x12>,<1 2 3>)#i"},
        {BY_MATMUL "b:f32[3]=up; m=Mul(s,u); p=Mul(c,m); a=Add(p,b); y=Relu(a)",
         QUANTIZED "y=QMatMul(q,s,z,<1 x12>,2,_,_,_,_,<0 1 2>){activation=relu}#i"},
        {DYNAMIC("[2,4]") "w:i8[4,3]=1; n:i8[]=9; i=MatMulInteger(q,w,z,n); c=Cast(i){to=1}; "
                          "y=Mul(c,s)",
         QUANTIZED "y=QMatMul(q,s,z,<1 x12>,_,9)#i"},
        {BY_MATMUL "t:f32[2,1]=1; m=Mul(s,t); y=Mul(c,m)", NULL},
        {BY_MATMUL "t:f32[2,3]=1; m=Mul(s,t); y=Mul(c,m)", NULL},
        {BY_MATMUL "t:f32[]; m=Mul(s,t); y=Mul(c,m)", NULL},
        {BY_MATMUL "m=Mul(u,u); y=Mul(c,m)", NULL},
        {BY_MATMUL "m=Add(s,u); y=Mul(c,m)", NULL},
        {BY_MATMUL "y=Add(c,s)", NULL},
        {BY_MATMUL "y=Mul(c,s); y; c", NULL},
        {BY_MATMUL "y=Mul(c,s); y; i", NULL},
        {DYNAMIC("[2,4]") "w:i8[4,3]=1; i=MatMulInteger(q,w); c=Cast(i){to=1}; y=Mul(c,s)", NULL},
        {DYNAMIC("[2,4]") "w:i8[4,3]=1; o:u8[]=3; i=MatMulInteger(q,w,o); c=Cast(i){to=1}; "
                          "y=Mul(c,s)",
         NULL},
        {DYNAMIC("[2,4]") "w:i8[4,3]; i=MatMulInteger(q,w,z); c=Cast(i){to=1}; y=Mul(c,s)", NULL},
        {DYNAMIC("[2,4]") "w:i8[1,4,3]=1; i=MatMulInteger(q,w,z); c=Cast(i){to=1}; y=Mul(c,s)",
         NULL},
        {DYNAMIC(
             "[2,4]") "w:i8[4,3]=1; i=MatMulInteger(q,w,z); c=Cast(i){to=11}; t=Cast(s){to=11}; "
                      "y=Mul(c,t)",
         NULL},
        {"q:u8[2,4]; s:f32[]; z:u8[]; w:i8[4,3]=1; i=MatMulInteger(q,w,z); c=Cast(i){to=1}; "
         "y=Mul(c,s)",
         NULL},
        {BY_CONV "m=Mul(s,u); y=Mul(c,m)", QUANTIZED "y=QConv(q,s,z,<1 x4>,2)#i"},
        {DYNAMIC("[1,2,5]") "w:i8[2,2,1]=1; i=ConvInteger(q,w,z){strides=[2]}; c=Cast(i){to=1}; "
                            "y=Mul(c,s)",
         QUANTIZED "y=QConv(q,s,z,<1 x4>){strides=[2]}#i"},
        {BY_CONV "b:f32[2,1]=5 6; m=Mul(s,u); p=Mul(c,m); a=Add(p,b); y=Relu(a)",
         QUANTIZED "y=QConv(q,s,z,<1 x4>,2,_,<5 6>){activation=relu}#i"},
        {BY_CONV "b:f32[1,2,1]=5 6; p=Mul(c,s); y=Add(b,p)",
         QUANTIZED "y=QConv(q,s,z,<1 x4>,_,_,<5 6>)#i"},
        {BY_CONV "b:f32[5]=5; p=Mul(c,s); y=Add(p,b)",
         QUANTIZED "p=QConv(q,s,z,<1 x4>)#i; y=Add(p,<5 x5>)"},
        {BY_CONV "b:f32[1,1,2,1]=5; p=Mul(c,s); y=Add(p,b)",
         QUANTIZED "p=QConv(q,s,z,<1 x4>)#i; y=Add(p,<5 x2>)"},
        {BY_CONV "b:f32[2,1]; p=Mul(c,s); y=Add(p,b)",
         QUANTIZED "p=QConv(q,s,z,<1 x4>)#i; y=Add(p,b)"},
        /* scales along the last axis are not per channel */
        {BY_CONV "t:f32[5]=2; m=Mul(s,t); y=Mul(c,m)", NULL},
    };
    EXPECT_PASSES(kelp_passes_run_quant, cases);
}

/* 256 x 256 weights are kept in 8 bits. */
#define LARGE(shape, rest) "x:f32[2,256]; s:f32[]=2; o:i8[]=3; w:i8" shape "=1 2; " rest
#define DEQUANTIZED "e=DequantizeLinear(w,s); "

static void large_weights_stay_in_8_bits(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {LARGE("[256,256]", DEQUANTIZED "y=MatMul(x,e)"), "y=WeightMatMul(x,w,2)"},
        {LARGE("[256,256]", "e=DequantizeLinear(w,s,o); y=MatMul(x,e)"), "y=WeightMatMul(x,w,2,3)"},
        {LARGE("[256,256]", "c=Cast(w){to=1}; e=Mul(c,s); y=MatMul(x,e)"), "y=WeightMatMul(x,w,2)"},
        {LARGE("[256,256]", "c=Cast(w){to=1}; t:f32[1,256]=4; e=Mul(t,c); y=MatMul(x,e)"),
         "y=WeightMatMul(x,w,<4 x256>)"},
        {LARGE("[256,256]", "t:f32[256]=4; n:i8[256]=5; e=DequantizeLinear(w,t,n); y=MatMul(x,e)"),
         "y=WeightMatMul(x,w,<4 x256>,<5 x256>)"},
        {LARGE("[256,256]", "t:f32[256]=4; e=DequantizeLinear(w,t){axis=-1}; y=MatMul(x,e)"),
         "y=WeightMatMul(x,w,<4 x256>)"},
        {LARGE("[256,256]", DEQUANTIZED "b:f32[256]=7; m=MatMul(x,e); a=Add(m,b); y=Tanh(a)"),
         "y=WeightMatMul(x,w,2,_,<7 x256>){activation=tanh}#m"},
        {LARGE("[256,256]", DEQUANTIZED "m=MatMul(x,e); y=QuantizeLinear(m,s)"),
         "m=WeightMatMul(x,w,2); y=QuantizeLinear(m,2)"},
        {LARGE("[256,255]", DEQUANTIZED "y=MatMul(x,e)"), NULL},
        {LARGE("[256,256]", "t:f32[256]=4; e=DequantizeLinear(w,t){axis=0}; y=MatMul(x,e)"), NULL},
        {LARGE("[256,256]", "t:f32[256,1]=4; c=Cast(w){to=1}; e=Mul(c,t); y=MatMul(x,e)"), NULL},
        {LARGE("[256,256]", "t:f32[256,256]=4; c=Cast(w){to=1}; e=Mul(c,t); y=MatMul(x,e)"), NULL},
        {LARGE("[256,256]", "t:f32[1,1,1]=4; c=Cast(w){to=1}; e=Mul(c,t); y=MatMul(x,e)"), NULL},
        {LARGE("[256,256]", "t:f32[]; e=DequantizeLinear(w,t); y=MatMul(x,e)"), NULL},
        {LARGE("[256,256]", "n:i8[]; e=DequantizeLinear(w,s,n); y=MatMul(x,e)"), NULL},
        {LARGE("[256,256]",
               "t:f32[2,256]=4; e=DequantizeLinear(w,t){axis=0,block_size=128}@21; y=MatMul(x,e)"),
         NULL},
        {LARGE("[1,256,256]", DEQUANTIZED "y=MatMul(x,e)"), NULL},
        {"w:i32[256,256]=1; x:f32[2,256]; s:f32[]=2; " DEQUANTIZED "y=MatMul(x,e)", NULL},
        {"w:i8[256,256]; x:f32[2,256]; s:f32[]=2; " DEQUANTIZED "y=MatMul(x,e)", NULL},
        /* a table of 1024 x 1024, with one scale for each row */
        {"w:i8[1024,1024]=1 2; i:i64[n]; s:f32[1024,1]=3; c=Cast(w){to=1}; e=Mul(c,s); "
         "y=Gather(e,i)",
         "y=Gather(w,i); y=Cast(y){to=1}; y=Gather(<3 x1024>,i); y=Mul(y,y)"},
        {"w:i8[1024,1024]=1 2; i:i64[n]; s:f32[1024,1]=3; c=Cast(w){to=1}; e=Mul(c,s); "
         "y=Gather(e,i){axis=1}",
         NULL},
        {"w:i8[1024,1024]=1 2; i:i64[2]=1; s:f32[1024,1]=3; c=Cast(w){to=1}; e=Mul(c,s); "
         "y=Gather(e,i)",
         NULL},
        {"w:i8[1024,1024]=1 2; i:i64[n]; s:f32[1,1024]=3; c=Cast(w){to=1}; e=Mul(c,s); "
         "y=Gather(e,i)",
         NULL},
        {"w:i8[1024,1023]=1 2; i:i64[n]; s:f32[1024,1]=3; c=Cast(w){to=1}; e=Mul(c,s); "
         "y=Gather(e,i)",
         NULL},
        {"w:i8[1024,1024]=1 2; i:i64[n]; s:f32[1024]=3; e=DequantizeLinear(w,s){axis=0}; "
         "y=Gather(e,i)",
         NULL},
    };
    EXPECT_PASSES(kelp_passes_run_quant, cases);
}

static void rows_of_a_table_in_8_bits_are_gathered_with_their_scales(void **state) {
    (void)state;
    kelp_graph *graph = graph_from_text(
        "w:i8[1024,1024]=1 2; i:i64[n,3]; s:f32[1024,1]=3; c=Cast(w){to=1}; e=Mul(c,s); "
        "y=Gather(e,i)");
    assert_null(kelp_passes_run_quant(graph->main));
    static const kelp_dtype dtypes[4] = {KELP_I8, KELP_F32, KELP_F32, KELP_F32};
    static const int64_t widths[4] = {1024, 1024, 1, 1024};
    for (size_t n = 0; n < 4; n++) {
        const kelp_value *out = graph->main->nodes[n]->outputs[0];
        assert_int_equal(out->dtype, dtypes[n]);
        assert_int_equal(out->rank, 3);
        assert_string_equal(out->symbols[0], "n");
        assert_int_equal(out->shape[1], 3);
        assert_int_equal(out->shape[2], widths[n]);
    }
    const kelp_node *mul = graph->main->nodes[3];
    assert_ptr_equal(mul->inputs[0], graph->main->nodes[1]->outputs[0]);
    assert_ptr_equal(mul->inputs[1], graph->main->nodes[2]->outputs[0]);
    kelp_graph_release(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul_between_quantize_nodes_is_fused),
        cmocka_unit_test(operands_of_matmul),
        cmocka_unit_test(gemm_between_quantize_nodes_is_fused),
        cmocka_unit_test(conv_between_quantize_nodes_is_fused),
        cmocka_unit_test(dynamically_quantized_operands_are_fused),
        cmocka_unit_test(large_weights_stay_in_8_bits),
        cmocka_unit_test(rows_of_a_table_in_8_bits_are_gathered_with_their_scales),
    };
    return cmocka_run_group_tests_name("quant", tests, NULL, NULL);
}
