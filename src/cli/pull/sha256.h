/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), for the digests of downloads. */
#ifndef KELP_CLI_PULL_SHA256_H_
#define KELP_CLI_PULL_SHA256_H_

#include <kelp/status.h>
#include <stddef.h>
#include <stdint.h>

/* A digest in hexadecimal digits, with a terminator. */
#define KELP_SHA256_TEXT_BYTES 65

typedef struct kelp_sha256 {
    uint32_t state[8];
    uint64_t size_bytes;
    uint8_t block[64];
} kelp_sha256;

void kelp_sha256_init(kelp_sha256 *hash);
void kelp_sha256_update(kelp_sha256 *hash, const void *data, size_t size_bytes);
/* Writes the digest; the hash cannot be updated any more. */
void kelp_sha256_text(kelp_sha256 *hash, char out[KELP_SHA256_TEXT_BYTES]);
/* Computes the digest of a file. Fails like open(2) and read(2). */
kelp_status *kelp_sha256_file(const char *path, char out[KELP_SHA256_TEXT_BYTES]) KELP_MUST_USE;

#endif
