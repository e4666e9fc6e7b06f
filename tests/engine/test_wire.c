/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors from the network: received tensors equal those sent, without a copy; malformed ones fail
 * with the documented order of checks and leave no tensor. */
#include <kelp/wire.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"
#include "support/failing_allocator.h"

#define MOST 8

typedef struct fixture {
    test_failing memory;
    kelp_types *types;
    kelp_budget *budget;
    kelp_wire_slot slots[MOST];
    size_t slot_count;
    kelp_receiver *receiver;
} fixture;

static void open_with(fixture *f, size_t budget_bytes, const kelp_wire_caps *caps) {
    kelp_allocator allocator = test_failing_allocator(&f->memory);
    if (f->types == NULL) {
        check_ok(kelp_types_create(allocator, &f->types));
        check_ok(kelp_budget_create(allocator, budget_bytes, &f->budget));
    }
    kelp_receiver_options options = {.struct_size = sizeof options,
                                     .allocator = allocator,
                                     .types = f->types,
                                     .budget = f->budget,
                                     .caps = caps,
                                     .slots = f->slots,
                                     .slot_count = f->slot_count};
    check_ok(kelp_receiver_create(&options, &f->receiver));
}

static void begin(fixture *f) {
    memset(f, 0, sizeof *f);
    test_failing_init(&f->memory, 0);
    f->slots[0] = (kelp_wire_slot){.name = "x", .type_hash = kelp_type_of_tensor(KELP_F32)};
    f->slots[1] = (kelp_wire_slot){.name = "ids", .type_hash = kelp_type_of_tensor(KELP_I64)};
    f->slots[2] = (kelp_wire_slot){.name = "any"};
    f->slot_count = 3;
}

static void end(fixture *f) {
    kelp_receiver_destroy(f->receiver);
    if (f->budget != NULL)
        assert_int_equal(kelp_budget_used(f->budget), 0);
    kelp_budget_destroy(f->budget);
    kelp_types_destroy(f->types);
    test_failing_check(&f->memory);
    test_failing_deinit(&f->memory);
}

/* Writes bytes to the addresses of the receiver, at most `step` at a time. */
static kelp_status *feed(kelp_receiver *receiver, const char *bytes, size_t length, size_t step) {
    for (size_t at = 0; at < length;) {
        size_t wanted = 0;
        void *where = kelp_receiver_want(receiver, &wanted);
        if (where == NULL)
            return KELP_ERROR(KELP_OUT_OF_RANGE, "more bytes than an envelope");
        size_t some = wanted < step ? wanted : step;
        some = some < length - at ? some : length - at;
        memcpy(where, bytes + at, some);
        KELP_TRY(kelp_receiver_got(receiver, some));
        at += some;
    }
    return NULL;
}

/* Returns the envelope in contiguous memory, which the caller frees. */
static char *pack(const kelp_envelope_parts *parts, size_t *out_length) {
    kelp_envelope *envelope = NULL;
    size_t count = 0, at = 0;
    check_ok(kelp_envelope_create(kelp_allocator_system(), parts, &envelope));
    const kelp_span *spans = kelp_envelope_spans(envelope, &count);
    *out_length = kelp_envelope_bytes(envelope);
    char *bytes = malloc(*out_length);
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++) {
        memcpy(bytes + at, spans[i].data, spans[i].size_bytes);
        at += spans[i].size_bytes;
    }
    assert_int_equal(at, *out_length);
    kelp_envelope_destroy(envelope);
    return bytes;
}

static void send(fixture *f, const kelp_envelope_fill *fills, size_t count) {
    size_t length = 0;
    kelp_envelope_parts parts = {.correlation = 7, .fills = fills, .fill_count = count};
    char *bytes = pack(&parts, &length);
    kelp_receiver_next(f->receiver);
    check_ok(feed(f->receiver, bytes, length, SIZE_MAX));
    assert_true(kelp_receiver_is_complete(f->receiver));
    free(bytes);
}

static const kelp_fill_report *expect_kind(fixture *f, size_t index, kelp_wire_kind kind,
                                           kelp_code code, const char *words) {
    const kelp_fill_report *report = kelp_receiver_report(f->receiver, index);
    assert_non_null(report);
    assert_int_equal(report->kind, kind);
    if (kind == KELP_WIRE_DELIVERED) {
        assert_null(report->status);
        return report;
    }
    assert_int_equal(kelp_status_code(report->status), code);
    assert_int_equal(kelp_wire_kind_of(report->status), kind);
    if (strstr(kelp_status_message(report->status), words) == NULL)
        fail_msg("expected '%s' in: %s", words, kelp_status_message(report->status));
    return report;
}

static float floats[4] = {1.5f, -2.0f, 0.25f, 8.0f};
static int64_t integers[2] = {3, -4};

static kelp_tensor float_tensor(void) {
    kelp_tensor tensor;
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 2, (int64_t[]){2, 2}, floats));
    return tensor;
}

static kelp_tensor integer_tensor(void) {
    kelp_tensor tensor;
    check_ok(kelp_tensor_init(&tensor, KELP_I64, 1, (int64_t[]){2}, integers));
    return tensor;
}

/* ---- types ---- */
static void type_hashes_are_fnv_1a(void **state) {
    (void)state;
    /* published test vectors of 64-bit FNV-1a */
    assert_true(kelp_type_hash("") == 0xcbf29ce484222325u);
    assert_true(kelp_type_hash("a") == 0xaf63dc4c8601ec8cu);
    assert_true(kelp_type_hash("foobar") == 0x85944171f73967e8u);
    assert_true(kelp_type_of_tensor(KELP_F32) == kelp_type_hash("kelp.tensor.float32"));
}

static void aliases_are_accepted(void **state) {
    fixture f;
    uint64_t hash = 0, own = 0;
    (void)state;
    begin(&f);
    open_with(&f, 0, NULL);
    assert_string_equal(kelp_types_find(f.types, kelp_type_hash("tensor(float)"), &hash),
                        "kelp.tensor.float32");
    assert_true(hash == kelp_type_of_tensor(KELP_F32));
    assert_null(kelp_types_find(f.types, 1, NULL));
    check_ok(kelp_types_declare(f.types, "com.example.Matrix", &own));
    check_ok(kelp_types_declare(f.types, "com.example.Matrix", NULL));
    check_ok(kelp_types_alias(f.types, "com.example.OldMatrix", "com.example.Matrix"));
    assert_string_equal(kelp_types_find(f.types, kelp_type_hash("com.example.OldMatrix"), &hash),
                        "com.example.Matrix");
    assert_true(hash == own);
    expect_failure(kelp_types_alias(f.types, "a", "com.example.Nothing"), KELP_NOT_FOUND,
                   "is not declared");
    expect_failure(kelp_types_declare(f.types, "com.example.OldMatrix", NULL), KELP_ALREADY_EXISTS,
                   "com.example.OldMatrix");
    end(&f);
}

/* ---- received tensors ---- */
static void sent_tensors_are_received_unchanged(void **state) {
    (void)state;
    static const size_t steps[] = {1, 7, 64, SIZE_MAX};
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        fixture f;
        size_t length = 0, bytes = 0;
        kelp_tensor x = float_tensor(), ids = integer_tensor();
        kelp_envelope_fill fills[] = {
            {.slot = 1, .tensor = &ids},
            {.slot = 0, .tensor = &x},
            {.slot = 2, .tensor = &x, .type_hash = kelp_type_hash("tensor(float)")}};
        kelp_string addresses[] = {{"node-a", 6}, {"", 0}};
        kelp_envelope_parts parts = {.correlation = 0x123456789abcdefu,
                                     .fills = fills,
                                     .fill_count = 3,
                                     .suffix = "suffix",
                                     .suffix_bytes = 6,
                                     .addresses = addresses,
                                     .address_count = 2};
        begin(&f);
        open_with(&f, 0, NULL);
        char *packed = pack(&parts, &length);
        check_ok(feed(f.receiver, packed, length, steps[s]));
        free(packed);
        assert_true(kelp_receiver_is_complete(f.receiver));
        assert_true(kelp_receiver_correlation(f.receiver) == 0x123456789abcdefu);
        assert_memory_equal(kelp_receiver_suffix(f.receiver, &bytes), "suffix", 6);
        assert_int_equal(bytes, 6);
        assert_int_equal(kelp_receiver_address_count(f.receiver), 2);
        assert_memory_equal(kelp_receiver_address(f.receiver, 0, &bytes), "node-a", 6);
        (void)kelp_receiver_address(f.receiver, 1, &bytes);
        assert_int_equal(bytes, 0);
        assert_null(kelp_receiver_address(f.receiver, 2, &bytes));
        const kelp_tensor *got = kelp_receiver_tensor(f.receiver, 0);
        assert_non_null(got);
        assert_int_equal(got->dtype, KELP_F32);
        assert_int_equal(got->rank, 2);
        assert_memory_equal(got->data, floats, sizeof floats);
        assert_int_equal((uintptr_t)got->data % 64, 0);
        assert_memory_equal(kelp_receiver_tensor(f.receiver, 1)->data, integers, sizeof integers);
        assert_non_null(kelp_receiver_tensor(f.receiver, 2));
        assert_int_equal(kelp_budget_used(f.budget), 3 * 64 + 16 + 16 + 16);
        end(&f);
    }
}

static void strings_and_empty_tensors_are_received(void **state) {
    fixture f;
    kelp_string words[3] = {{"one", 3}, {"", 0}, {"three\0!", 7}};
    kelp_tensor text, empty;
    (void)state;
    check_ok(kelp_tensor_init(&text, KELP_STRING, 1, (int64_t[]){3}, words));
    check_ok(kelp_tensor_init(&empty, KELP_F32, 2, (int64_t[]){0, 5}, NULL));
    kelp_envelope_fill fills[] = {{.slot = 2, .tensor = &text}, {.slot = 0, .tensor = &empty}};
    begin(&f);
    open_with(&f, 0, NULL);
    send(&f, fills, 2);
    const kelp_tensor *got = kelp_receiver_tensor(f.receiver, 2);
    assert_non_null(got);
    const kelp_string *strings = got->data;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(strings[i].length, words[i].length);
        assert_memory_equal(strings[i].data, words[i].data, words[i].length);
    }
    got = kelp_receiver_tensor(f.receiver, 0);
    assert_non_null(got);
    assert_int_equal(got->shape[1], 5);
    end(&f);
}

/* ---- errors ---- */
static void failed_fill_does_not_affect_others(void **state) {
    fixture f;
    kelp_tensor x = float_tensor(), ids = integer_tensor();
    char junk[100] = "junk";
    (void)state;
    kelp_envelope_fill fills[] = {
        {.slot = 0, .tensor = &ids},
        {.slot = 9, .tensor = &x},
        {.slot = 0, .type_hash = 77, .data = junk, .size_bytes = 100},
        {.slot = 1, .tensor = &ids},
        {.slot = 0, .type_hash = kelp_type_of_tensor(KELP_F32), .data = junk, .size_bytes = 100},
        {.slot = 0, .type_hash = kelp_type_of_tensor(KELP_F32), .tensor = &ids},
        {.slot = 0, .type_hash = kelp_type_of_tensor(KELP_F32), .data = junk, .size_bytes = 0},
        {.slot = 2, .tensor = &x}};
    begin(&f);
    open_with(&f, 0, NULL);
    send(&f, fills, 8);
    assert_int_equal(kelp_receiver_report_count(f.receiver), 8);
    const kelp_fill_report *report =
        expect_kind(&f, 0, KELP_WIRE_TYPE_MISMATCH, KELP_INVALID_ARGUMENT,
                    "TypeMismatch: slot 0 ('x') expects type kelp.tensor.float32, found "
                    "kelp.tensor.int64");
    assert_true(report->expected_hash == kelp_type_of_tensor(KELP_F32));
    expect_kind(&f, 1, KELP_WIRE_UNKNOWN_SLOT, KELP_OUT_OF_RANGE, "there is no slot 9 of 3");
    expect_kind(&f, 2, KELP_WIRE_UNKNOWN_TYPE_HASH, KELP_NOT_FOUND, "000000000000004d");
    expect_kind(&f, 3, KELP_WIRE_DELIVERED, KELP_OK, "");
    expect_kind(&f, 4, KELP_WIRE_DECODE_FAILED, KELP_DATA_LOSS, "not a tensor");
    expect_kind(&f, 5, KELP_WIRE_DECODE_FAILED, KELP_DATA_LOSS, "does not match its type hash");
    expect_kind(&f, 6, KELP_WIRE_DECODE_FAILED, KELP_DATA_LOSS, "not a tensor");
    expect_kind(&f, 7, KELP_WIRE_DELIVERED, KELP_OK, "");
    assert_null(kelp_receiver_tensor(f.receiver, 0));
    assert_memory_equal(kelp_receiver_tensor(f.receiver, 1)->data, integers, sizeof integers);
    assert_memory_equal(kelp_receiver_tensor(f.receiver, 2)->data, floats, sizeof floats);
    end(&f);
}

static void the_budget_is_charged_and_released(void **state) {
    fixture f;
    kelp_tensor x = float_tensor(), ids = integer_tensor();
    (void)state;
    kelp_envelope_fill both[] = {{.slot = 0, .tensor = &x}, {.slot = 1, .tensor = &ids}};
    begin(&f);
    open_with(&f, 100, NULL);
    send(&f, both, 2);
    expect_kind(&f, 0, KELP_WIRE_DELIVERED, KELP_OK, "");
    const kelp_fill_report *report =
        expect_kind(&f, 1, KELP_WIRE_BUDGET_EXCEEDED, KELP_RESOURCE_EXHAUSTED,
                    "exceeds the budget: 80 bytes, 20 remain");
    assert_int_equal(report->size_bytes, 80);
    assert_int_equal(report->remaining_bytes, 20);
    kelp_receiver_evict(f.receiver, 0);
    assert_int_equal(kelp_budget_used(f.budget), 0);
    send(&f, &both[1], 1);
    expect_kind(&f, 0, KELP_WIRE_DELIVERED, KELP_OK, "");
    assert_int_equal(kelp_budget_used(f.budget), 80);
    /* an overwrite temporarily needs budget for both, then releases the old tensor */
    send(&f, &both[1], 1);
    expect_kind(&f, 0, KELP_WIRE_BUDGET_EXCEEDED, KELP_RESOURCE_EXHAUSTED, "20 remain");
    assert_non_null(kelp_receiver_tensor(f.receiver, 1)); /* the old one stays */
    end(&f);
    begin(&f);
    open_with(&f, 170, NULL);
    send(&f, &both[1], 1);
    send(&f, &both[1], 1);
    expect_kind(&f, 0, KELP_WIRE_DELIVERED, KELP_OK, "");
    assert_int_equal(kelp_budget_used(f.budget), 80);
    end(&f);
}

static void limits_are_checked_before_allocation(void **state) {
    fixture f;
    kelp_tensor x = float_tensor();
    kelp_wire_caps caps = kelp_wire_caps_edge();
    size_t length = 0;
    (void)state;
    assert_int_equal(kelp_wire_caps_default().envelope_bytes, 16 << 20);
    assert_int_equal(kelp_wire_caps_default().fills, 256);
    assert_int_equal(kelp_wire_caps_default().fill_bytes, 4 << 20);
    assert_int_equal(kelp_wire_caps_default().suffix_bytes, 4 << 10);
    assert_int_equal(caps.envelope_bytes, 256 << 10);
    assert_int_equal(caps.fills, 16);
    assert_int_equal(caps.fill_bytes, 64 << 10);
    assert_int_equal(caps.suffix_bytes, 512);
    kelp_envelope_fill fill = {.slot = 0, .tensor = &x}, many[17];
    for (int i = 0; i < 17; i++)
        many[i] = fill;
    static char large[70000];
    kelp_envelope_fill one_large = {.slot = 0, .type_hash = 1, .data = large, .size_bytes = 70000};
    kelp_envelope_fill five[5];
    for (int i = 0; i < 5; i++) {
        five[i] = one_large;
        five[i].size_bytes = 60000;
    }
    static char suffix[600];
    const struct {
        kelp_envelope_parts parts;
        const char *words;
    } cases[] = {
        {{.fills = many, .fill_count = 17}, "fills: 17 of at most 16"},
        {{.fills = &one_large, .fill_count = 1}, "bytes of a fill: 70000 of at most 65536"},
        {{.fills = five, .fill_count = 5}, "its bytes: 300160 of at most 262144"},
        {{.suffix = suffix, .suffix_bytes = 600}, "bytes of the suffix: 600 of at most 512"},
    };
    begin(&f);
    open_with(&f, 0, &caps);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *bytes = pack(&cases[i].parts, &length);
        uint64_t before = f.memory.calls;
        kelp_receiver_next(f.receiver);
        expect_failure(feed(f.receiver, bytes, length, SIZE_MAX), KELP_OUT_OF_RANGE,
                       cases[i].words);
        assert_int_equal(f.memory.calls, before);
        assert_int_equal(kelp_receiver_report_count(f.receiver), 0);
        free(bytes);
        /* the limits of the sender give the same error */
        kelp_envelope *envelope = NULL;
        kelp_envelope_parts capped = cases[i].parts;
        capped.caps = &caps;
        expect_failure(kelp_envelope_create(kelp_allocator_system(), &capped, &envelope),
                       KELP_OUT_OF_RANGE, "the envelope exceeds the limit of");
    }
    send(&f, &fill, 1); /* later fills succeed */
    expect_kind(&f, 0, KELP_WIRE_DELIVERED, KELP_OK, "");
    end(&f);
}

static void changed_bytes_are_detected(void **state) {
    fixture f;
    kelp_tensor x = float_tensor(), ids = integer_tensor();
    size_t length = 0;
    (void)state;
    kelp_envelope_fill fills[] = {{.slot = 0, .tensor = &x}, {.slot = 1, .tensor = &ids}};
    kelp_envelope_parts parts = {.fills = fills, .fill_count = 2, .suffix = "s", .suffix_bytes = 1};
    char *bytes = pack(&parts, &length);
    begin(&f);
    open_with(&f, 1000, NULL);
    for (size_t at = 0; at < length; at++)
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= (char)(1 << bit);
            kelp_receiver_next(f.receiver);
            kelp_status_free(feed(f.receiver, bytes, length, SIZE_MAX));
            bytes[at] ^= (char)(1 << bit);
        }
    for (size_t cut = 0; cut < length; cut++) { /* truncated */
        kelp_receiver_next(f.receiver);
        check_ok(feed(f.receiver, bytes, cut, SIZE_MAX));
        assert_false(kelp_receiver_is_complete(f.receiver));
    }
    free(bytes);
    end(&f);
}

/* The head has 40 bytes; two addresses of 2 and 3 bytes follow, each after its length. */
static void malformed_parts_are_named(void **state) {
    static const struct {
        size_t at;
        unsigned char byte;
        const char *words;
    } cases[] = {
        {0, 'k', "expected 'KENV' at the beginning"},
        {4, 9, "unknown version (9)"},
        {40, 8, "an address is truncated (0)"},
        {44, 4, "an address is truncated (1)"},
        {44, 2, "bytes between its addresses and its suffix (1)"},
        {24, 41, "it is shorter than its tables (41)"},
    };
    fixture f;
    kelp_tensor x = float_tensor();
    size_t length = 0, found = 0;
    (void)state;
    const kelp_string addresses[] = {{"ab", 2}, {"cde", 3}};
    kelp_envelope_fill fill = {.slot = 0, .tensor = &x};
    kelp_envelope_parts parts = {
        .fills = &fill, .fill_count = 1, .addresses = addresses, .address_count = 2};
    char *bytes = pack(&parts, &length);
    begin(&f);
    open_with(&f, 1000, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char before = bytes[cases[i].at];
        bytes[cases[i].at] = (char)cases[i].byte;
        kelp_receiver_next(f.receiver);
        expect_failure(feed(f.receiver, bytes, length, SIZE_MAX), KELP_INVALID_ARGUMENT,
                       cases[i].words);
        assert_false(kelp_receiver_is_complete(f.receiver));
        assert_null(kelp_receiver_want(f.receiver, &found)); /* until the next envelope */
        assert_int_equal(found, 0);
        bytes[cases[i].at] = before;
    }
    kelp_receiver_next(f.receiver);
    assert_non_null(kelp_receiver_want(f.receiver, &found));
    assert_int_equal(found, 40);
    expect_failure(kelp_receiver_got(f.receiver, 41), KELP_INVALID_ARGUMENT,
                   "the receiver expects at most 40 bytes: found 41");
    kelp_receiver_next(f.receiver); /* the unchanged envelope is received */
    check_ok(feed(f.receiver, bytes, length, SIZE_MAX));
    assert_int_equal(kelp_receiver_address_count(f.receiver), 2);
    assert_memory_equal(kelp_receiver_address(f.receiver, 1, &found), "cde", 3);
    assert_int_equal(found, 3);
    free(bytes);
    end(&f);
}

/* An envelope may have exactly as many bytes as the limit permits. */
static void envelopes_of_the_maximum_size_are_received(void **state) {
    fixture f;
    kelp_tensor x = float_tensor();
    kelp_wire_caps caps = kelp_wire_caps_default();
    size_t length = 0;
    (void)state;
    kelp_envelope_fill fill = {.slot = 0, .tensor = &x};
    kelp_envelope_parts parts = {.fills = &fill, .fill_count = 1};
    char *bytes = pack(&parts, &length);
    for (size_t less = 0; less < 2; less++) {
        caps.envelope_bytes = length - less;
        begin(&f);
        open_with(&f, 1000, &caps);
        kelp_status *status = feed(f.receiver, bytes, length, SIZE_MAX);
        if (less == 0)
            check_ok(status);
        else
            expect_failure(status, KELP_OUT_OF_RANGE, "the limit of its bytes");
        end(&f);
    }
    free(bytes);
}

static void invalid_options_of_a_receiver_are_rejected(void **state) {
    fixture f;
    kelp_wire_caps huge = kelp_wire_caps_default();
    (void)state;
    begin(&f);
    open_with(&f, 1000, NULL);
    kelp_receiver *receiver = NULL;
    kelp_receiver_options good = {.struct_size = sizeof good,
                                  .allocator = kelp_allocator_system(),
                                  .types = f.types,
                                  .budget = f.budget},
                          bad[4] = {good, good, good, good};
    bad[0].types = NULL;
    bad[1].budget = NULL;
    huge.addresses = SIZE_MAX / 2;
    bad[2].caps = &huge;
    kelp_wire_caps many = kelp_wire_caps_default();
    many.fills = SIZE_MAX / 2;
    bad[3].caps = &many;
    for (size_t i = 0; i < 4; i++)
        expect_failure(kelp_receiver_create(&bad[i], &receiver), KELP_INVALID_ARGUMENT,
                       "expected types, a budget, and limits that fit in memory");
    end(&f);
}

static void tensors_that_cannot_be_sent_are_rejected(void **state) {
    (void)state;
    kelp_tensor tensors[3] = {float_tensor(), float_tensor(), float_tensor()};
    tensors[0].strides[0]++;
    tensors[1].device = (DLDevice){kDLCUDA, 0};
    tensors[2].dtype = KELP_LIST;
    for (size_t i = 0; i < 3; i++) {
        kelp_envelope *envelope = NULL;
        kelp_envelope_fill fill = {.slot = 0, .tensor = &tensors[i]};
        kelp_envelope_parts parts = {.fills = &fill, .fill_count = 1};
        expect_failure(kelp_envelope_create(kelp_allocator_system(), &parts, &envelope),
                       KELP_UNIMPLEMENTED, "expected a compact tensor in host memory");
    }
}

/* ---- slots with a backend ---- */
typedef struct counting {
    int made, released;
    void *last;
    bool fails;
} counting;

static kelp_status *count_materialize(void *self, uint64_t type_hash, kelp_allocator owner,
                                      void *take_bytes, size_t size_bytes, kelp_tensor *out) {
    counting *c = self;
    c->last = take_bytes;
    if (c->fails) {
        kelp_status *ignored =
            kelp_wire_materialize(NULL, type_hash + 1, owner, take_bytes, size_bytes, out);
        kelp_status_free(ignored);
        return KELP_ERROR(KELP_UNAVAILABLE, "the device is out");
    }
    KELP_TRY(kelp_wire_materialize(NULL, type_hash, owner, take_bytes, size_bytes, out));
    c->made++;
    return NULL;
}

static void count_release(void *self, kelp_tensor *tensor) {
    ((counting *)self)->released++;
    kelp_wire_release_tensor(NULL, tensor);
}

static void tensors_are_moved_to_the_backend_of_the_slot(void **state) {
    fixture f;
    counting c = {0};
    kelp_tensor x = float_tensor();
    kelp_opset_backend backend = {.abi_version = KELP_OPSET_ABI_VERSION,
                                  .struct_size = sizeof backend,
                                  .name = "counter",
                                  .materialize = count_materialize,
                                  .release_tensor = count_release};
    kelp_envelope_fill fills[] = {{.slot = 0, .tensor = &x}, {.slot = 2, .tensor = &x}};
    (void)state;
    begin(&f);
    f.slots[0].backend = &backend;
    f.slots[0].self = &c;
    open_with(&f, 0, NULL);
    send(&f, fills, 1);
    assert_int_equal(c.made, 1);
    /* the tensor uses the memory that the transport wrote */
    assert_ptr_equal(kelp_receiver_tensor(f.receiver, 0)->data, (char *)c.last + 64);
    send(&f, fills, 1);
    assert_int_equal(c.made, 2);
    assert_int_equal(c.released, 1);
    c.fails = true;
    send(&f, fills, 2);
    expect_kind(
        &f, 0, KELP_WIRE_BACKEND_MATERIALIZE_FAILED, KELP_UNAVAILABLE,
        "BackendMaterializeFailed: provider 'counter' cannot create a tensor for slot 0 ('x')");
    expect_kind(&f, 1, KELP_WIRE_DELIVERED, KELP_OK, "");
    assert_non_null(kelp_receiver_tensor(f.receiver, 0)); /* the previous tensor */
    end(&f);
    assert_int_equal(c.released, 2);
}

static void backend_without_materialize_fails(void **state) {
    fixture f;
    kelp_receiver *receiver = NULL;
    kelp_opset_backend backend = {.struct_size = sizeof backend, .name = "plain"};
    (void)state;
    begin(&f);
    open_with(&f, 0, NULL);
    f.slots[1].backend = &backend;
    kelp_receiver_options options = {.struct_size = sizeof options,
                                     .allocator = test_failing_allocator(&f.memory),
                                     .types = f.types,
                                     .budget = f.budget,
                                     .slots = f.slots,
                                     .slot_count = 3};
    expect_failure(kelp_receiver_create(&options, &receiver), KELP_UNIMPLEMENTED,
                   "provider 'plain' does not create tensors");
    f.slots[1].backend = NULL;
    f.slots[1].type_hash = 12345;
    expect_failure(kelp_receiver_create(&options, &receiver), KELP_NOT_FOUND, "not declared");
    end(&f);
}

/* ---- every allocation fails once ---- */
static kelp_status *once(kelp_allocator allocator, const char *bytes, size_t length) {
    kelp_types *types = NULL;
    kelp_budget *budget = NULL;
    kelp_receiver *receiver = NULL;
    kelp_wire_slot slot = {.name = "x", .type_hash = kelp_type_of_tensor(KELP_F32)};
    kelp_status *status = kelp_types_create(allocator, &types);
    if (status == NULL)
        status = kelp_budget_create(allocator, 0, &budget);
    kelp_receiver_options options = {.struct_size = sizeof options,
                                     .allocator = allocator,
                                     .types = types,
                                     .budget = budget,
                                     .slots = &slot,
                                     .slot_count = 1};
    if (status == NULL)
        status = kelp_receiver_create(&options, &receiver);
    if (status == NULL)
        status = feed(receiver, bytes, length, SIZE_MAX);
    const kelp_fill_report *report = status == NULL ? kelp_receiver_report(receiver, 0) : NULL;
    if (report != NULL && report->status != NULL) {
        assert_int_equal(report->kind, KELP_WIRE_ALLOCATION_FAILED);
        assert_int_equal(kelp_budget_used(budget), 0);
        status = kelp_status_clone(report->status);
    }
    kelp_receiver_destroy(receiver);
    kelp_budget_destroy(budget);
    kelp_types_destroy(types);
    return status;
}

static void failed_allocations_leave_no_tensor(void **state) {
    kelp_tensor x = float_tensor();
    size_t length = 0;
    (void)state;
    kelp_envelope_fill fill = {.slot = 0, .tensor = &x};
    char *bytes = pack(&(kelp_envelope_parts){.fills = &fill, .fill_count = 1}, &length);
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        kelp_envelope *envelope = NULL;
        test_failing_init(&memory, n);
        kelp_status *status = once(test_failing_allocator(&memory), bytes, length);
        if (status == NULL)
            status = kelp_envelope_create(test_failing_allocator(&memory),
                                          &(kelp_envelope_parts){.fills = &fill, .fill_count = 1},
                                          &envelope);
        kelp_envelope_destroy(envelope);
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        if (!failed) {
            check_ok(status);
            assert_true(n > 8);
            break;
        }
        assert_non_null(status);
        assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
        kelp_status_free(status);
    }
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(type_hashes_are_fnv_1a),
        cmocka_unit_test(aliases_are_accepted),
        cmocka_unit_test(sent_tensors_are_received_unchanged),
        cmocka_unit_test(strings_and_empty_tensors_are_received),
        cmocka_unit_test(failed_fill_does_not_affect_others),
        cmocka_unit_test(the_budget_is_charged_and_released),
        cmocka_unit_test(limits_are_checked_before_allocation),
        cmocka_unit_test(changed_bytes_are_detected),
        cmocka_unit_test(malformed_parts_are_named),
        cmocka_unit_test(envelopes_of_the_maximum_size_are_received),
        cmocka_unit_test(invalid_options_of_a_receiver_are_rejected),
        cmocka_unit_test(tensors_that_cannot_be_sent_are_rejected),
        cmocka_unit_test(tensors_are_moved_to_the_backend_of_the_slot),
        cmocka_unit_test(backend_without_materialize_fails),
        cmocka_unit_test(failed_allocations_leave_no_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
