/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion of a Kelp network to a TensorRT network: each layer becomes the TensorRT layer of the
 * same type, or a few equivalent layers. Weights are borrowed from the network, which must outlive
 * the build; temporary data is in the lowering's arena.
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
    kelp_arena arena;     /* valid until the engine is built */
    trt_tensor **tensors; /* by the id of the network's tensor */
    trt_loop **loops;     /* by region, as the next one */
    trt_if_conditional **conditionals;
    bool names_weights; /* weights may be refitted later */
    struct {
        trt_weights weights;
        const char *name;
    } unnamed[4]; /* weights of the current layer: named when it exists */
    size_t unnamed_count;
} trt_lowering;

/* Adds all layers, outputs and names of `l->from` to `l->to`. If the network starts from an ONNX
 * model, it was parsed into `l->to` before. Failures have the layer's name and the library's
 * messages. */
kelp_status *trt_lower(trt_lowering *l) KELP_MUST_USE;

/* ---- for layers ---- */
/* Returns a failure of this layer, with the library's messages, unless `done`. */
kelp_status *trt_lower_check(trt_lowering *l, const kelp_layer *layer, bool done,
                             const char *what) KELP_MUST_USE;
/* Returns UNIMPLEMENTED with the layer's name, for features that TensorRT lacks. */
kelp_status *trt_lower_unsupported(const kelp_layer *layer, const char *format, ...)
    KELP_PRINTF(2, 3) KELP_MUST_USE;
/* Returns input `index` of the layer, or NULL if it is omitted. The next two require the input. */
trt_tensor *trt_lower_input(const trt_lowering *l, const kelp_layer *layer, uint32_t index);
kelp_dtype trt_lower_input_type(const kelp_layer *layer, uint32_t index);
int32_t trt_lower_input_rank(const kelp_layer *layer, uint32_t index); /* -1: unknown */
kelp_status *trt_lower_dims(const kelp_layer *layer, const kelp_shape *shape,
                            trt_dims *out) KELP_MUST_USE;
/* Converts weights of a layer, and names them for refitting. Empty weights get `type`. */
kelp_status *trt_lower_weights(trt_lowering *l, const kelp_layer *layer,
                               const kelp_weights *weights, const char *role, trt_data_type type,
                               trt_weights *out) KELP_MUST_USE;
/* Adds weights as a constant tensor of `type`. */
kelp_status *trt_lower_constant(trt_lowering *l, const kelp_layer *layer,
                                const kelp_weights *weights, const char *role, const trt_dims *dims,
                                kelp_dtype type, trt_tensor **out) KELP_MUST_USE;
/* Checks and names the layer that was added for `layer`, and stores its outputs. */
kelp_status *trt_lower_done(trt_lowering *l, const kelp_layer *layer,
                            trt_layer *added) KELP_MUST_USE;
/* Checks an auxiliary layer, names it "<layer>.<what>" and returns its output 0. */
kelp_status *trt_lower_between(trt_lowering *l, const kelp_layer *layer, trt_layer *added,
                               const char *what, trt_tensor **out) KELP_MUST_USE;
/* Returns TensorRT's loop of a boundary layer. Creates it the first time. */
kelp_status *trt_lower_loop(trt_lowering *l, const kelp_layer *layer, trt_loop **out) KELP_MUST_USE;

/* ---- layers by kind: *out_known is false for layers of another file ---- */
kelp_status *trt_lower_basic(trt_lowering *l, const kelp_layer *layer,
                             bool *out_known) KELP_MUST_USE;
kelp_status *trt_lower_shaping(trt_lowering *l, const kelp_layer *layer,
                               bool *out_known) KELP_MUST_USE;
kelp_status *trt_lower_special(trt_lowering *l, const kelp_layer *layer,
                               bool *out_known) KELP_MUST_USE;

#endif
