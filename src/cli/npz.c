/* SPDX-License-Identifier: Apache-2.0 */
/* Reads ZIP archives of arrays. Every offset and size is checked against the file. */
#include "cli/npz.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#include <stdio.h>

#ifdef KELP_HAVE_ZLIB
#include <zlib.h>
#endif

#define LOCAL_SIGNATURE 0x04034b50u
#define CENTRAL_SIGNATURE 0x02014b50u
#define END_SIGNATURE 0x06054b50u
#define END64_SIGNATURE 0x06064b50u
#define END64_LOCATOR_SIGNATURE 0x07064b50u
#define LOCAL_BYTES 30u
#define CENTRAL_BYTES 46u
#define END_BYTES 22u
#define END64_BYTES 56u
#define END64_LOCATOR_BYTES 20u
#define MAX_COMMENT_BYTES 65535u
#define WIDE_EXTRA 1u /* tag of the 64-bit sizes */
#define NARROW_MAX UINT32_MAX
#define MAX_RATIO 1100u /* deflate reaches 1032 */

static kelp_status *damaged(const kelp_npz *npz, const char *what) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "'%s' is not a valid .npz file: %s", npz->label, what);
}

/* Reads a little-endian number of 2, 4 or 8 bytes. */
static uint64_t number(const uint8_t *at, size_t bytes) {
    uint64_t value = 0;
    memcpy(&value, at, bytes); /* the host is little-endian */
    return value;
}

bool kelp_npz_is(const void *data, size_t size_bytes) {
    return size_bytes >= sizeof(uint32_t) &&
           (number(data, 4) == LOCAL_SIGNATURE || number(data, 4) == END_SIGNATURE);
}

/* Returns true if the range is inside the file. */
static bool is_inside(const kelp_npz *npz, uint64_t offset, uint64_t bytes) {
    return offset <= npz->size_bytes && bytes <= npz->size_bytes - offset;
}

/* ---- the directory ---- */
typedef struct directory {
    uint64_t offset, bytes, count;
} directory;

/* Reads the 64-bit end record before `end`, if there is one. */
static kelp_status *read_wide_end(const kelp_npz *npz, size_t end, directory *inout) {
    if (end < END64_LOCATOR_BYTES ||
        number(npz->data + end - END64_LOCATOR_BYTES, 4) != END64_LOCATOR_SIGNATURE)
        return NULL;
    uint64_t at = number(npz->data + end - END64_LOCATOR_BYTES + 8, 8);
    if (!is_inside(npz, at, END64_BYTES) || number(npz->data + at, 4) != END64_SIGNATURE)
        return damaged(npz, "the 64-bit end record is missing");
    inout->count = number(npz->data + at + 32, 8);
    inout->bytes = number(npz->data + at + 40, 8);
    inout->offset = number(npz->data + at + 48, 8);
    return NULL;
}

/* Finds the end record, which is the last in the file, before a comment. */
static kelp_status *find_directory(const kelp_npz *npz, directory *out) {
    size_t limit = END_BYTES + MAX_COMMENT_BYTES;
    for (size_t back = END_BYTES; back <= KELP_MIN(npz->size_bytes, limit); back++) {
        const uint8_t *at = npz->data + npz->size_bytes - back;
        if (number(at, 4) != END_SIGNATURE || number(at + 20, 2) != back - END_BYTES)
            continue;
        *out = (directory){number(at + 16, 4), number(at + 12, 4), number(at + 10, 2)};
        KELP_TRY(read_wide_end(npz, npz->size_bytes - back, out));
        if (!is_inside(npz, out->offset, out->bytes) || out->count > out->bytes / CENTRAL_BYTES)
            return damaged(npz, "the directory is outside the file");
        return NULL;
    }
    return damaged(npz, "the end record is missing: the file is truncated");
}

/* Replaces sizes and offset of 32 bits that are all ones by those of the extra fields. */
static kelp_status *read_wide_sizes(const kelp_npz *npz, const uint8_t *extra, size_t bytes,
                                    kelp_npz_member *inout) {
    uint64_t *const fields[] = {&inout->bytes, &inout->packed_bytes, &inout->offset};
    while (bytes >= 4) {
        size_t length = (size_t)number(extra + 2, 2);
        if (length > bytes - 4)
            return damaged(npz, "an extra field is too long");
        if (number(extra, 2) == WIDE_EXTRA) {
            size_t at = 0;
            for (size_t i = 0; i < KELP_COUNT(fields); i++) {
                if (*fields[i] != NARROW_MAX)
                    continue;
                if (length - at < 8)
                    return damaged(npz, "an extra field is too short");
                *fields[i] = number(extra + 4 + at, 8);
                at += 8;
            }
        }
        extra += 4 + length;
        bytes -= 4 + length;
    }
    return NULL;
}

/* Reads the entry at `*inout_at` of the directory, and moves to the next. */
static kelp_status *read_entry(kelp_npz *npz, uint64_t end, uint64_t *inout_at) {
    const uint8_t *entry = npz->data + *inout_at;
    if (end - *inout_at < CENTRAL_BYTES || number(entry, 4) != CENTRAL_SIGNATURE)
        return damaged(npz, "the directory is damaged");
    size_t name = (size_t)number(entry + 28, 2), extra = (size_t)number(entry + 30, 2);
    uint64_t bytes = CENTRAL_BYTES + name + extra + number(entry + 32, 2);
    if (bytes > end - *inout_at)
        return damaged(npz, "the directory is damaged");
    kelp_npz_member member = {.name = {(const char *)entry + CENTRAL_BYTES, name},
                              .method = (uint16_t)number(entry + 10, 2),
                              .crc = (uint32_t)number(entry + 16, 4),
                              .packed_bytes = number(entry + 20, 4),
                              .bytes = number(entry + 24, 4),
                              .offset = number(entry + 42, 4)};
    KELP_TRY(read_wide_sizes(npz, entry + CENTRAL_BYTES + name, extra, &member));
    kelp_str suffix = KELP_STR(".npy");
    if (name > suffix.length &&
        kelp_str_equal((kelp_str){member.name.data + name - suffix.length, suffix.length}, suffix))
        member.name.length -= suffix.length;
    KELP_TRY(kelp_grow(kelp_allocator_system(), (void **)&npz->members, &npz->capacity,
                       npz->count + 1, sizeof *npz->members));
    npz->members[npz->count++] = member;
    *inout_at += bytes;
    return NULL;
}

kelp_status *kelp_npz_init(kelp_npz *out, const char *label, const void *data, size_t size_bytes) {
    directory found = {0};
    *out = (kelp_npz){.label = label, .data = data, .size_bytes = size_bytes};
    KELP_TRY(find_directory(out, &found));
    uint64_t at = found.offset;
    for (uint64_t i = 0; i < found.count; i++)
        KELP_TRY(read_entry(out, found.offset + found.bytes, &at));
    return NULL;
}

void kelp_npz_deinit(kelp_npz *npz) {
    kelp_free(kelp_allocator_system(), npz->members, npz->capacity * sizeof *npz->members);
    *npz = (kelp_npz){0};
}

/* ---- members ---- */
static kelp_status *member_error(const kelp_npz *npz, const kelp_npz_member *member, kelp_code code,
                                 const char *what) {
    return KELP_ERROR(code, "'%s': array '%.*s': %s", npz->label, KELP_STR_ARG(member->name), what);
}

#ifdef KELP_HAVE_ZLIB
static kelp_status *unpack(const kelp_npz *npz, const kelp_npz_member *member,
                           const uint8_t *packed, void *out) {
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)packed, .next_out = out};
    uint64_t in_left = member->packed_bytes, out_left = member->bytes;
    int result = Z_OK;
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
        return kelp_status_oom();
    /* zlib counts in unsigned int. */
    while (result == Z_OK) {
        uInt in = (uInt)KELP_MIN(in_left, (uint64_t)1 << 30);
        uInt space = (uInt)KELP_MIN(out_left, (uint64_t)1 << 30);
        stream.avail_in = in;
        stream.avail_out = space;
        result = inflate(&stream, Z_NO_FLUSH);
        in_left -= in - stream.avail_in;
        out_left -= space - stream.avail_out;
        if (in == stream.avail_in && space == stream.avail_out && result == Z_OK)
            break;
    }
    inflateEnd(&stream);
    return result == Z_STREAM_END && out_left == 0
               ? NULL
               : member_error(npz, member, KELP_INVALID_ARGUMENT, "the compressed data is damaged");
}

static bool has_crc(const uint8_t *data, uint64_t bytes, uint32_t expected) {
    uLong crc = crc32(0, NULL, 0);
    while (bytes > 0) {
        uInt length = (uInt)KELP_MIN(bytes, (uint64_t)1 << 30);
        crc = crc32(crc, data, length);
        data += length;
        bytes -= length;
    }
    return crc == expected;
}
#else
static kelp_status *unpack(const kelp_npz *npz, const kelp_npz_member *member,
                           const uint8_t *packed, void *out) {
    (void)packed;
    (void)out;
    return member_error(npz, member, KELP_UNIMPLEMENTED,
                        "this build of Kelp has no zlib to decompress it");
}

static bool has_crc(const uint8_t *data, uint64_t bytes, uint32_t expected) {
    (void)data;
    (void)bytes;
    (void)expected;
    return true;
}
#endif

static kelp_status *parse_member(const kelp_npz *npz, const kelp_npz_member *member,
                                 const uint8_t *data, kelp_array *out) {
    char label[512];
    if (!has_crc(data, member->bytes, member->crc))
        return member_error(npz, member, KELP_INVALID_ARGUMENT,
                            "the checksum is wrong: the file is damaged");
    snprintf(label, sizeof label, "%s:%.*s", npz->label, KELP_STR_ARG(member->name));
    return kelp_npy_parse(label, data, (size_t)member->bytes, out);
}

kelp_status *kelp_npz_read(const kelp_npz *npz, size_t index, kelp_array *out) {
    const kelp_npz_member *member = &npz->members[index];
    *out = (kelp_array){0};
    KELP_ASSERT(index < npz->count);
    if (!is_inside(npz, member->offset, LOCAL_BYTES) ||
        number(npz->data + member->offset, 4) != LOCAL_SIGNATURE)
        return member_error(npz, member, KELP_INVALID_ARGUMENT, "the local header is missing");
    const uint8_t *local = npz->data + member->offset;
    uint64_t begin = member->offset + LOCAL_BYTES + number(local + 26, 2) + number(local + 28, 2);
    if (!is_inside(npz, begin, member->packed_bytes))
        return member_error(npz, member, KELP_INVALID_ARGUMENT, "the file is truncated");
    const uint8_t *data = npz->data + begin;
    if (member->method == 0 && member->bytes == member->packed_bytes)
        return parse_member(npz, member, data, out);
    if (member->method != 8)
        return member_error(npz, member, KELP_UNIMPLEMENTED,
                            "expected stored or deflated data, found another compression method");
    if (member->bytes / MAX_RATIO > member->packed_bytes)
        return member_error(npz, member, KELP_INVALID_ARGUMENT,
                            "the size is larger than the compressed data can produce");
    void *unpacked = NULL;
    size_t size_bytes = (size_t)member->bytes;
    KELP_TRY(kelp_alloc(kelp_allocator_system(), size_bytes, &unpacked));
    kelp_status *status = unpack(npz, member, data, unpacked);
    if (status == NULL)
        status = parse_member(npz, member, unpacked != NULL ? unpacked : (const void *)"", out);
    kelp_free(kelp_allocator_system(), unpacked, size_bytes);
    return status;
}
