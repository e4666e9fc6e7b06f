/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu opset backend's tables, made of the one list. */
#include "base/checked.h"
#include "cpu/ops/control/control.h"
#include "cpu/ops/ops.h"
#include "cpu/provider.h"

/* The newest opset of ai.onnx whose operators the kernels were written for; models of later ones
 * are not ready. */
#define ONNX_VERSION 28

#define OPS_AI_ONNX
#define OPS_ML
#define OPS_TRAINING
#define OPS_MICROSOFT
#define OPS_KELP
#define OP(name, since, until, kernel) extern const kelp_op_kernel kelp_op_##kernel;
#define OP_DISPATCHED(name, since, until)
#include "cpu/ops/ops.inc"
#undef OP
#undef OP_DISPATCHED
#undef OPS_ML
#undef OPS_TRAINING
#undef OPS_MICROSOFT
#undef OPS_KELP

#define OP(name, since, until, kernel) {#name, since, until, &kelp_op_##kernel},
#define OP_DISPATCHED(name, since, until) {#name, since, until, NULL},
static const kelp_opset_op onnx_ops[] = {
#include "cpu/ops/ops.inc"
};
#undef OPS_AI_ONNX
#define OPS_ML
static const kelp_opset_op ml_ops[] = {
#include "cpu/ops/ops.inc"
};
#undef OPS_ML
#define OPS_PREVIEW
static const kelp_opset_op preview_ops[] = {
#include "cpu/ops/ops.inc"
};
#undef OPS_PREVIEW
#define OPS_TRAINING
static const kelp_opset_op training_ops[] = {
#include "cpu/ops/ops.inc"
};
#undef OPS_TRAINING
#define OPS_MICROSOFT
static const kelp_opset_op microsoft_ops[] = {
#include "cpu/ops/ops.inc"
};
#undef OPS_MICROSOFT
#define OPS_KELP
static const kelp_opset_op kelp_ops[] = {
#include "cpu/ops/ops.inc"
};
#undef OPS_KELP
#undef OP
#undef OP_DISPATCHED

static const kelp_opset atomic = {"", ONNX_VERSION, onnx_ops, KELP_COUNT(onnx_ops)};
static const kelp_opset extensions[] = {
    {"ai.onnx.ml", 5, ml_ops, KELP_COUNT(ml_ops)},
    {"ai.onnx.preview", 1, preview_ops, KELP_COUNT(preview_ops)},
    {"ai.onnx.preview.training", 1, training_ops, KELP_COUNT(training_ops)},
    {"com.microsoft", 1, microsoft_ops, KELP_COUNT(microsoft_ops)},
    {"kelp", 1, kelp_ops, KELP_COUNT(kelp_ops)},
};

static const kelp_opset *atomic_opset(void *self) {
    (void)self;
    return &atomic;
}

static const kelp_opset *extension_opsets(void *self, size_t *out_count) {
    (void)self;
    *out_count = KELP_COUNT(extensions);
    return extensions;
}

const kelp_opset_backend kelp_cpu_operators = {
    .abi_version = KELP_OPSET_ABI_VERSION,
    .struct_size = sizeof(kelp_opset_backend),
    .name = "cpu",
    .atomic_opset = atomic_opset,
    .extension_opsets = extension_opsets,
    .dispatch = kelp_control_dispatch,
};
