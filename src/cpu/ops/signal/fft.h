/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discrete Fourier transforms of any length, in double: mixed radix for small factors, Bluestein's
 * chirp for others. The caller provides the memory of the tables. Source: Cooley and Tukey, 1965;
 * Bluestein, "A linear filtering approach to the computation of discrete Fourier transform", 1970.
 */
#ifndef KELP_CPU_OPS_SIGNAL_FFT_H_
#define KELP_CPU_OPS_SIGNAL_FFT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A complex number. */
typedef struct kelp_complex {
    double re, im;
} kelp_complex;

/* The tables of transforms of one length. */
typedef struct kelp_fft {
    int64_t length;
    int64_t padded;            /* length of the convolution with the chirp; 0: mixed radix */
    const kelp_complex *roots; /* e^(-2πi k/N) with N = padded, or length if padded is 0 */
    const kelp_complex *chirp, *spectrum;
} kelp_fft;

/* Computes the size of the tables; false if the length is below 1 or too large. */
bool kelp_fft_table_bytes(int64_t length, size_t *out_bytes);
/* Computes the size of the workspace of kelp_fft_init and kelp_fft_run; false as above. */
bool kelp_fft_work_bytes(int64_t length, size_t *out_bytes);
/* Fills `table`, which is 16-byte aligned and must outlive `fft`. */
void kelp_fft_init(kelp_fft *fft, int64_t length, void *table, void *work);
/* Computes X[k] = Σ x[n] e^(∓2πi nk/N). The inverse is not divided by the length. `from` and `to`
 * must not overlap. Thread-safe if each thread has its own `work`. */
void kelp_fft_run(const kelp_fft *fft, const kelp_complex *from, kelp_complex *to, bool inverse,
                  void *work);

#endif
