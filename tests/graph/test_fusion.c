/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the passes over float operators: which nodes remain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/text.h"

static void nodes_without_effect_are_removed(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {"x:f32[2]; a=Identity(x); y=Tanh(a)", "y=Tanh(x)"},
        {"x:f32[2]; a=Tanh(x); y=Identity(a)", "y=Tanh(x)#a"},
        {"x:f32[2]; y=Identity(x)", NULL}, /* an input cannot be an output */
        {"x:f32[2]; a=Tanh(x); y=Identity(a); a; y", NULL},
        {"x:f32[2,3]; a=Transpose(x){perm=[0,1]}; y=Tanh(a)", "y=Tanh(x)"},
        {"x:f32[2,3]; a=Transpose(x){perm=[1,0]}; y=Tanh(a)", NULL},
        {"x:f32[2,3]; a=Transpose(x); y=Tanh(a)", NULL},
        {"x:f32[2]; a=Cast(x){to=1}; y=Tanh(a)", "y=Tanh(x)"},
        {"x:f32[2]; a=Cast(x){to=10}; y=Tanh(a)", NULL},
        {"x:f32[2]; a=Dropout(x); y=Tanh(a)", "y=Tanh(x)"},
        {"x:f32[2]; a,m=Dropout(x); y=Tanh(a)", "y=Tanh(x)"},
        {"x:f32[2]; a,m=Dropout(x,0.5,b0); y=Tanh(a)", "y=Tanh(x)"},
        {"x:f32[2]; a=Dropout(x,0.5,b1); y=Tanh(a)", NULL},
        {"x:f32[2]; t:bool[]; a=Dropout(x,0.5,t); y=Tanh(a)", NULL},
        {"x:f32[2]; a,m=Dropout(x); y=Tanh(a); z=Not(m); y; z", NULL},
        {"x:f32[2]; a,m=Dropout(x); y=Tanh(a); y; m", NULL},
        {"x:f32[2]; a=Dropout(x){is_test=1}@6; y=Tanh(a)", "y=Tanh(x)"},
        {"x:f32[2]; a=Dropout(x)@6; y=Tanh(a)", NULL},
        {"x:f32[2]; a=Mul(x,1); y=Tanh(a)", "y=Tanh(x)"},
        {"x:f32[2]; one:f32[1]=1; a=Mul(one,x); y=Tanh(a)", "y=Tanh(x)"},
        {"x:f32[2]; a=Div(x,1); y=Tanh(a)", "y=Tanh(x)"},
        {"x:f32[2]; a=Div(1,x); y=Tanh(a)", NULL},
        {"x:f32[2]; a=Mul(x,2); y=Tanh(a)", NULL},
        {"x:f32[2]; a=Add(x,1); y=Tanh(a)", NULL},
        {"x:f32[2]; a=Mul(x,1)@6; y=Tanh(a)", NULL},
        {"x:f32[2]; one:f32[1,1]=1; a=Mul(x,one); y=Tanh(a)", NULL}, /* raises the rank */
        {"x:f64[2]; one:f64[]=1; a=Mul(x,one); y=Tanh(a)", NULL},
    };
    EXPECT_PASSES(kelp_passes_run, cases);
}

/* The error function of x / sqrt(2), and its approximation. */
#define ERF "x:f32[2,3]; a=Div(x,1.4142135); b=Erf(a); "
#define CUBIC(cube, sum, by) "x:f32[2,3]; " cube "; " sum "; g=" by "; b=Tanh(g); "
#define CUBE "q=Mul(x,x); c=Mul(q,x); e=Mul(c,0.044715)"
#define ENDED "s=Add(b,1); h=Mul(x,s); y=Mul(h,0.5)"

static void gelu_is_fused(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {ERF "s=Add(b,1); h=Mul(x,s); y=Mul(h,0.5)", "y=Gelu(x)"},
        {ERF "s=Add(1,b); h=Mul(s,x); y=Mul(0.5,h)", "y=Gelu(x)"},
        {ERF "s=Add(b,1); h=Mul(s,0.5); y=Mul(h,x)", "y=Gelu(x)"},
        {ERF "s=Add(b,1); h=Mul(0.5,s); y=Mul(x,h)", "y=Gelu(x)"},
        {ERF "s=Add(b,1); h=Mul(x,0.5); y=Mul(s,h)", "y=Gelu(x)"},
        {ERF "s=Add(b,1); h=Mul(0.5,x); y=Mul(h,s)", "y=Gelu(x)"},
        {ERF "s=Add(b,1); h=Mul(s,0.5); y=Mul(h,x); z=Neg(y)", "y=Gelu(x); z=Neg(y)"},
        {"x:f32[2]; a=Mul(x,0.70710678); b=Erf(a); " ENDED, "y=Gelu(x)"},
        {"x:f32[2]; a=Mul(0.70710678,x); b=Erf(a); " ENDED, "y=Gelu(x)"},
        {"x:f32[2]; a=Div(x,1.5); b=Erf(a); " ENDED, NULL},
        {"x:f32[2]; a=Div(1.4142135,x); b=Erf(a); " ENDED, NULL},
        {"x:f32[2]; a=Mul(x,0.8); b=Erf(a); " ENDED, NULL},
        {"x:f32[2]; a=Div(x,1.4142135); b=Tanh(a); " ENDED, NULL},
        {"x:f32[2]; w:f32[2]; a=Div(x,1.4142135); b=Erf(a); s=Add(b,1); h=Mul(w,s); y=Mul(h,0.5)",
         NULL},
        {ERF "s=Add(b,2); h=Mul(x,s); y=Mul(h,0.5)", NULL},
        {ERF "s=Sub(b,1); h=Mul(x,s); y=Mul(h,0.5)", NULL},
        {ERF "s=Add(b,1); h=Mul(x,s); y=Mul(h,0.6)", NULL},
        {ERF "s=Add(b,1); h=Mul(x,s); y=Add(h,0.5)", NULL},
        {ERF "s=Add(b,1); h=Add(x,s); y=Mul(h,0.5)", NULL},
        {ERF "s=Add(b,1); h=Mul(x,s); y=Mul(h,x)", NULL},
        {ERF "s=Add(b,1); h=Mul(s,0.5); y=Mul(h,0.5)", NULL},
        {ERF "s=Add(b,1); h=Mul(x,0.6); y=Mul(s,h)", NULL},
        {ERF "s=Add(b,1); h=Mul(x,s); y=Mul(h,0.5); y; s", NULL},
        {ERF "s=Add(b,1); h=Mul(x,s); y=Mul(h,0.5); y; h", NULL},
        {ERF "s=Add(b,1); h=Mul(x,s); y=Mul(h,0.5); y; b", NULL},
        {ERF "s=Add(b,1); y=Mul(x,s)", NULL},
        {ERF "half:f32[1,1,1]=0.5; s=Add(b,1); h=Mul(x,s); y=Mul(h,half)", NULL},
        {"x:f64[2]; r:f64[]=1.4142135; one:f64[]=1; half:f64[]=0.5; a=Div(x,r); b=Erf(a); "
         "s=Add(b,one); h=Mul(x,s); y=Mul(h,half)",
         NULL},
        {CUBIC(CUBE, "f=Add(x,e)", "Mul(f,0.7978845)") ENDED, "y=Gelu(x){approximate=tanh}"},
        {CUBIC(CUBE, "f=Add(e,x)", "Mul(0.7978845,f)") ENDED, "y=Gelu(x){approximate=tanh}"},
        {CUBIC("q=Pow(x,3); e=Mul(0.044715,q)", "f=Add(x,e)", "Mul(f,0.7978845)") ENDED,
         "y=Gelu(x){approximate=tanh}"},
        {CUBIC("q=Mul(x,0.044715); c=Mul(x,x); e=Mul(q,c)", "f=Add(x,e)", "Mul(f,0.7978845)") ENDED,
         "y=Gelu(x){approximate=tanh}"},
        {CUBIC("q=Pow(x,2); e=Mul(0.044715,q)", "f=Add(x,e)", "Mul(f,0.7978845)") ENDED, NULL},
        {CUBIC("q=Mul(x,x); e=Mul(q,0.044715)", "f=Add(x,e)", "Mul(f,0.7978845)") ENDED, NULL},
        {CUBIC("q=Mul(x,x); c=Mul(q,q); e=Mul(c,0.044715)", "f=Add(x,e)", "Mul(f,0.7978845)") ENDED,
         NULL},
        {CUBIC("q=Mul(x,x); c=Mul(q,x); e=Mul(c,0.05)", "f=Add(x,e)", "Mul(f,0.7978845)") ENDED,
         NULL},
        {CUBIC(CUBE, "f=Add(x,e)", "Mul(f,0.8)") ENDED, NULL},
        {CUBIC(CUBE, "f=Sub(x,e)", "Mul(f,0.7978845)") ENDED, NULL},
    };
    EXPECT_PASSES(kelp_passes_run, cases);
}

static void products_with_a_gate_are_fused(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {"x:f32[2,3]; g=Sigmoid(x); y=Mul(x,g)", "y=QuickGelu(x){alpha=1}"},
        {"x:f32[2,3]; g=Sigmoid(x); y=Mul(g,x)", "y=QuickGelu(x){alpha=1}"},
        {"x:f32[2,3]; g=HardSigmoid(x){alpha=0.16666667}; y=Mul(x,g)", "y=HardSwish(x)"},
        {"x:f32[2,3]; a=Add(x,3); c=Clip(a,0,6); g=Div(c,6); y=Mul(x,g)", "y=HardSwish(x)"},
        {"x:f32[2,3]; a=Add(3,x); c=Clip(a,0,6); g=Mul(0.16666667,c); y=Mul(g,x)",
         "y=HardSwish(x)"},
        {"x:f32[2,3]; a=Add(x,3); c=Clip(a,0,6); p=Mul(x,c); y=Div(p,6)", "y=HardSwish(x)"},
        {"x:f32[2,3]; a=Add(x,3); c=Clip(a,0,6); p=Mul(c,x); y=Mul(p,0.16666667)",
         "y=HardSwish(x)"},
        {"x:f32[2,3]; a=Add(x,3); c=Clip(a){min=0.0,max=6.0}@10; g=Div(c,6); y=Mul(x,g)",
         "y=HardSwish(x)"},
        {"x:f32[2,3]; w:f32[2,3]; g=Sigmoid(x); y=Mul(w,g)", NULL},
        {"x:f32[2,3]; g=Tanh(x); y=Mul(x,g)", NULL},
        {"x:f32[2,3]; g=Sigmoid(x); y=Add(x,g)", NULL},
        {"x:f32[2,3]; g=Sigmoid(x); y=Mul(x,g); y; g", NULL},
        {"x:f32[2,3]; g=Sigmoid(x); y=Mul(x,g); z=Neg(g); y; z", NULL},
        {"x:f64[2,3]; g=Sigmoid(x); y=Mul(x,g)", NULL},
        {"x:f32[2,3]; g=HardSigmoid(x); y=Mul(x,g)", NULL},
        {"x:f32[2,3]; g=HardSigmoid(x){alpha=0.16666667,beta=0.4}; y=Mul(x,g)", NULL},
        {"x:f32[2,3]; a=Add(x,2); c=Clip(a,0,6); g=Div(c,6); y=Mul(x,g)", NULL},
        {"x:f32[2,3]; a=Add(x,3); c=Clip(a,0,5); g=Div(c,6); y=Mul(x,g)", NULL},
        {"x:f32[2,3]; a=Add(x,3); c=Clip(a,1,6); g=Div(c,6); y=Mul(x,g)", NULL},
        {"x:f32[2,3]; a=Add(x,3); c=Clip(a,_,6); g=Div(c,6); y=Mul(x,g)", NULL},
        {"x:f32[2,3]; a=Add(x,3); c=Clip(a,0); g=Div(c,6); y=Mul(x,g)", NULL},
        {"x:f32[2,3]; a=Add(x,3); c=Clip(a){max=6.0}@10; g=Div(c,6); y=Mul(x,g)", NULL},
        {"x:f32[2,3]; a=Add(x,3); c=Clip(a){min=0.0}@10; g=Div(c,6); y=Mul(x,g)", NULL},
        {"x:f32[2,3]; a=Sub(x,3); c=Clip(a,0,6); g=Div(c,6); y=Mul(x,g)", NULL},
        {"x:f32[2,3]; a=Add(x,3); c=Clip(a,0,6); g=Div(c,5); y=Mul(x,g)", NULL},
        {"x:f32[2,3]; a=Add(x,3); c=Clip(a,0,6); g=Mul(c,0.2); y=Mul(x,g)", NULL},
        {"x:f32[2,3]; a=Add(x,3); c=Clip(a,0,6); p=Mul(x,c); y=Div(p,5)", NULL},
        {"x:f32[2,3]; a=Add(x,3); c=Clip(a,0,6); p=Mul(x,c); y=Div(p,6); y; p", NULL},
        {"x:f32[2,3]; a=Add(x,3); c=Clip(a,0,6); p=Mul(x,c); y=Div(p,6); y; c", NULL},
        {"x:f32[2,3]; s:f32[1,1,1]=6; a=Add(x,3); c=Clip(a,0,6); p=Mul(x,c); y=Div(p,s)", NULL},
        {"x:f32[2,3]; w:f32[2,3]; a=Add(w,3); c=Clip(a,0,6); p=Mul(x,c); y=Div(p,6)", NULL},
    };
    EXPECT_PASSES(kelp_passes_run, cases);
}

/* A layer normalization of x, with parts that tests replace. */
#define NORM_OF(type, mean, square, variance, sum, quotient, rest)                      \
    "x:" type "; s:f32[6]=up; t:f32[6]=1; m=ReduceMean(" mean "; d=Sub(x,m); q=" square \
    "; v=ReduceMean(" variance "; e=Add(" sum "); r=Sqrt(e); n=" quotient "; " rest
#define NORM(mean, square, variance, sum, rest) \
    NORM_OF("f32[2,6]", mean, square, variance, sum, "Div(d,r)", rest)
#define LAST "x){axes=[-1]}"
#define LAST_OF_Q "q){axes=[-1]}"
#define SCALED "p=Mul(n,s); y=Add(p,t)"
#define NORMED(inputs) "y=LayerNormalization(" inputs "){axis=-1,epsilon=1e-05}"

static void layer_normalization_is_fused(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {NORM(LAST, "Mul(d,d)", LAST_OF_Q, "v,1e-5", SCALED), NORMED("x,<0 1 2 3 4 5>,<1 x6>")},
        {NORM(LAST, "Mul(d,d)", LAST_OF_Q, "1e-5,v", "p=Mul(s,n); y=Add(t,p)"),
         NORMED("x,<0 1 2 3 4 5>,<1 x6>")},
        {NORM(LAST, "Pow(d,2)", LAST_OF_Q, "v,1e-5", SCALED), NORMED("x,<0 1 2 3 4 5>,<1 x6>")},
        {NORM("x){axes=[1]}", "Mul(d,d)", LAST_OF_Q, "v,1e-5", SCALED),
         NORMED("x,<0 1 2 3 4 5>,<1 x6>")},
        {NORM("x,[1])@18", "Mul(d,d)", "q,[-1])@18", "v,1e-5", SCALED),
         NORMED("x,<0 1 2 3 4 5>,<1 x6>")},
        {NORM(LAST, "Mul(d,d)", LAST_OF_Q, "v,1e-5", "y=Mul(n,s)"), NORMED("x,<0 1 2 3 4 5>")},
        {NORM(LAST, "Mul(d,d)", LAST_OF_Q, "v,1e-5", "p=Mul(n,s); y=Add(p,t); y; p"),
         "p=LayerNormalization(x,<0 1 2 3 4 5>){axis=-1,epsilon=1e-05}; y=Add(p,<1 x6>)"},
        {NORM("x){axes=[0]}", "Mul(d,d)", LAST_OF_Q, "v,1e-5", SCALED), NULL},
        {NORM("x,[0])@18", "Mul(d,d)", "q,[-1])@18", "v,1e-5", SCALED), NULL},
        {NORM("x,[0,1])@18", "Mul(d,d)", "q,[-1])@18", "v,1e-5", SCALED), NULL},
        {NORM("x){axes=[0,1]}", "Mul(d,d)", LAST_OF_Q, "v,1e-5", SCALED), NULL},
        {NORM("x)@18", "Mul(d,d)", LAST_OF_Q, "v,1e-5", SCALED), NULL},
        {NORM(LAST, "Mul(d,d)", "q){axes=[0]}", "v,1e-5", SCALED), NULL},
        {NORM(LAST, "Mul(d,x)", LAST_OF_Q, "v,1e-5", SCALED), NULL},
        {NORM(LAST, "Mul(x,d)", LAST_OF_Q, "v,1e-5", SCALED), NULL},
        {NORM(LAST, "Pow(d,3)", LAST_OF_Q, "v,1e-5", SCALED), NULL},
        {NORM(LAST, "Pow(x,2)", LAST_OF_Q, "v,1e-5", SCALED), NULL},
        {NORM(LAST, "Mul(d,d)", LAST_OF_Q, "v,-1", SCALED), NULL},
        {NORM_OF("f32[6,6]", "x){axes=[-1],keepdims=0}", "Mul(d,d)", LAST_OF_Q, "v,1e-5",
                 "Div(d,r)", SCALED),
         NULL},
        {NORM(LAST, "Mul(d,d)", LAST_OF_Q, "v,1e-5", "z=Neg(n); p=Mul(n,s); y=Add(p,t); y; z"),
         NULL},
        {NORM(LAST, "Mul(d,d)", LAST_OF_Q, "v,1e-5", "p=Mul(n,2); y=Add(p,t)"), NULL},
        {NORM(LAST, "Mul(d,d)", LAST_OF_Q, "v,1e-5", "p=Add(n,t); y=Mul(p,s)"), NULL},
        {NORM(LAST, "Mul(d,d)", LAST_OF_Q, "v,1e-5", "p=Mul(n,s)@6; y=Add(p,t)"), NULL},
        {NORM(LAST, "Mul(d,d)", LAST_OF_Q, "v,1e-5", "w:f32[2,6]=1; p=Mul(n,w); y=Add(p,t)"), NULL},
        {NORM(LAST, "Mul(d,d)", LAST_OF_Q, "v,1e-5", "w:f32[1]=3; p=Mul(n,w); y=Add(p,t)"), NULL},
        {NORM_OF("f32[2,6]", LAST, "Mul(d,d)", LAST_OF_Q, "v,1e-5", "Div(x,r)", SCALED), NULL},
        {NORM_OF("f32[2,6]", LAST, "Mul(d,d)", LAST_OF_Q, "v,1e-5", "Mul(d,r)", SCALED), NULL},
        {NORM_OF("f32[2,?]", LAST, "Mul(d,d)", LAST_OF_Q, "v,1e-5", "Div(d,r)", SCALED), NULL},
        /* constants that raise the rank of the result */
        {"two:f32[1,1,1]=2; " NORM(LAST, "Pow(d,two)", LAST_OF_Q, "v,1e-5", SCALED), NULL},
        {"small:f32[1,1,1]=1e-5; " NORM(LAST, "Mul(d,d)", LAST_OF_Q, "v,small", SCALED), NULL},
        {"small:f32[1,1]=1e-5; " NORM(LAST, "Mul(d,d)", LAST_OF_Q, "v,small", SCALED),
         NORMED("x,<0 1 2 3 4 5>,<1 x6>")},
    };
    EXPECT_PASSES(kelp_passes_run, cases);
}

#define MATMUL "x:f32[2,3]; w:f32[3,4]=2; b:f32[4]=up; m=MatMul(x,w); "

static void matmul_takes_its_bias_and_activation(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {MATMUL "y=Add(m,b)", "y=MatMulBias(x,<2 x12>,<0 1 2 3>){activation=}#m"},
        {MATMUL "y=Add(b,m)", "y=MatMulBias(x,<2 x12>,<0 1 2 3>){activation=}#m"},
        {MATMUL "a=Add(m,b); y=Relu(a)", "y=MatMulBias(x,<2 x12>,<0 1 2 3>){activation=relu}#m"},
        {MATMUL "y=Tanh(m)", "y=MatMulBias(x,<2 x12>){activation=tanh}#m"},
        {MATMUL "y=Sigmoid(m)", "y=MatMulBias(x,<2 x12>){activation=sigmoid}#m"},
        {MATMUL "y=HardSwish(m)", "y=MatMulBias(x,<2 x12>){activation=hard_swish}#m"},
        {MATMUL "y=Gelu(m)@20", "y=MatMulBias(x,<2 x12>){activation=gelu}#m"},
        {MATMUL "y=Gelu(m){approximate=tanh}@20",
         "y=MatMulBias(x,<2 x12>){activation=gelu_tanh}#m"},
        {MATMUL "y=ms.QuickGelu(m){alpha=1.0}", "y=MatMulBias(x,<2 x12>){activation=silu}#m"},
        {MATMUL "y=ms.QuickGelu(m)", NULL},
        {MATMUL "y=Clip(m,0,6)", "y=MatMulBias(x,<2 x12>){activation=relu6}#m"},
        {MATMUL "y=Clip(m){min=0.0,max=6.0}@6", "y=MatMulBias(x,<2 x12>){activation=relu6}#m"},
        {MATMUL "y=Clip(m,0,5)", NULL},
        {MATMUL "y=Clip(m)", NULL},
        {MATMUL "y=Elu(m)", NULL},
        {MATMUL "a=Add(m,b); y=Elu(a)",
         "a=MatMulBias(x,<2 x12>,<0 1 2 3>){activation=}#m; y=Elu(a)"},
        {MATMUL "a=Add(m,b); y=Relu(a); y; a",
         "a=MatMulBias(x,<2 x12>,<0 1 2 3>){activation=}#m; y=Relu(a)"},
        {MATMUL "n=MatMul(x,w); y=Relu(m); z=Tanh(n); y; z",
         "y=MatMulBias(x,<2 x12>){activation=relu}#m; z=MatMulBias(x,<2 x12>){activation=tanh}#n"},
        {MATMUL "y=Add(m,b); y; m", NULL},
        {MATMUL "y=Add(m,b); z=Neg(m); y; z", NULL},
        {MATMUL "y=Add(m,m)", NULL},
        {MATMUL "y=Sub(m,b)", NULL},
        {MATMUL "y=Add(m,b)@6", NULL},
        {MATMUL "y=Add(m,3)", NULL},
        {MATMUL "c:f32[1,4]=up; y=Add(m,c)", "y=MatMulBias(x,<2 x12>,<0 1 2 3>){activation=}#m"},
        {MATMUL "c:f32[2,4]=up; y=Add(m,c)", NULL},
        {MATMUL "c:f32[1]=5; y=Add(m,c)", NULL},
        {MATMUL "c:f32[1,1,4]=up; y=Add(m,c)", NULL}, /* raises the rank */
        {MATMUL "c:f32[4]; y=Add(m,c)", NULL},
        {"x:f32[4,4]; w:f32[4,4]=2; b:f32[4,1]=up; m=MatMul(x,w); y=Add(m,b)", NULL},
        {"x:f32[2,3]; w:f32[3,4]; b:f32[4]=up; m=MatMul(x,w); y=Add(m,b)", NULL},
        {"x:f32[3]; w:f32[3,4]=2; b:f32[4]=up; m=MatMul(x,w); y=Add(m,b)", NULL},
        {"x:f32[2,3]; w:f32[3]=2; b:f32[2]=up; m=MatMul(x,w); y=Add(m,b)", NULL},
        {"x:f64[2,3]; w:f64[3,4]=2; b:f64[4]=up; m=MatMul(x,w); y=Add(m,b)", NULL},
        {"x:f32[2,3]; w:f32[3,4]=2; v:f32[4,2]=1; m=MatMul(x,w); n=Relu(m); o=MatMul(n,v); "
         "y=Tanh(o)",
         "n=MatMulBias(x,<2 x12>){activation=relu}#m; y=MatMulBias(n,<1 x8>){activation=tanh}#o"},
    };
    EXPECT_PASSES(kelp_passes_run, cases);
}

#define SUM_OF(sum) "x:f32[2,6]; z:f32[2,6]; s:f32[6]=2; t:f32[6]=3; a=" sum "; "
#define SUM SUM_OF("Add(x,z)")
#define SKIPPED "SkipLayerNorm(x,z,<2 x6>,<3 x6>){epsilon=1e-05}"

static void layer_normalization_of_a_sum_is_fused(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {SUM "y=LayerNormalization(a,s,t)", "y=" SKIPPED},
        {SUM "y=LayerNormalization(a,s,t){axis=1,epsilon=0.5}",
         "y=SkipLayerNorm(x,z,<2 x6>,<3 x6>){epsilon=0.5}"},
        {SUM "y=LayerNormalization(a,s,t); y; a", "y,a=" SKIPPED},
        {SUM "y=LayerNormalization(a,s,t); n=Neg(a); y; n", "y,a=" SKIPPED "; n=Neg(a)"},
        {SUM "n=Neg(a); y=LayerNormalization(a,s,t); y; n", NULL},
        {SUM "n=Neg(x); y=LayerNormalization(a,s,t); y; a; n", "n=Neg(x); y,a=" SKIPPED},
        {SUM "y=LayerNormalization(a,s,t){axis=0}", NULL},
        {SUM "y=LayerNormalization(a,s)", NULL},
        {SUM "y,m=LayerNormalization(a,s,t); y; m", NULL},
        {SUM_OF("Sub(x,z)") "y=LayerNormalization(a,s,t)", NULL},
        {SUM_OF("Add(x,s)") "y=LayerNormalization(a,s,t)", NULL},
        {SUM_OF("Add(s,x)") "y=LayerNormalization(a,s,t)", NULL},
        {"x:f16[2,6]; z:f16[2,6]; s:f16[6]=2; t:f16[6]=3; a=Add(x,z); y=LayerNormalization(a,s,t)",
         NULL},
        {SUM "v:f32[6]=4; y=LayerNormalization(a,s,t); c=Add(y,x); u=LayerNormalization(c,v,t)",
         "y=" SKIPPED "; u=SkipLayerNorm(y,x,<4 x6>,<3 x6>){epsilon=1e-05}"},
    };
    EXPECT_PASSES(kelp_passes_run, cases);
}

#define ONE_HOT "i:i64[?,1]; n:i64[4]=up; e=Equal(i,n); c=Cast(e){to=1}; w:f32[4,2]=5; "
#define LOOKED_UP "Lookup(i,w){wrap=0,last_axis=1}"
#define OF_DEPTH "i:i64[?]; d:i64[]=4; v:f32[2]=0 1; w:f32[4,2]=5; "

static void matmul_of_one_hot_rows_becomes_a_lookup(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {ONE_HOT "y=MatMul(c,w)", "y=" LOOKED_UP},
        {"i:i32[?,1]; n:i32[4]=up; e=Equal(n,i); c=Cast(e){to=1}; w:f32[4,2]=5; y=MatMul(c,w)",
         "y=" LOOKED_UP},
        {"i:i64[?,1]; n:i64[1,4]=up; e=Equal(i,n); c=Cast(e){to=1}; w:f32[4,2]=5; y=MatMul(c,w)",
         "y=" LOOKED_UP},
        {OF_DEPTH "h=OneHot(i,d,v); y=MatMul(h,w)", "y=Lookup(i,w){wrap=1,last_axis=0}"},
        {OF_DEPTH "h=OneHot(i,d,v){axis=1}; y=MatMul(h,w)", "y=Lookup(i,w){wrap=1,last_axis=0}"},
        {OF_DEPTH "h=OneHot(i,d,v){axis=0}; y=MatMul(h,w)", NULL},
        {OF_DEPTH "f:f32[2]=1 0; h=OneHot(i,d,f); y=MatMul(h,w)", NULL},
        {OF_DEPTH "f:f32[2]=0 2; h=OneHot(i,d,f); y=MatMul(h,w)", NULL},
        {OF_DEPTH "f:f32[2]; h=OneHot(i,d,f); y=MatMul(h,w)", NULL},
        {OF_DEPTH "k:i64[]; h=OneHot(i,k,v); y=MatMul(h,w)", NULL},
        {"i:f32[?]; d:i64[]=4; v:f32[2]=0 1; w:f32[4,2]=5; h=OneHot(i,d,v); y=MatMul(h,w)", NULL},
        {"i:i64[]; d:i64[]=4; v:f32[2]=0 1; w:f32[4,2]=5; h=OneHot(i,d,v); y=MatMul(h,w)", NULL},
        {ONE_HOT "u:f32[4,2]; y=MatMul(c,u)", NULL},
        {ONE_HOT "u:f32[1,4,2]=5; y=MatMul(c,u)", NULL},
        {ONE_HOT "u:f32[4]=5; y=MatMul(c,u)", NULL},
        {ONE_HOT "u:f32[4,2]=inf; y=MatMul(c,u)", NULL},
        {ONE_HOT "u:f32[4,2]=1 2 nan; y=MatMul(c,u)", NULL},
        {"i:i64[?,2]; n:i64[2]=up; e=Equal(i,n); c=Cast(e){to=1}; w:f32[2,2]=5; y=MatMul(c,w)",
         NULL},
        {"i:i64[?,1]; n:i64[4]=0 1 2 4; e=Equal(i,n); c=Cast(e){to=1}; w:f32[4,2]=5; "
         "y=MatMul(c,w)",
         NULL},
        {"i:i64[4,1]; n:i64[4,1]=up; e=Equal(i,n); c=Cast(e){to=1}; w:f32[1,2]=5; y=MatMul(c,w)",
         NULL},
        {"i:i64[?,1]; n:i64[4]=up; e=Greater(i,n); c=Cast(e){to=1}; w:f32[4,2]=5; y=MatMul(c,w)",
         NULL},
        {"i:f32[?,1]; n:f32[4]=up; e=Equal(i,n); c=Cast(e){to=1}; w:f32[4,2]=5; y=MatMul(c,w)",
         NULL},
        {"i:i64[1]; n:i64[2,4]=up; e=Equal(i,n); c=Cast(e){to=1}; w:f32[4,2]=5; y=MatMul(c,w)",
         NULL},
    };
    EXPECT_PASSES(kelp_passes_run, cases);
}

/* Constant folding computes the first nodes afterwards. */
static void elementwise_operators_after_a_lookup_are_applied_to_the_table(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {ONE_HOT "m=MatMul(c,w); y=Relu(m)", "y=Relu(w); y=Lookup(i,y){wrap=0,last_axis=1}#m"},
        {ONE_HOT "m=MatMul(c,w); y=Add(m,3)", "y=Add(w,<3>); y=Lookup(i,y){wrap=0,last_axis=1}#m"},
        {ONE_HOT "m=MatMul(c,w); y=Sub(3,m)", "y=Sub(<3>,w); y=Lookup(i,y){wrap=0,last_axis=1}#m"},
        {ONE_HOT "b:f32[2]=up; m=MatMul(c,w); y=Div(m,b)",
         "y=Div(w,<0 1>); y=Lookup(i,y){wrap=0,last_axis=1}#m"},
        {ONE_HOT "b:f32[1,2]=up; m=MatMul(c,w); a=Mul(m,b); y=Tanh(a)",
         "a=Mul(w,<0 1>); y=Tanh(a); y=Lookup(i,y){wrap=0,last_axis=1}#m"},
        {ONE_HOT "m=MatMul(c,w); y=Relu(m); y; m", "m=" LOOKED_UP "; y=Relu(m)"},
        {ONE_HOT "m=MatMul(c,w); y=Softmax(m)", "m=" LOOKED_UP "; y=Softmax(m)"},
        {ONE_HOT "m=MatMul(c,w); y=Pow(m,2)", "m=" LOOKED_UP "; y=Pow(m,2)"},
        {ONE_HOT "m=MatMul(c,w); y=Add(m,3)@6", "m=" LOOKED_UP "; y=Add(m,3)"},
        {ONE_HOT "b:f32[2]; m=MatMul(c,w); y=Add(m,b)", "m=" LOOKED_UP "; y=Add(m,b)"},
        {ONE_HOT "m=MatMul(c,w); y=Add(m,m)", "m=" LOOKED_UP "; y=Add(m,m)"},
        {ONE_HOT "b:f32[3,2]=2; m=MatMul(c,w); y=Add(m,b)", "m=" LOOKED_UP "; y=Add(m,<2 x6>)"},
        {ONE_HOT "b:f32[2,1]=2; m=MatMul(c,w); y=Add(m,b)", "m=" LOOKED_UP "; y=Add(m,<2 x2>)"},
        {ONE_HOT "b:f32[1,1,1]=2; m=MatMul(c,w); y=Add(m,b)", "m=" LOOKED_UP "; y=Add(m,<2>)"},
    };
    EXPECT_PASSES(kelp_passes_run, cases);
}

static void the_table_of_a_lookup_ends_with_a_row_of_zeros(void **state) {
    (void)state;
    kelp_graph *graph = graph_from_text(
        "i:i64[?,1]; n:i64[2]=up; e=Equal(i,n); c=Cast(e){to=1}; w:f32[2,3]=1 2 3 4 -5 -0; "
        "y=MatMul(c,w)");
    assert_null(kelp_passes_run(graph->main));
    const kelp_tensor *table = graph->main->nodes[0]->inputs[1]->constant;
    const float expected[9] = {1, 2, 3, 4, -5, 0, 0, 0, 0};
    assert_int_equal(table->rank, 2);
    assert_int_equal(table->shape[0], 3);
    assert_int_equal(table->shape[1], 3);
    assert_memory_equal(table->data, expected, sizeof expected); /* -0 has become 0 */
    kelp_graph_release(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_without_effect_are_removed),
        cmocka_unit_test(gelu_is_fused),
        cmocka_unit_test(products_with_a_gate_are_fused),
        cmocka_unit_test(layer_normalization_is_fused),
        cmocka_unit_test(matmul_takes_its_bias_and_activation),
        cmocka_unit_test(layer_normalization_of_a_sum_is_fused),
        cmocka_unit_test(matmul_of_one_hot_rows_becomes_a_lookup),
        cmocka_unit_test(elementwise_operators_after_a_lookup_are_applied_to_the_table),
        cmocka_unit_test(the_table_of_a_lookup_ends_with_a_row_of_zeros),
    };
    return cmocka_run_group_tests_name("fusion", tests, NULL, NULL);
}
