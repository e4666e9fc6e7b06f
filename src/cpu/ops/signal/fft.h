/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discrete Fourier transforms of any length, in double: mixed radix for small factors, Bluestein's
 * chirp for others. A plan is one block of memory that the caller gives. Source: Cooley and Tukey,
 * 1965; Bluestein, "A linear filtering approach to the computation of discrete Fourier transform",
 * 1970.
 */
#ifndef KELP_CPU_OPS_SIGNAL_FFT_H_
#define KELP_CPU_OPS_SIGNAL_FFT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kelp_complex {
    double re, im;
} kelp_complex;

typedef struct kelp_fft {
    int64_t length;
    int64_t padded;            /* of the chirp's convolution; 0: mixed radix */
    const kelp_complex *roots; /* e^(-2πi k/N), of N = padded or else length */
    const kelp_complex *chirp, *spectrum;
} kelp_fft;

/* Bytes that a plan's tables need; false when the length is below 1 or too large. */
bool kelp_fft_table_bytes(int64_t length, size_t *out_bytes);
/* Bytes that one transform, and kelp_fft_init, need beside their data. */
bool kelp_fft_work_bytes(int64_t length, size_t *out_bytes);
/* Fills `table`, 16-byte aligned; the plan borrows it. */
void kelp_fft_init(kelp_fft *fft, int64_t length, void *table, void *work);
/* to = transform of from: X[k] = Σ x[n] e^(∓2πi nk/N). The inverse is not divided by the length.
 * `from` and `to` differ. Any number of threads, each with `work` of its own. */
void kelp_fft_run(const kelp_fft *fft, const kelp_complex *from, kelp_complex *to, bool inverse,
                  void *work);

#endif
