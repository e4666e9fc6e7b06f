/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BMP (uncompressed, 1 to 32 bits per pixel) and PNM (P1 to P6). Source: Microsoft,
 * BITMAPINFOHEADER and related structures; netpbm, the formats pbm, pgm and ppm.
 */
#include "base/assert.h"
#include "cpu/ops/image/decode.h"

/* ---- BMP ---- */
typedef struct bmp {
    int64_t width, height, offset, palette, colors;
    bool from_top, core;
    uint32_t bits, masks[3];
} bmp;

static uint32_t u16_at(const kelp_encoded *image, size_t at) {
    return at + 2 <= image->size ? (uint32_t)image->data[at] | (uint32_t)image->data[at + 1] << 8
                                 : 0;
}

static uint32_t u32_at(const kelp_encoded *image, size_t at) {
    return u16_at(image, at) | u16_at(image, at + 2) << 16;
}

static bool is_bmp(const kelp_encoded *image) {
    return image->size > 26 && memcmp(image->data, "BM", 2) == 0;
}

static kelp_status *bmp_header(const kelp_encoded *image, bmp *out) {
    uint32_t header = u32_at(image, 14), compression = 0;
    memset(out, 0, sizeof *out);
    out->offset = u32_at(image, 10);
    out->core = header == 12;
    if (out->core) {
        out->width = u16_at(image, 18);
        out->height = u16_at(image, 20);
        out->bits = u16_at(image, 24);
    } else {
        out->width = (int32_t)u32_at(image, 18);
        out->height = (int32_t)u32_at(image, 22);
        out->bits = u16_at(image, 28);
        compression = u32_at(image, 30);
        out->colors = u32_at(image, 46);
    }
    out->from_top = out->height < 0;
    out->height = out->from_top ? -out->height : out->height;
    uint32_t bits = out->bits;
    if ((compression != 0 && compression != 3 && compression != 6) ||
        (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32))
        return kelp_image_bad("BMP",
                              "it is compressed, or has an unsupported number of bits per pixel");
    if (out->colors == 0 || out->colors > 256)
        out->colors = bits <= 8 ? (int64_t)1 << bits : 0;
    out->palette = 14 + (int64_t)header;
    static const uint32_t shorts[3] = {0x7c00, 0x3e0, 0x1f}, longs[3] = {0xff0000, 0xff00, 0xff};
    memcpy(out->masks, bits == 16 ? shorts : longs, sizeof shorts);
    for (size_t i = 0; i < 3 && compression != 0; i++)
        out->masks[i] = u32_at(image, 54 + 4 * i);
    return NULL;
}

static kelp_status *bmp_measure(kelp_encoded *image) {
    bmp b;
    KELP_TRY(bmp_header(image, &b));
    image->width = b.width;
    image->height = b.height;
    return NULL;
}

/* Returns the bits that `mask` selects, scaled to 0 … 255. */
static uint8_t masked(uint32_t pixel, uint32_t mask) {
    if (mask == 0)
        return 0;
    int shift = __builtin_ctz(mask);
    uint64_t max = mask >> shift;
    return (uint8_t)(((uint64_t)((pixel & mask) >> shift) * 255 + max / 2) / max);
}

static void bmp_pixel(const kelp_encoded *image, const bmp *b, size_t row, int64_t x,
                      uint8_t *rgb) {
    if (b->bits <= 8) {
        uint64_t bit = (uint64_t)x * b->bits;
        uint32_t index = image->data[row + bit / 8] >> (8 - b->bits - bit % 8);
        index &= (1u << b->bits) - 1;
        size_t at = (size_t)b->palette + index * (b->core ? 3u : 4u);
        bool known = index < b->colors && at + 3 <= image->size;
        for (size_t c = 0; c < 3; c++)
            rgb[c] = known ? image->data[at + 2 - c] : 0;
    } else if (b->bits == 24) {
        for (size_t c = 0; c < 3; c++)
            rgb[c] = image->data[row + 3 * (size_t)x + 2 - c];
    } else {
        uint32_t pixel =
            b->bits == 16 ? u16_at(image, row + 2 * (size_t)x) : u32_at(image, row + 4 * (size_t)x);
        for (size_t c = 0; c < 3; c++)
            rgb[c] = masked(pixel, b->masks[c]);
    }
}

static kelp_status *bmp_decode(const kelp_encoded *image, uint8_t *out) {
    bmp b;
    KELP_TRY(bmp_header(image, &b));
    KELP_ASSERT(b.width == image->width && b.height == image->height);
    size_t stride = ((size_t)b.width * b.bits + 31) / 32 * 4;
    if ((size_t)b.offset > image->size ||
        (image->size - (size_t)b.offset) / stride < (size_t)b.height)
        return kelp_image_bad("BMP", "it is truncated");
    for (int64_t y = 0; y < b.height; y++) {
        size_t row = (size_t)b.offset + stride * (size_t)(b.from_top ? y : b.height - 1 - y);
        for (int64_t x = 0; x < b.width; x++, out += 3)
            bmp_pixel(image, &b, row, x, out);
    }
    return NULL;
}
const kelp_image_format kelp_image_bmp = {"BMP", is_bmp, bmp_measure, bmp_decode};

/* ---- PNM ---- */
typedef struct pnm {
    int kind; /* 1 to 6 */
    int64_t width, height, max_value;
    size_t at; /* offset of the next sample */
} pnm;

static bool is_pnm(const kelp_encoded *image) {
    return image->size > 6 && image->data[0] == 'P' && image->data[1] >= '1' &&
           image->data[1] <= '6';
}

static bool is_space(uint8_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Returns the next decimal number of at most `digits` digits after blanks and comments; -1 if there
 * is none. */
static int64_t number(const kelp_encoded *image, size_t *at, int digits) {
    int64_t value = -1;
    while (*at < image->size && (is_space(image->data[*at]) || image->data[*at] == '#')) {
        if (image->data[(*at)++] == '#')
            while (*at < image->size && image->data[*at] != '\n')
                ++*at;
    }
    for (; *at < image->size && image->data[*at] >= '0' && image->data[*at] <= '9' && digits > 0;
         ++*at, digits--)
        value = KELP_MAX(value, (int64_t)0) * 10 + (image->data[*at] - '0');
    return value;
}

static kelp_status *pnm_header(const kelp_encoded *image, pnm *out) {
    out->kind = image->data[1] - '0';
    out->at = 2;
    out->width = number(image, &out->at, 9);
    out->height = number(image, &out->at, 9);
    out->max_value = out->kind % 3 == 1 ? 1 : number(image, &out->at, 9);
    if (out->width < 1 || out->height < 1 || out->max_value < 1 || out->max_value > 65535)
        return kelp_image_bad("PNM", "its header is corrupt");
    if (out->kind > 3)
        out->at++; /* one blank */
    return NULL;
}

static kelp_status *pnm_measure(kelp_encoded *image) {
    pnm p;
    KELP_TRY(pnm_header(image, &p));
    image->width = p.width;
    image->height = p.height;
    return NULL;
}

/* Returns the next sample; -1 after the end of the data. In P4, `x` selects the bit. */
static int64_t sample(const kelp_encoded *image, pnm *p, int64_t x) {
    if (p->kind <= 3)
        return number(image, &p->at, p->kind == 1 ? 1 : 9);
    if (p->kind == 4) {
        size_t at = p->at;
        if (x % 8 == 7 || x == p->width - 1)
            p->at++;
        return at < image->size ? image->data[at] >> (7 - x % 8) & 1 : -1;
    }
    size_t bytes = p->max_value > 255 ? 2 : 1;
    if (p->at + bytes > image->size)
        return -1;
    int64_t value = image->data[p->at];
    if (bytes == 2)
        value = value << 8 | image->data[p->at + 1];
    p->at += bytes;
    return value;
}

static kelp_status *pnm_decode(const kelp_encoded *image, uint8_t *out) {
    pnm p;
    KELP_TRY(pnm_header(image, &p));
    KELP_ASSERT(p.width == image->width && p.height == image->height);
    for (int64_t i = 0; i < p.width * p.height; i++, out += 3)
        for (int c = 0; c < 3; c++) {
            if (c > 0 && p.kind % 3 != 0) {
                out[c] = out[0];
                continue;
            }
            int64_t value = sample(image, &p, i % p.width);
            if (value < 0)
                return kelp_image_bad("PNM", "it is truncated");
            value = KELP_MIN(value, p.max_value);
            if (p.kind % 3 == 1) /* 1 is black */
                value = 1 - value;
            out[c] = (uint8_t)((value * 255 + p.max_value / 2) / p.max_value);
        }
    return NULL;
}
const kelp_image_format kelp_image_pnm = {"PNM", is_pnm, pnm_measure, pnm_decode};
