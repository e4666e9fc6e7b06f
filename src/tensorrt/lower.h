/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a network of Kelp's to one of TensorRT's: a layer becomes the layer of that type, or the few
 * that say the same. Weights are borrowed from the network, which outlives the build; what is made
 * on the way lies in the lowering's arena.
 */
#ifndef KELP_TENSORRT_LOWER_H_
#define KELP_TENSORRT_LOWER_H_

#include "base/arena.h"
#include "builder/network.h"
#include "tensorrt/call.h"

typedef struct trt_lowering {
    const trt_library *library;
    const trt_methods *m; /* the library's */
    trt_log *log;
    const kelp_network *from;
    trt_network *to;
    kelp_arena arena;     /* until the engine is built */
    trt_tensor **tensors; /* by id */
    trt_loop **loops;     /* by the index of their region */
    trt_if_conditional **conditionals;
    bool names_weights; /* something can be refitted */
    struct {
        trt_weights weights;
        const char *name;
    } unnamed[4]; /* of the layer that is being made: named once it is there */
    size_t unnamed_count;
} trt_lowering;

/* Every layer, output and name of `l->from` in `l->to`, into which an ONNX model was parsed before
 * when the network starts from one. Failures name the layer, and carry what the library said. */
kelp_status *trt_lower(trt_lowering *l) KELP_MUST_USE;

/* ---- for layers ---- */
/* A failure of this layer in the library's words unless `done`. */
kelp_status *trt_lower_check(trt_lowering *l, const kelp_layer *layer, bool done,
                             const char *what) KELP_MUST_USE;
/* What TensorRT cannot do: UNIMPLEMENTED that names the layer. */
kelp_status *trt_lower_refuse(const kelp_layer *layer, const char *format, ...)
    KELP_PRINTF(2, 3) KELP_MUST_USE;
/* Input `index` of the layer, NULL for one that is left out. */
trt_tensor *trt_lower_input(const trt_lowering *l, const kelp_layer *layer, uint32_t index);
kelp_dtype trt_lower_input_type(const kelp_layer *layer, uint32_t index);
int32_t trt_lower_input_rank(const kelp_layer *layer, uint32_t index); /* -1 when not known */
kelp_status *trt_lower_dims(const kelp_layer *layer, const kelp_shape *shape,
                            trt_dims *out) KELP_MUST_USE;
/* Weights of a layer, with their name for refitting; absent ones have `type`. */
kelp_status *trt_lower_weights(trt_lowering *l, const kelp_layer *layer,
                               const kelp_weights *weights, const char *role, trt_data_type type,
                               trt_weights *out) KELP_MUST_USE;
/* The same as a tensor of `type`. */
kelp_status *trt_lower_constant(trt_lowering *l, const kelp_layer *layer,
                                const kelp_weights *weights, const char *role, const trt_dims *dims,
                                kelp_dtype type, trt_tensor **out) KELP_MUST_USE;
/* Names the layer that was added for `layer`, checks it, and takes its outputs. */
kelp_status *trt_lower_done(trt_lowering *l, const kelp_layer *layer,
                            trt_layer *added) KELP_MUST_USE;
/* Output 0 of a layer that was put in on the way: "<layer>.<what>". */
kelp_status *trt_lower_between(trt_lowering *l, const kelp_layer *layer, trt_layer *added,
                               const char *what, trt_tensor **out) KELP_MUST_USE;
kelp_status *trt_lower_loop(trt_lowering *l, const kelp_layer *layer, trt_loop **out) KELP_MUST_USE;

/* ---- layers by kind: false in *out_known for those of another file ---- */
kelp_status *trt_lower_basic(trt_lowering *l, const kelp_layer *layer,
                             bool *out_known) KELP_MUST_USE;
kelp_status *trt_lower_shaping(trt_lowering *l, const kelp_layer *layer,
                               bool *out_known) KELP_MUST_USE;
kelp_status *trt_lower_special(trt_lowering *l, const kelp_layer *layer,
                               bool *out_known) KELP_MUST_USE;

#endif
