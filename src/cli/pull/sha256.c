/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pull/sha256.h"

#include "base/checked.h"
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES 64
#define READ_BYTES ((size_t)16 * 1024)

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, unsigned bits) {
    return x >> bits | x << (32 - bits);
}

static void compress(uint32_t state[8], const uint8_t block[BLOCK_BYTES]) {
    uint32_t w[64], s[8];
    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (size_t i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(s, state, sizeof s);
    for (size_t i = 0; i < 64; i++) {
        uint32_t e = s[4], a = s[0];
        uint32_t t = s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                     ((e & s[5]) ^ (~e & s[6])) + constants[i] + w[i];
        uint32_t u = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                     ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t;
        s[0] = t + u;
    }
    for (size_t i = 0; i < 8; i++)
        state[i] += s[i];
}

void kelp_sha256_init(kelp_sha256 *hash) {
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    *hash = (kelp_sha256){.size_bytes = 0};
    memcpy(hash->state, initial, sizeof initial);
}

void kelp_sha256_update(kelp_sha256 *hash, const void *data, size_t size_bytes) {
    const uint8_t *bytes = data;
    while (size_bytes > 0) {
        size_t used = hash->size_bytes % BLOCK_BYTES;
        size_t part = KELP_MIN(size_bytes, BLOCK_BYTES - used);
        memcpy(hash->block + used, bytes, part);
        hash->size_bytes += part;
        bytes += part;
        size_bytes -= part;
        if (used + part == BLOCK_BYTES)
            compress(hash->state, hash->block);
    }
}

void kelp_sha256_text(kelp_sha256 *hash, char out[KELP_SHA256_TEXT_BYTES]) {
    static const uint8_t zeros[BLOCK_BYTES];
    const uint8_t end = 0x80;
    uint64_t bits = hash->size_bytes * 8;
    uint8_t length[8];
    for (size_t i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    kelp_sha256_update(hash, &end, 1);
    size_t used = hash->size_bytes % BLOCK_BYTES;
    kelp_sha256_update(hash, zeros, (BLOCK_BYTES + 56 - used) % BLOCK_BYTES);
    kelp_sha256_update(hash, length, sizeof length);
    for (size_t i = 0; i < 8; i++)
        snprintf(out + 8 * i, 9, "%08x", hash->state[i]);
}

kelp_status *kelp_sha256_file(const char *path, char out[KELP_SHA256_TEXT_BYTES]) {
    char buffer[READ_BYTES];
    kelp_sha256 hash;
    size_t size_bytes;
    int fd;
    KELP_TRY(kelp_fs_open(path, &fd, &size_bytes));
    kelp_sha256_init(&hash);
    ssize_t got;
    while ((got = read(fd, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR))
        if (got > 0)
            kelp_sha256_update(&hash, buffer, (size_t)got);
    int error = errno;
    close(fd);
    if (got < 0)
        return kelp_fs_error("cannot read", path, error);
    kelp_sha256_text(&hash, out);
    return NULL;
}
