/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the passes that fuse attention: which nodes remain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/text.h"

/* Attention of two heads of size 4 on three tensors [n,s,8]. */
#define INPUTS "Q:f32[n,s,8]; K:f32[n,t,8]; V:f32[n,t,8]; M:f32[n,1,s,t]; "
#define SPLIT "[0,0,2,4]"
#define HEADS "{perm=[0,2,1,3]}"
#define QUERY "q=Reshape(Q," SPLIT "); qt=Transpose(q)" HEADS "; "
#define KEY "k=Reshape(K," SPLIT "); kt=Transpose(k){perm=[0,2,3,1]}; "
#define VALUE "v=Reshape(V," SPLIT "); vt=Transpose(v)" HEADS "; "
#define SCORES "m=MatMul(qt,kt); f=Mul(m,0.5); a=Add(f,M); p=Softmax(a); "
#define JOINED "h=MatMul(p,vt); j=Transpose(h)" HEADS "; y=Reshape(j,[0,0,8])"
#define FUSED "y=Attention(Q,K,V,M){num_heads=2,scale=0.5}"

static void attention_between_reshapes_is_fused(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {INPUTS QUERY KEY VALUE SCORES JOINED, FUSED},
        {INPUTS QUERY KEY VALUE "m=MatMul(qt,kt); f=Mul(0.5,m); a=Add(M,f); p=Softmax(a); " JOINED,
         FUSED},
        {INPUTS QUERY KEY VALUE "m=MatMul(qt,kt); f=Div(m,2); a=Add(f,M); p=Softmax(a); " JOINED,
         FUSED},
        {INPUTS QUERY KEY VALUE "m=MatMul(qt,kt); p=Softmax(m){axis=3}@11; " JOINED,
         "y=Attention(Q,K,V){num_heads=2,scale=1}"},
        {INPUTS QUERY KEY VALUE "m=MatMul(qt,kt); p=Softmax(m)@11; " JOINED, NULL},
        {INPUTS QUERY "k=Reshape(K," SPLIT "); ku=Transpose(k)" HEADS
                      "; kt=Transpose(ku){perm=[0,1,3,2]}; " VALUE SCORES JOINED,
         FUSED},
        {INPUTS "q=Reshape(Q,[0,-1,2,4]); qt=Transpose(q)" HEADS "; " KEY VALUE SCORES JOINED,
         FUSED},
        {INPUTS QUERY KEY VALUE SCORES "h=MatMul(p,vt); j=Transpose(h)" HEADS
                                       "; y=Reshape(j,[0,0,-1])",
         FUSED},
        {INPUTS QUERY KEY VALUE SCORES "h=MatMul(p,vt); j=Transpose(h)" HEADS
                                       "; y=Reshape(j,[-1,0,8])",
         FUSED},
        {"Q:f32[2,3,8]; K:f32[2,5,8]; V:f32[2,5,8]; M:f32[2,1,3,5]; "
         "q=Reshape(Q,[2,3,2,4]); qt=Transpose(q)" HEADS "; " KEY VALUE SCORES JOINED,
         FUSED},
        {"Q:f32[2,3,8]; K:f32[2,5,8]; V:f32[2,5,8]; M:f32[1,1,1,5]; " QUERY KEY VALUE SCORES JOINED,
         FUSED},
        /* masks that enlarge the scores */
        {"Q:f32[1,3,8]; K:f32[1,5,8]; V:f32[1,5,8]; M:f32[2,1,3,5]; " QUERY KEY VALUE SCORES JOINED,
         NULL},
        {"Q:f32[2,1,8]; K:f32[2,5,8]; V:f32[2,5,8]; M:f32[2,1,3,5]; " QUERY KEY VALUE SCORES JOINED,
         NULL},
        {"Q:f32[2,3,8]; K:f32[2,1,8]; V:f32[2,1,8]; M:f32[2,1,3,1]; " QUERY KEY VALUE SCORES JOINED,
         FUSED},
        {"Q:f32[n,s,8]; K:f32[n,t,8]; V:f32[n,t,8]; M:f32[s,t]; " QUERY KEY VALUE SCORES JOINED,
         "q=Reshape(Q,<0 0 2 4>); qt=Transpose(q){perm=[0 2 1 3]}; k=Reshape(K,<0 0 2 4>); "
         "kt=Transpose(k){perm=[0 2 3 1]}; v=Reshape(V,<0 0 2 4>); "
         "vt=Transpose(v){perm=[0 2 1 3]}; m=MatMul(qt,kt); f=Mul(m,0.5); a=Add(f,M); "
         "p=Softmax(a); h=MatMul(p,vt); j=Transpose(h){perm=[0 2 1 3]}; y=Reshape(j,<0 0 8>)"},
        {"Q:f32[n,s,8]; K:f32[n,t,8]; V:f32[n,t,8]; M:f32[n,2,s,t]; " QUERY KEY VALUE SCORES JOINED,
         NULL},
        /* other permutations, shapes and operators */
        {INPUTS "q=Reshape(Q," SPLIT "); qt=Transpose(q){perm=[0,1,2,3]}; k=Reshape(K," SPLIT
                "); kt=Transpose(k){perm=[0,1,3,2]}; " VALUE
                "m=MatMul(qt,kt); p=Softmax(m); y=Identity(p)",
         "q=Reshape(Q,<0 0 2 4>); k=Reshape(K,<0 0 2 4>); kt=Transpose(k){perm=[0 1 3 2]}; "
         "m=MatMul(q,kt); y=Softmax(m)#p"},
        {INPUTS QUERY KEY "v=Reshape(V," SPLIT "); vt=Transpose(v){perm=[0,2,3,1]}; "
                          "m=MatMul(qt,kt); p=Softmax(m); h=MatMul(vt,p); j=Transpose(h)" HEADS
                          "; y=Reshape(j,[0,0,8])",
         NULL},
        {INPUTS QUERY KEY "v=Reshape(V,[0,0,4,2]); w=Reshape(v,[0,0,2,4]); vt=Transpose(w)" HEADS
                          "; " SCORES JOINED,
         NULL},
        {INPUTS QUERY KEY VALUE SCORES "h=MatMul(p,vt); j=Transpose(h){perm=[0,2,3,1]}; "
                                       "y=Reshape(j,[0,0,8])",
         NULL},
        {INPUTS QUERY KEY VALUE SCORES "h=MatMul(p,vt); j=Transpose(h)" HEADS
                                       "; y=Reshape(j,[0,0,4,2])",
         NULL},
        {INPUTS QUERY KEY VALUE SCORES "h=MatMul(p,vt); j=Transpose(h)" HEADS
                                       "; y=Reshape(j,[0,-1,4])",
         NULL},
        {INPUTS QUERY KEY VALUE SCORES "h=MatMul(p,vt); y=Transpose(h)" HEADS, NULL},
        {INPUTS QUERY KEY VALUE SCORES "h=MatMul(p,vt); y=Reshape(h,[0,0,8])", NULL},
        {INPUTS QUERY KEY VALUE SCORES JOINED "; y; p", NULL},
        {INPUTS QUERY KEY VALUE SCORES JOINED "; y; h", NULL},
        {INPUTS QUERY KEY VALUE SCORES JOINED "; y; j", NULL},
        {INPUTS QUERY KEY VALUE SCORES JOINED "; y; f", NULL},
        {INPUTS QUERY KEY VALUE SCORES JOINED "; y; m", NULL},
        {INPUTS QUERY KEY VALUE SCORES JOINED "; y; a", NULL},
        {INPUTS QUERY KEY VALUE "m=MatMul(qt,kt); f=Mul(m,0.5); a=Sub(f,M); p=Softmax(a); " JOINED,
         NULL},
        {INPUTS QUERY KEY VALUE "m=MatMul(qt,kt); f=Sub(m,0.5); a=Add(f,M); p=Softmax(a); " JOINED,
         NULL},
        {INPUTS QUERY KEY VALUE "m=MatMul(qt,kt); f=Div(m,0); a=Add(f,M); p=Softmax(a); " JOINED,
         NULL},
        {INPUTS QUERY KEY VALUE "m=MatMul(qt,kt); f=Div(2,m); a=Add(f,M); p=Softmax(a); " JOINED,
         NULL},
        {INPUTS QUERY KEY VALUE "m=MatMul(qt,kt); f=Mul(m,M); a=Add(f,M); p=Softmax(a); " JOINED,
         NULL},
        {INPUTS QUERY KEY VALUE "m=MatMul(qt,kt); f=Mul(m,0.5); a=Add(f,M); p=Sigmoid(a); " JOINED,
         NULL},
        {"u:f32[1,1,1,1,1]=0.5; Q:f32[1,s,8]; K:f32[1,t,8]; V:f32[1,t,8]; " QUERY KEY VALUE
         "m=MatMul(qt,kt); f=Mul(m,u); p=Softmax(f); h=MatMul(p,vt); y=Identity(h)",
         "q=Reshape(Q,<0 0 2 4>); qt=Transpose(q){perm=[0 2 1 3]}; k=Reshape(K,<0 0 2 4>); "
         "kt=Transpose(k){perm=[0 2 3 1]}; v=Reshape(V,<0 0 2 4>); "
         "vt=Transpose(v){perm=[0 2 1 3]}; m=MatMul(qt,kt); f=Mul(m,<0.5>); p=Softmax(f); "
         "y=MatMul(p,vt)#h"},
        {"Q:f64[n,s,8]; K:f64[n,t,8]; V:f64[n,t,8]; " QUERY KEY VALUE
         "m=MatMul(qt,kt); p=Softmax(m); " JOINED,
         NULL},
    };
    EXPECT_PASSES(kelp_passes_run, cases);
}

#define SEPARATE "q:f32[n,4,s,8]; k:f32[n,4,t,8]; v:f32[n,4,t,8]; M:f32[s,t]; "
#define TURNED "kt=Transpose(k){perm=[0,1,3,2]}; m=MatMul(q,kt); "
#define MASKED "f=Mul(m,0.5); a=Add(f,M); p=Softmax(a); "
#define GROUPED "q:f32[n,4,s,8]; k:f32[n,2,t,8]; v:f32[n,2,t,8]; M:f32[s,t]; "
#define REPEAT(name, times)                                                                       \
    name "u=Unsqueeze(" name ",[2]); " name "e:f32[n,2,2,t,8]=Expand(" name "u," times "); " name \
         "r:f32[n,4,t,8]=Reshape(" name "e,[0,4,-1,8]); "
#define TIMES "[1,1,2,1,1]"
#define OF_GROUPS "kt=Transpose(kr){perm=[0,1,3,2]}; m=MatMul(q,kt); " MASKED "y=MatMul(p,vr)"

static void attention_over_separate_heads_is_fused(void **state) {
    (void)state;
    static const pass_case cases[] = {
        {SEPARATE TURNED MASKED "y=MatMul(p,v)", "y=AttentionHeads(q,k,v,M){scale=0.5}"},
        {SEPARATE TURNED "p=Softmax(m); y=MatMul(p,v)", "y=AttentionHeads(q,k,v){scale=1}"},
        {SEPARATE TURNED "f=Div(m,4); p=Softmax(f); y=MatMul(p,v)",
         "y=AttentionHeads(q,k,v){scale=0.25}"},
        {GROUPED REPEAT("k", TIMES) REPEAT("v", TIMES) OF_GROUPS,
         "y=AttentionHeads(q,k,v,M){scale=0.5}"},
        {"q:f32[n,4,s,8]; k:f32[n,4,t,8]; v:f32[n,4,t,8]; M:f32[n,1,s,t]; " TURNED MASKED
         "y=MatMul(p,v)",
         "y=AttentionHeads(q,k,v,M){scale=0.5}"},
        {"q:f32[n,4,s,8]; k:f32[n,4,t,8]; v:f32[n,4,t,8]; M:f32[t]; " TURNED MASKED "y=MatMul(p,v)",
         NULL},
        {"q:f32[n,4,s,8]; k:f32[n,4,t,8]; v:f32[n,4,t,8]; M:f32[s,1]; " TURNED MASKED
         "y=MatMul(p,v)",
         NULL}, /* broadcast along keys */
        {"q:f32[n,4,s,8]; k:f32[o,4,t,8]; v:f32[o,4,t,8]; " TURNED "p=Softmax(m); y=MatMul(p,v)",
         NULL},
        {"q:f32[?,4,s,8]; k:f32[?,4,t,8]; v:f32[?,4,t,8]; " TURNED "p=Softmax(m); y=MatMul(p,v)",
         NULL},
        {"q:f32[2,4,s,8]; k:f32[2,4,t,8]; v:f32[2,4,t,8]; " TURNED "p=Softmax(m); y=MatMul(p,v)",
         "y=AttentionHeads(q,k,v){scale=1}"},
        {"q:f32[2,4,s,8]; k:f32[1,4,t,8]; v:f32[1,4,t,8]; " TURNED "p=Softmax(m); y=MatMul(p,v)",
         NULL},
        {"q:f32[n,4,s,8]; k:f32[n,4,t,8]; v:f32[1,4,t,8]; " TURNED "p=Softmax(m); y=MatMul(p,v)",
         NULL},
        {"q:f32[n,4,s,8]; k:f32[n,1,t,8]; v:f32[n,1,t,8]; " TURNED "p=Softmax(m); y=MatMul(p,v)",
         NULL}, /* broadcast, not repeated */
        {"q:f32[n,4,s,8]; k:f32[n,4,t,8]; v:f32[n,1,t,8]; " TURNED "p=Softmax(m); y=MatMul(p,v)",
         NULL},
        {"q:f32[n,?,s,8]; k:f32[n,?,t,8]; v:f32[n,?,t,8]; " TURNED "p=Softmax(m); y=MatMul(p,v)",
         NULL},
        {"q:f32[4,s,8]; k:f32[4,t,8]; v:f32[4,t,8]; kt=Transpose(k){perm=[0,2,1]}; m=MatMul(q,kt); "
         "p=Softmax(m); y=MatMul(p,v)",
         NULL},
        {"q:f64[n,4,s,8]; k:f64[n,4,t,8]; v:f64[n,4,t,8]; " TURNED "p=Softmax(m); y=MatMul(p,v)",
         NULL},
        {"q:f32[n,4,8,8]; k:f32[n,4,8,8]; v:f32[n,4,8,8]; kt=Transpose(k){perm=[0,1,2,3]}; "
         "m=MatMul(q,kt); p=Softmax(m); y=MatMul(p,v)",
         "m=MatMul(q,k); p=Softmax(m); y=MatMul(p,v)"},
        {"q:f32[4,4,8,8]; k:f32[4,4,8,8]; v:f32[4,4,8,8]; kt=Transpose(k){perm=[1,0,3,2]}; "
         "m=MatMul(q,kt); p=Softmax(m); y=MatMul(p,v)",
         NULL},
        {SEPARATE TURNED "p=Softmax(m){axis=2}; y=MatMul(p,v)", NULL},
        {SEPARATE TURNED MASKED "y=MatMul(p,v); y; p", NULL},
        {SEPARATE TURNED MASKED "y=MatMul(p,v); y; a", NULL},
        {"b:f32[1,2,2,1,1]=1; " GROUPED REPEAT("k", TIMES)
             REPEAT("v", TIMES) "kt=Transpose(kr){perm=[0,1,3,2]}; m=MatMul(q,kt); p=Softmax(m); "
                                "y=MatMul(p,vr)",
         "y=AttentionHeads(q,k,v){scale=1}"},
    };
    EXPECT_PASSES(kelp_passes_run, cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_between_reshapes_is_fused),
        cmocka_unit_test(attention_over_separate_heads_is_fused),
    };
    return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
