/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ai.onnx.contrib StftNorm: squared magnitudes of the Fourier transforms of frames of a signal,
 * which is extended by zeros so that a frame is around each hop. Source: onnxruntime-extensions,
 * operators/math.
 */
#include "cpu/ops/signal/fft.h"
#include "cpu/ops/tokenize/tokenize.h"

enum { SIGNAL, FFT_LENGTH, HOP, WINDOW, FRAME_LENGTH, INPUTS };

typedef struct stft {
    const float *signal, *window;
    int64_t samples, length, hop, window_length, frames, bins;
} stft;

static kelp_status *read_inputs(const kelp_op_args *args, stft *out) {
    int64_t numbers[INPUTS] = {0};
    for (int32_t i = 0; i < INPUTS; i++)
        if (i != SIGNAL && i != WINDOW)
            numbers[i] = *(const int64_t *)args->inputs[i]->data;
    *out = (stft){.signal = args->inputs[SIGNAL]->data,
                  .window = args->inputs[WINDOW]->data,
                  .samples = args->inputs[SIGNAL]->shape[1],
                  .length = numbers[FFT_LENGTH],
                  .hop = numbers[HOP],
                  .window_length = kelp_tensor_elements(args->inputs[WINDOW])};
    if (out->hop < 1 || out->length < 1 || numbers[FRAME_LENGTH] != out->length ||
        out->window_length < 1 || out->window_length > out->length)
        return KELP_TEXT_ERROR(
            args->node,
            "the lengths are invalid: expected a hop of 1 or more and a window of at most the "
            "lengths of the transform and the frame, which are equal, found %lld, %lld, %lld "
            "and %lld",
            (long long)out->hop, (long long)out->window_length, (long long)out->length,
            (long long)numbers[FRAME_LENGTH]);
    out->frames = out->samples / out->hop + 1;
    out->bins = kelp_flag_attr(args->node, "onesided", true) ? out->length / 2 + 1 : out->length;
    return NULL;
}

static void fill_frame(const stft *s, int64_t frame, kelp_complex *out) {
    int64_t first = frame * s->hop - s->window_length / 2;
    memset(out, 0, (size_t)s->length * sizeof *out);
    for (int64_t i = 0; i < s->window_length; i++)
        if (first + i >= 0 && first + i < s->samples)
            out[i].re = (double)s->signal[first + i] * (double)s->window[i];
}

static kelp_status *transform(const stft *s, kelp_op_args *args) {
    size_t table_bytes = 0, work_bytes = 0, total = 0;
    void *table = NULL, *work = NULL;
    kelp_complex *from = NULL, *to = NULL;
    float *out = NULL;
    kelp_fft fft;
    const int64_t shape[3] = {1, s->bins, s->frames};
    if (!kelp_fft_table_bytes(s->length, &table_bytes) ||
        !kelp_fft_work_bytes(s->length, &work_bytes) ||
        !kelp_size_mul((size_t)s->bins, (size_t)s->frames, &total))
        return KELP_TEXT_ERROR(args->node, "a transform of length %lld is too large",
                               (long long)s->length);
    KELP_TRY(kelp_run_array(args->env, table_bytes, 1, &table));
    KELP_TRY(kelp_run_array(args->env, work_bytes, 1, &work));
    KELP_TRY(kelp_run_array(args->env, (size_t)s->length, sizeof *from, (void **)&from));
    KELP_TRY(kelp_run_array(args->env, (size_t)s->length, sizeof *to, (void **)&to));
    KELP_TRY(kelp_run_array(args->env, total, sizeof *out, (void **)&out));
    kelp_fft_init(&fft, s->length, table, work);
    for (int64_t frame = 0; frame < s->frames; frame++) {
        fill_frame(s, frame, from);
        kelp_fft_run(&fft, from, to, false, work);
        for (int64_t k = 0; k < s->bins; k++)
            out[k * s->frames + frame] = (float)(to[k].re * to[k].re + to[k].im * to[k].im);
    }
    return kelp_results_set(args, 0, KELP_F32, 3, shape, out);
}

static kelp_status *stft_norm_reshape(const void *state, kelp_op_args *args) {
    stft s;
    (void)state;
    KELP_TRY(kelp_ops_check(args, INPUTS));
    const kelp_tensor *x = args->inputs[SIGNAL];
    for (int32_t i = 0; i < INPUTS; i++) {
        kelp_dtype expected = i == SIGNAL || i == WINDOW ? KELP_F32 : KELP_I64;
        if (args->inputs[i]->dtype != expected)
            return kelp_ops_bad_type(args, args->inputs[i]->dtype);
        if (expected == KELP_I64 && kelp_tensor_elements(args->inputs[i]) != 1)
            return kelp_ops_bad_shapes(args, args->inputs[i], NULL, "expected one value");
    }
    if (x->rank < 2 || kelp_tensor_elements(x) != x->shape[1])
        return kelp_ops_bad_shapes(args, x, NULL, "expected one signal: [1,N]");
    if (!kelp_results_begin(args))
        return NULL;
    KELP_TRY(read_inputs(args, &s));
    return transform(&s, args);
}
KELP_KERNEL(StftNorm, KELP_OP_SERIAL, sizeof(kelp_results), 0, stft_norm_reshape,
            kelp_results_invoke);
