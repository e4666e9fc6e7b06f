/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the passes over convolutions: which nodes remain, and their weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/text.h"

/* A convolution of two channels to two, with a kernel of one element. */
#define X "x:f32[1,2,5]; w:f32[2,2,1]=1 2 3 4; b:f32[2]=10 20; "

static void scales_and_shifts_before_a_convolution_are_folded(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {X "a=Mul(x,2); y=Conv(a,w)", "y=Conv(x,<2 4 6 8>)"},
        {X "a=Mul(2,x); y=Conv(a,w,b)", "y=Conv(x,<2 4 6 8>,<10 20>)"},
        {X "s:f32[2,1]=2 3; a=Mul(x,s); y=Conv(a,w){strides=[2]}",
         "y=Conv(x,<2 6 6 12>){strides=[2]}"},
        {X "s:f32[1,2,1]=2 3; a=Mul(x,s); y=Conv(a,w)", "y=Conv(x,<2 6 6 12>)"},
        {X "a=Add(x,2); y=Conv(a,w)", "y=Conv(x,<1 2 3 4>,<6 14>)"},
        {X "a=Add(x,2); y=Conv(a,w,b)", "y=Conv(x,<1 2 3 4>,<16 34>)"},
        {X "s:f32[2,1]=2 3; a=Add(s,x); y=Conv(a,w)", "y=Conv(x,<1 2 3 4>,<8 18>)"},
        {X "m=Mul(x,2); a=Add(m,1); y=Conv(a,w)", "y=Conv(x,<2 4 6 8>,<3 7>)"},
        {X "m=Add(x,1); a=Mul(m,2); y=Conv(a,w)", "y=Conv(x,<2 4 6 8>,<6 14>)"},
        {"x:f32[1,4,5]; w:f32[4,2,1]=1 2 3 4 5 6 7 8; s:f32[4,1]=1 2 3 4; a=Mul(x,s); "
         "y=Conv(a,w){group=2}",
         "y=Conv(x,<1 4 3 8 15 24 21 32>){group=2}"},
        {"x:f32[1,4,5]; w:f32[4,2,1]=1 2 3 4 5 6 7 8; s:f32[4,1]=1 2 3 4; a=Add(x,s); "
         "y=Conv(a,w){group=2}",
         "y=Conv(x,<1 2 3 4 5 6 7 8>,<5 11 39 53>){group=2}"},
        {"x:f32[1,2,5]; w:f32[2,2,2]=1 2 3 4 5 6 7 8; s:f32[2,1]=2 3; a=Mul(x,s); y=Conv(a,w)",
         "y=Conv(x,<2 4 9 12 10 12 21 24>)"},
        {"x:f32[1,2,5]; w:f32[2,2,2]=1 2 3 4 5 6 7 8; s:f32[2,1]=2 3; a=Add(x,s); y=Conv(a,w)",
         "y=Conv(x,<1 2 3 4 5 6 7 8>,<27 67>)"},
        {"x:f32[1,2,5,5]; w:f32[1,2,1,2]=1 2 3 4; a=Mul(x,2); y=Conv(a,w)", "y=Conv(x,<2 4 6 8>)"},
        /* zero padding is not shifted: the scale is applied after the shift */
        {X "a=Add(x,2); y=Conv(a,w){pads=[1,1]}", NULL},
        {X "a=Add(x,2); y=Conv(a,w){auto_pad=SAME_UPPER}", NULL},
        {X "a=Add(x,2); y=Conv(a,w){pads=[0,0]}", "y=Conv(x,<1 2 3 4>,<6 14>){pads=[0 0]}"},
        {X "a=Add(x,2); y=Conv(a,w){auto_pad=VALID}", "y=Conv(x,<1 2 3 4>,<6 14>){auto_pad=VALID}"},
        {X "a=Mul(x,2); y=Conv(a,w){pads=[1,1]}", "y=Conv(x,<2 4 6 8>){pads=[1 1]}"},
        {X "m=Mul(x,2); a=Add(m,1); y=Conv(a,w,b){pads=[1,1]}",
         "m=Add(x,<0.5>)#a; y=Conv(m,<2 4 6 8>,<10 20>){pads=[1 1]}"},
        {X "m=Mul(x,0); a=Add(m,1); y=Conv(a,w){pads=[1,1]}", NULL},
        {X "m=Mul(x,inf); a=Add(m,1); y=Conv(a,w){pads=[1,1]}", NULL},
        {X "m=Mul(x,1e-7); a=Add(m,1); y=Conv(a,w){pads=[1,1]}", NULL},
        {X "m=Mul(x,2); a=Add(m,1); y=Conv(a,w){pads=[1,1]}; y; m", NULL},
        {X "s:f32[2,1]=2 3; m=Mul(x,s); a=Add(m,1); y=Conv(a,w){pads=[1,1]}", NULL},
        {X "s:f32[2,1]=2 3; m=Mul(x,2); a=Add(m,s); y=Conv(a,w){pads=[1,1]}", NULL},
        {X "m=Tanh(x); a=Add(m,1); y=Conv(a,w){pads=[1,1]}", NULL},
        {X "a=Sub(x,2); y=Conv(a,w)", NULL},
        {X "a=Mul(x,2)@6; y=Conv(a,w)", NULL},
        {X "a=Mul(x,2); y=Conv(a,w); y; a", NULL},
        {X "a=Mul(x,2); z=Neg(a); y=Conv(a,w); y; z", NULL},
        {X "s:f32[2,5]=2; a=Mul(x,s); y=Conv(a,w)", NULL},
        {X "s:f32[5]=2; a=Mul(x,s); y=Conv(a,w)", NULL},
        {X "s:f32[2,1]; a=Mul(x,s); y=Conv(a,w)", NULL},
        {X "v:f32[2,2,1]; a=Mul(x,2); y=Conv(a,v)", NULL},
        {X "c:f32[2]; a=Mul(x,2); y=Conv(a,w,c)", NULL},
        {"x:f32[1,1,5]; w:f32[2,2,1]=1; s:f32[2,1]=2 3; a=Mul(x,s); y=Conv(a,w)", NULL},
        {"x:f32[2,5]; w:f32[2,2,1]=1; s:f32[1,2,1]=2 3; a=Mul(x,s); y=Conv(a,w)", NULL},
        {"x:f64[1,2,5]; w:f64[2,2,1]=1; s:f64[]=2; a=Mul(x,s); y=Conv(a,w)", NULL},
        /* the weights of another convolution stay the same */
        {X "a=Mul(x,2); y=Conv(a,w); z=Conv(x,w); y; z",
         "y=Conv(x,<2 4 6 8>); z=Conv(x,<1 2 3 4>)"},
    };
    EXPECT_PASSES(kelp_passes_run, cases);
}

#define NORM_BY(rest) X "s:f32[2]=2 3; t:f32[2]=5 6; m:f32[2]=1 2; v:f32[2]=3 0; c=Conv(x,w); " rest

static void scales_and_shifts_after_a_convolution_are_folded(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {X "c=Conv(x,w); y=Mul(c,2)", "y=Conv(x,<2 4 6 8>,<0 x2>)#c"},
        {X "c=Conv(x,w,b); y=Mul(2,c)", "y=Conv(x,<2 4 6 8>,<20 40>)#c"},
        {X "c=Conv(x,w,b); y=Add(c,2)", "y=Conv(x,<1 2 3 4>,<12 22>)#c"},
        {X "c=Conv(x,w){strides=[2]}; y=Add(2,c)", "y=Conv(x,<1 2 3 4>,<2 x2>){strides=[2]}#c"},
        {X "s:f32[2,1]=2 3; c=Conv(x,w,b); y=Mul(c,s)", "y=Conv(x,<2 4 9 12>,<20 60>)#c"},
        {X "c=Conv(x,w); d=Conv(x,w); y=Mul(c,2); z=Mul(d,3); y; z",
         "y=Conv(x,<2 4 6 8>,<0 x2>)#c; z=Conv(x,<3 6 9 12>,<0 x2>)#d"},
        {X "s:f32[1,2,1]=2 3; c=Conv(x,w,b); m=Mul(c,s); y=Add(m,s)",
         "y=Conv(x,<2 4 9 12>,<22 63>)#c"},
        {NORM_BY("y=BatchNormalization(c,s,t,m,v){epsilon=1.0}"), "y=Conv(x,<1 2 9 12>,<4 0>)#c"},
        {NORM_BY("y=BatchNormalization(c,s,t,m,v){epsilon=1.0,is_test=1}@6"),
         "y=Conv(x,<1 2 9 12>,<4 0>)#c"},
        {NORM_BY("y=BatchNormalization(c,s,t,m,v){epsilon=1.0}@6"), NULL},
        {NORM_BY("y=BatchNormalization(c,s,t,m,v){epsilon=1.0,spatial=0}@7"), NULL},
        {NORM_BY("y=BatchNormalization(c,s,t,m,v){epsilon=1.0,spatial=1}@7"),
         "y=Conv(x,<1 2 9 12>,<4 0>)#c"},
        {NORM_BY("y,p,q=BatchNormalization(c,s,t,m,v){training_mode=1}; y; p"), NULL},
        {NORM_BY("y=BatchNormalization(c,s,t,m,v){training_mode=1}"), NULL},
        {NORM_BY("u:f32[2]; y=BatchNormalization(c,s,t,u,v)"), NULL},
        {NORM_BY("u:f32[1]=1; y=BatchNormalization(c,s,t,u,v)"), NULL},
        {X "c=Conv(x,w); y=Mul(c,2); y; c", NULL},
        {X "c=Conv(x,w); y=Mul(c,c)", NULL},
        {X "c=Conv(x,w); y=Sub(c,2)", NULL},
        {X "c=Conv(x,w); y=Mul(c,2)@6", NULL},
        {X "s:f32[2,5]=2; c=Conv(x,w); y=Mul(c,s)", NULL},
        {X "s:f32[5]=2; c=Conv(x,w); y=Mul(c,s)", NULL},
        {X "s:f32[2,1]; c=Conv(x,w); y=Mul(c,s)", NULL},
        {X "s:f32[1,1,1,1]=2; c=Conv(x,w); y=Mul(c,s)", NULL}, /* raises the rank */
        {X "v:f32[2,2,1]; c=Conv(x,v); y=Mul(c,2)", NULL},
        {X "d:f32[2]; c=Conv(x,w,d); y=Mul(c,2)", NULL},
        {X "d:f32[1]=3; c=Conv(x,w,d); y=Mul(c,2)", NULL}, /* reported by the kernel */
        {X "c=Conv(x,w); y=Mul(c,2); d=Conv(x,w); z=Add(d,1); y; z",
         "y=Conv(x,<2 4 6 8>,<0 x2>)#c; z=Conv(x,<1 2 3 4>,<1 x2>)#d"},
    };
    EXPECT_PASSES(kelp_passes_run, cases);
}

#define ACT "group=1,auto_pad=NOTSET,activation="

static void a_convolution_takes_its_activation(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {X "c=Conv(x,w); y=Relu(c)", "y=ConvAct(x,<1 2 3 4>){" ACT "relu}#c"},
        {X "c=Conv(x,w,b); y=Tanh(c)", "y=ConvAct(x,<1 2 3 4>,<10 20>){" ACT "tanh}#c"},
        {X "c=Conv(x,w); y=Clip(c,0,6)", "y=ConvAct(x,<1 2 3 4>){" ACT "relu6}#c"},
        {X "c=Conv(x,w); g=Sigmoid(c); y=Mul(c,g)", "y=ConvAct(x,<1 2 3 4>){" ACT "silu}#c"},
        {"x:f32[1,2,5]; w:f32[4,1,2]=1; "
         "c=Conv(x,w){dilations=[2],kernel_shape=[2],pads=[1,2],strides=[3],group=2}; y=Relu(c)",
         "y=ConvAct(x,<1 x8>){dilations=[2],kernel_shape=[2],pads=[1 2],strides=[3],group=2,"
         "auto_pad=NOTSET,activation=relu}#c"},
        {X "c=Conv(x,w){auto_pad=SAME_LOWER}; y=Relu(c)",
         "y=ConvAct(x,<1 2 3 4>){group=1,auto_pad=SAME_LOWER,activation=relu}#c"},
        {X "c=Conv(x,w); y=Relu(c); y; c", NULL},
        {X "c=Conv(x,w); y=Elu(c)", NULL},
        {X "c=Conv(x,w); y=Relu(c); z=Neg(c); y; z", NULL},
        {"x:f16[1,2,5]; w:f16[2,2,1]=1; c=Conv(x,w); y=Relu(c)", NULL},
        {X "c=Conv(x,w); d=Conv(x,w,b); y=Relu(c); z=Tanh(d); y; z",
         "y=ConvAct(x,<1 2 3 4>){" ACT "relu}#c; z=ConvAct(x,<1 2 3 4>,<10 20>){" ACT "tanh}#d"},
        {X "c=Conv(x,w); d=Relu(c); e=Conv(d,w); y=Tanh(e)",
         "d=ConvAct(x,<1 2 3 4>){" ACT "relu}#c; y=ConvAct(d,<1 2 3 4>){" ACT "tanh}#e"},
    };
    EXPECT_PASSES(kelp_passes_run, cases);
}

static void a_convolution_takes_the_residual_that_is_added(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {X "r:f32[1,2,5]; c=Conv(x,w); y=Add(c,r)", "y=ConvAct(x,<1 2 3 4>,_,r){activation=}#c"},
        {X "r:f32[1,2,5]; c=Conv(x,w,b); a=Add(r,c); y=Relu(a)",
         "y=ConvAct(x,<1 2 3 4>,<10 20>,r){activation=relu}#c"},
        {X "r:f32[1,2,3]; c=Conv(x,w){strides=[2]}; y=Sum(c,r)",
         "y=ConvAct(x,<1 2 3 4>,_,r){strides=[2],activation=}#c"},
        {X "r:f32[1,2,5]; c=Conv(x,w); a=Add(c,r); y=Relu(a); y; a",
         "a=ConvAct(x,<1 2 3 4>,_,r){activation=}#c; y=Relu(a)"},
        {X "r:f32[1,2,5]; c=Conv(x,w); a=Add(c,r); y=Elu(a)",
         "a=ConvAct(x,<1 2 3 4>,_,r){activation=}#c; y=Elu(a)"},
        {X "r:f32[1,2,5]; c=Conv(x,w); y=Add(c,r); y; c", NULL},
        {X "r:f32[1,2,5]; c=Conv(x,w); y=Sub(c,r)", NULL},
        {X "r:f32[1,2,5]; c=Conv(x,w); y=Sum(c,r,r)", NULL},
        {X "c=Conv(x,w); y=Add(c,c)", NULL},
        {X "r:f32[1,2,1]; c=Conv(x,w); y=Add(c,r)", NULL},
        {X "r:f32[2,5]; c=Conv(x,w); y=Add(c,r)", NULL},
        {X "r:f32[1,2,?]; c=Conv(x,w); y=Add(c,r)", NULL},
        {X "r:f32; c=Conv(x,w); y=Add(c,r)", NULL},
        {"x:f32[?,2,5]; w:f32[2,2,1]=1; r:f32[?,2,5]; c=Conv(x,w); y=Add(c,r)", NULL},
        {"x:f16[1,2,5]; w:f16[2,2,1]=1; r:f16[1,2,5]; c=Conv(x,w); y=Add(c,r)", NULL},
        {X "r:f32[1,2,5]; c=Conv(x,w); d=Add(c,r); e=Conv(d,w); y=Add(e,d)",
         "d=ConvAct(x,<1 2 3 4>,_,r){activation=}#c; "
         "y=ConvAct(d,<1 2 3 4>,_,d){activation=}#e"},
    };
    EXPECT_PASSES(kelp_passes_run, cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_and_shifts_before_a_convolution_are_folded),
        cmocka_unit_test(scales_and_shifts_after_a_convolution_are_folded),
        cmocka_unit_test(a_convolution_takes_its_activation),
        cmocka_unit_test(a_convolution_takes_the_residual_that_is_added),
    };
    return cmocka_run_group_tests_name("conv_passes", tests, NULL, NULL);
}
