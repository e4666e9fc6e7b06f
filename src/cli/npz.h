/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npz files: ZIP archives of .npy files, stored or deflated (numpy.savez and
 * numpy.savez_compressed). Source: PKWARE, "APPNOTE.TXT - .ZIP File Format Specification" 6.3.9. */
#ifndef KELP_CLI_NPZ_H_
#define KELP_CLI_NPZ_H_

#include "cli/npy.h"

/* A member of an archive. The name lacks the ".npy" at its end, and is borrowed from the file. */
typedef struct kelp_npz_member {
    kelp_str name;
    uint64_t offset; /* of the local header */
    uint64_t packed_bytes, bytes;
    uint32_t crc;
    uint16_t method; /* 0 stored, 8 deflated */
} kelp_npz_member;

typedef struct kelp_npz {
    const char *label;
    const uint8_t *data; /* borrowed */
    size_t size_bytes;
    kelp_npz_member *members;
    size_t count, capacity;
} kelp_npz;

/* Returns true for the signature of a ZIP archive. */
bool kelp_npz_is(const void *data, size_t size_bytes);
/* Reads the directory. INVALID_ARGUMENT quotes `label`. `data` and `label` are borrowed. The caller
 * calls deinit, also after a failure. */
kelp_status *kelp_npz_init(kelp_npz *out, const char *label, const void *data,
                           size_t size_bytes) KELP_MUST_USE;
void kelp_npz_deinit(kelp_npz *npz);
/* Reads the array of a member. Fails with INVALID_ARGUMENT if it is damaged, and UNIMPLEMENTED for
 * other compression methods and for deflated arrays in a build without zlib. */
kelp_status *kelp_npz_read(const kelp_npz *npz, size_t index, kelp_array *out) KELP_MUST_USE;

#endif
