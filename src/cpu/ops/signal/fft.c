/* SPDX-License-Identifier: Apache-2.0 */
/* Discrete Fourier transforms of any length. */
#include "cpu/ops/signal/fft.h"

#include "base/assert.h"
#include "base/checked.h"

#include <math.h>
#include <string.h>

#define LARGEST_RADIX 31
#define PI 3.14159265358979323846

static int64_t smallest_factor(int64_t length) {
    if (length % 4 == 0)
        return 4;
    for (int64_t f = 2; f <= LARGEST_RADIX; f++)
        if (length % f == 0)
            return f;
    return 0;
}

/* Returns true if all prime factors are at most LARGEST_RADIX. */
static bool is_smooth(int64_t length) {
    while (length > 1) {
        int64_t factor = smallest_factor(length);
        if (factor == 0)
            return false;
        length /= factor;
    }
    return true;
}

static int64_t padded_length(int64_t length) {
    int64_t padded = 1;
    while (padded < 2 * length - 1)
        padded *= 2;
    return padded;
}

bool kelp_fft_table_bytes(int64_t length, size_t *out_bytes) {
    if (length < 1 || length > (int64_t)1 << 40)
        return false;
    int64_t count = length;
    if (!is_smooth(length))
        count = length + 2 * padded_length(length);
    *out_bytes = (size_t)count * sizeof(kelp_complex);
    return true;
}

bool kelp_fft_work_bytes(int64_t length, size_t *out_bytes) {
    if (length < 1 || length > (int64_t)1 << 40)
        return false;
    *out_bytes = is_smooth(length) ? sizeof(kelp_complex)
                                   : 2 * (size_t)padded_length(length) * sizeof(kelp_complex);
    return true;
}

static kelp_complex multiply(kelp_complex a, kelp_complex b) {
    return (kelp_complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* Returns e^(-πi at/half). Reduces the angle first, so that long transforms stay accurate. */
static kelp_complex root(int64_t at, int64_t half) {
    at %= 2 * half;
    double angle = PI * (double)at / (double)half;
    return (kelp_complex){cos(angle), -sin(angle)};
}

typedef struct level {
    const kelp_complex *roots; /* of order `length` */
    int64_t length;            /* of the whole transform */
    bool inverse;
} level;

static kelp_complex root_at(const level *l, int64_t at) {
    KELP_ASSERT(at >= 0 && at < l->length);
    kelp_complex r = l->roots[at];
    return l->inverse ? (kelp_complex){r.re, -r.im} : r;
}

static void butterfly4(const level *l, kelp_complex *to, int64_t m, int64_t step) {
    double sign = l->inverse ? -1 : 1;
    for (int64_t k = 0; k < m; k++) {
        kelp_complex a = to[k], b = multiply(to[k + m], root_at(l, k * step));
        kelp_complex c = multiply(to[k + 2 * m], root_at(l, 2 * k * step));
        kelp_complex d = multiply(to[k + 3 * m], root_at(l, 3 * k * step));
        kelp_complex s = {a.re + c.re, a.im + c.im}, t = {a.re - c.re, a.im - c.im};
        kelp_complex u = {b.re + d.re, b.im + d.im};
        kelp_complex v = {sign * (b.im - d.im), sign * (d.re - b.re)}; /* -i (b - d) */
        to[k] = (kelp_complex){s.re + u.re, s.im + u.im};
        to[k + m] = (kelp_complex){t.re + v.re, t.im + v.im};
        to[k + 2 * m] = (kelp_complex){s.re - u.re, s.im - u.im};
        to[k + 3 * m] = (kelp_complex){t.re - v.re, t.im - v.im};
    }
}

static void butterfly(const level *l, kelp_complex *to, int64_t radix, int64_t m, int64_t step) {
    kelp_complex terms[LARGEST_RADIX];
    int64_t stride = l->length / radix;
    for (int64_t k = 0; k < m; k++) {
        for (int64_t q = 0; q < radix; q++)
            terms[q] = multiply(to[k + q * m], root_at(l, q * k * step));
        for (int64_t r = 0; r < radix; r++) {
            kelp_complex sum = terms[0];
            for (int64_t q = 1; q < radix; q++) {
                kelp_complex t = multiply(terms[q], root_at(l, q * r % radix * stride));
                sum.re += t.re;
                sum.im += t.im;
            }
            to[k + r * m] = sum;
        }
    }
}

/* Transforms `length` elements of `from`, `step` apart. The depth of the recursion is at most the
 * number of factors. */
static void mixed_radix(const level *l, const kelp_complex *from, kelp_complex *to, int64_t length,
                        int64_t step) {
    if (length == 1) {
        to[0] = from[0];
        return;
    }
    KELP_ASSERT(is_smooth(length) && length * step == l->length);
    int64_t radix = smallest_factor(length), m = length / radix;
    for (int64_t q = 0; q < radix; q++)
        mixed_radix(l, from + q * step, to + q * m, m, step * radix);
    if (radix == 4)
        butterfly4(l, to, m, step);
    else
        butterfly(l, to, radix, m, step);
}

void kelp_fft_init(kelp_fft *fft, int64_t length, void *table, void *work) {
    kelp_complex *at = table;
    KELP_ASSERT(length > 0 && (uintptr_t)table % 16 == 0);
    memset(fft, 0, sizeof *fft);
    fft->length = length;
    if (is_smooth(length)) {
        for (int64_t k = 0; k < length; k++)
            at[k] = root(2 * k, length);
        fft->roots = at;
        return;
    }
    int64_t padded = fft->padded = padded_length(length);
    kelp_complex *chirp = at + 2 * padded, *mirror = work;
    for (int64_t k = 0; k < padded; k++)
        at[k] = root(2 * k, padded);
    /* e^(-πi k²/N); k² is reduced in each step because a double cannot represent it */
    for (int64_t k = 0, square = 0; k < length; k++) {
        chirp[k] = root(square, length);
        square = (square + 2 * k + 1) % (2 * length);
    }
    memset(mirror, 0, (size_t)padded * sizeof *mirror);
    for (int64_t k = 0; k < length; k++) {
        mirror[k] = (kelp_complex){chirp[k].re, -chirp[k].im};
        mirror[k > 0 ? padded - k : 0] = mirror[k];
    }
    fft->roots = at;
    fft->chirp = chirp;
    fft->spectrum = at + padded;
    level l = {fft->roots, padded, false};
    mixed_radix(&l, mirror, at + padded, padded, 1);
}

/* Computes a transform as one convolution with the chirp: nk = (n² + k² - (k - n)²) / 2. */
static void bluestein(const kelp_fft *fft, const kelp_complex *from, kelp_complex *to, bool inverse,
                      kelp_complex *work) {
    int64_t n = fft->length, m = fft->padded;
    kelp_complex *a = work, *b = work + m;
    double sign = inverse ? -1 : 1, scale = 1 / (double)m;
    level forward = {fft->roots, m, false}, back = {fft->roots, m, true};
    for (int64_t k = 0; k < n; k++)
        a[k] = multiply((kelp_complex){from[k].re, sign * from[k].im}, fft->chirp[k]);
    memset(a + n, 0, (size_t)(m - n) * sizeof *a);
    mixed_radix(&forward, a, b, m, 1);
    for (int64_t k = 0; k < m; k++)
        b[k] = multiply(b[k], fft->spectrum[k]);
    mixed_radix(&back, b, a, m, 1);
    for (int64_t k = 0; k < n; k++) {
        kelp_complex value = multiply(a[k], fft->chirp[k]);
        to[k] = (kelp_complex){value.re * scale, sign * value.im * scale};
    }
}

void kelp_fft_run(const kelp_fft *fft, const kelp_complex *from, kelp_complex *to, bool inverse,
                  void *work) {
    KELP_ASSERT(from != to && fft->roots != NULL);
    if (fft->padded > 0) {
        bluestein(fft, from, to, inverse, work);
        return;
    }
    level l = {fft->roots, fft->length, inverse};
    mixed_radix(&l, from, to, fft->length, 1);
}
