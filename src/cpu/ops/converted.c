/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of the operands of kernels that compute in one element type. */
#include "cpu/ops/converted.h"

#include "base/assert.h"

static kelp_converted *converted_of(const kelp_op_args *args, size_t plan_bytes) {
    KELP_ASSERT(args->plan != NULL);
    return (kelp_converted *)(void *)((char *)args->plan + (plan_bytes + 15) / 16 * 16);
}

/* ---- conversions ---- */
typedef struct convert_job {
    const kelp_tensor *tensor;
    float *to;         /* of a load */
    const float *from; /* of a store */
} convert_job;

static void load_range(void *userp, int64_t begin, int64_t end, int worker) {
    const convert_job *job = userp;
    (void)worker;
    kelp_math_load_tensor(job->tensor, begin, end - begin, job->to + begin);
}

static void store_range(void *userp, int64_t begin, int64_t end, int worker) {
    const convert_job *job = userp;
    (void)worker;
    kelp_math_store_tensor(job->tensor, begin, end - begin, job->from + begin);
}

void kelp_ops_load_f32(const kelp_op_env *env, const kelp_tensor *from, float *to) {
    convert_job job = {.tensor = from, .to = to};
    kelp_op_parallel(env, kelp_tensor_elements(from), KELP_GRAIN_ELEMENTS, load_range, &job);
}

void kelp_ops_store_f32(const kelp_op_env *env, const float *from, kelp_tensor *to) {
    convert_job job = {.tensor = to, .from = from};
    kelp_op_parallel(env, kelp_tensor_elements(to), KELP_GRAIN_ELEMENTS, store_range, &job);
}

kelp_status *kelp_ops_plan_f32(kelp_op_args *args, const kelp_tensor *tensor, size_t *out_offset) {
    *out_offset = 0;
    if (tensor == NULL || tensor->dtype == KELP_F32)
        return NULL;
    return kelp_ops_scratch(args, kelp_tensor_elements(tensor), sizeof(float), out_offset);
}

const float *kelp_ops_get_f32(const kelp_op_args *args, const kelp_tensor *tensor, size_t offset) {
    if (tensor == NULL || tensor->dtype == KELP_F32)
        return tensor != NULL ? tensor->data : NULL;
    float *copy = kelp_ops_scratch_at(args, offset);
    kelp_ops_load_f32(args->env, tensor, copy);
    return copy;
}

static void widen(const kelp_op_env *env, const kelp_tensor *from, void *to) {
    kelp_ops_load_f32(env, from, to);
}

static void narrow(const kelp_op_env *env, const void *from, kelp_tensor *to) {
    kelp_ops_store_f32(env, from, to);
}

const kelp_conversion kelp_widened = {kelp_math_is_half, KELP_F32, sizeof(float), widen, narrow};

/* The first element of a byte is in its low bits. Source: ONNX's TensorProto, raw_data. */
static void unpack(const kelp_op_env *env, const kelp_tensor *from, void *to) {
    uint32_t bits = kelp_dtype_bits(from->dtype), each = 8 / bits;
    int64_t count = kelp_tensor_elements(from);
    const uint8_t *bytes = from->data;
    (void)env;
    for (int64_t i = 0; i < count; i++)
        ((uint8_t *)to)[i] = (uint8_t)(bytes[i / each] >> i % each * bits & ((1u << bits) - 1));
}

static void pack(const kelp_op_env *env, const void *from, kelp_tensor *to) {
    uint32_t bits = kelp_dtype_bits(to->dtype), each = 8 / bits;
    int64_t count = kelp_tensor_elements(to);
    uint8_t *bytes = to->data;
    (void)env;
    memset(bytes, 0, kelp_tensor_bytes(to));
    for (int64_t i = 0; i < count; i++)
        bytes[i / each] |= (uint8_t)(((const uint8_t *)from)[i] << i % each * bits);
}

const kelp_conversion kelp_unpacked = {kelp_ops_is_packed, KELP_U8, 1, unpack, pack};

/* ---- reshape ---- */
/* Finds the type of the inputs that are converted; INVALID if none is. */
static kelp_status *find_type(const kelp_conversion *c, const kelp_op_args *args, kelp_dtype *out) {
    *out = KELP_DTYPE_INVALID;
    for (int32_t i = 0; i < args->input_count; i++) {
        const kelp_tensor *x = args->inputs[i];
        if (x == NULL || !c->accepts(x->dtype))
            continue;
        if (*out != KELP_DTYPE_INVALID && *out != x->dtype)
            return kelp_ops_bad_shapes(args, args->inputs[0], x, "the types differ");
        *out = x->dtype;
    }
    return NULL;
}

static kelp_status *plan_inputs(const kelp_conversion *c, kelp_op_args *args, kelp_converted *w) {
    for (int32_t i = 0; i < args->input_count; i++) {
        const kelp_tensor *x = args->inputs[i];
        w->inputs[i] = x;
        if (x == NULL || !c->accepts(x->dtype))
            continue;
        KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(x), c->element_bytes, &w->in_at[i]));
        KELP_TRY(kelp_tensor_init(&w->in[i], c->dtype, x->rank, x->shape, NULL));
        w->inputs[i] = &w->in[i];
    }
    return NULL;
}

static kelp_status *plan_outputs(const kelp_conversion *c, kelp_op_args *args, kelp_converted *w,
                                 kelp_dtype dtype) {
    for (int32_t i = 0; i < args->output_count; i++) {
        const kelp_tensor *y = w->outputs[i];
        if (args->outputs[i] == NULL)
            continue;
        kelp_dtype type = y->dtype == c->dtype ? dtype : y->dtype;
        KELP_TRY(kelp_ops_set(args, i, type, y->rank, y->shape));
        if (y->dtype == c->dtype)
            KELP_TRY(
                kelp_ops_scratch(args, kelp_tensor_elements(y), c->element_bytes, &w->out_at[i]));
    }
    return NULL;
}

kelp_status *kelp_converted_reshape(const kelp_conversion *c, const void *state, kelp_op_args *args,
                                    kelp_op_phase inner, size_t plan_bytes) {
    kelp_converted *w = converted_of(args, plan_bytes);
    kelp_dtype dtype;
    KELP_TRY(find_type(c, args, &dtype));
    if (dtype == KELP_DTYPE_INVALID)
        return inner(state, args);
    if (args->input_count > KELP_CONVERTED_INPUTS || args->output_count > KELP_CONVERTED_OUTPUTS)
        return kelp_ops_bad_type(args, dtype);
    w->used = true;
    KELP_TRY(plan_inputs(c, args, w));
    for (int32_t i = 0; i < args->output_count; i++)
        w->outputs[i] = args->outputs[i] != NULL ? &w->out[i] : NULL;
    kelp_op_args own = *args;
    own.inputs = w->inputs;
    own.outputs = w->outputs;
    own.scratch_bytes = 0;
    KELP_TRY(inner(state, &own));
    KELP_TRY(kelp_ops_scratch(args, 1, own.scratch_bytes, &w->scratch));
    KELP_ASSERT(!own.placed); /* the outputs of a converted kernel are copied */
    args->deferred = own.deferred;
    args->algorithm = own.algorithm;
    return args->deferred ? NULL : plan_outputs(c, args, w, dtype);
}

/* ---- invoke ---- */
kelp_status *kelp_converted_invoke(const kelp_conversion *c, const void *state, kelp_op_args *args,
                                   kelp_op_phase inner, size_t plan_bytes) {
    kelp_converted *w = converted_of(args, plan_bytes);
    if (!w->used)
        return inner(state, args);
    KELP_ASSERT(args->input_count <= KELP_CONVERTED_INPUTS);
    KELP_ASSERT(args->output_count <= KELP_CONVERTED_OUTPUTS);
    for (int32_t i = 0; i < args->input_count; i++) {
        const kelp_tensor *x = args->inputs[i];
        if (x == NULL || !c->accepts(x->dtype)) {
            w->inputs[i] = x;
            continue;
        }
        w->in[i].data = (char *)args->scratch + w->in_at[i];
        c->load(args->env, x, w->in[i].data);
    }
    for (int32_t i = 0; i < args->output_count; i++)
        if (args->outputs[i] != NULL)
            w->out[i].data = w->out[i].dtype == c->dtype ? (char *)args->scratch + w->out_at[i]
                                                         : args->outputs[i]->data;
    kelp_op_args own = *args;
    own.inputs = w->inputs;
    own.outputs = w->outputs;
    own.scratch = kelp_ops_scratch_at(args, w->scratch);
    KELP_TRY(inner(state, &own));
    for (int32_t i = 0; i < args->output_count; i++)
        if (args->outputs[i] != NULL && w->out[i].dtype == c->dtype)
            c->store(args->env, w->out[i].data, args->outputs[i]);
    return NULL;
}
