/* SPDX-License-Identifier: Apache-2.0 */
/* Content codings. */
#include "frontends/http/encoding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static kelp_http_coding accepted(const char *text) {
    return kelp_http_coding_accepted(kelp_str_from(text));
}

static bool have_zlib(void) {
    return kelp_http_coding_of(KELP_STR("gzip")) == KELP_HTTP_GZIP;
}

static void the_preferred_coding_is_chosen(void **state) {
    (void)state;
    if (!have_zlib())
        skip();
    assert_int_equal(accepted(""), KELP_HTTP_IDENTITY);
    assert_int_equal(accepted("gzip"), KELP_HTTP_GZIP);
    assert_int_equal(accepted("deflate, gzip"), KELP_HTTP_GZIP);
    assert_int_equal(accepted("gzip;q=0.5, deflate;q=0.8"), KELP_HTTP_DEFLATE);
    assert_int_equal(accepted("gzip;q=0"), KELP_HTTP_IDENTITY);
    assert_int_equal(accepted("br, zstd"), KELP_HTTP_IDENTITY);
    assert_int_equal(accepted("identity, gzip;q=0.5"), KELP_HTTP_IDENTITY);
    assert_int_equal(accepted("gzip;q=nonsense"), KELP_HTTP_IDENTITY);
}

static void round_trip(kelp_http_coding coding) {
    kelp_buf text, packed;
    kelp_http_body back;
    kelp_http_budget budget = {.limit_bytes = 1 << 20};
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_buf_init(&packed, kelp_allocator_system());
    kelp_http_body_init(&back, kelp_allocator_system());
    back.budget = &budget;
    for (int i = 0; i < 50000; i++)
        kelp_buf_printf(&text, "%d,", i);
    kelp_http_encoder *encoder;
    assert_null(kelp_http_encoder_create(kelp_allocator_system(), coding, &packed, &encoder));
    assert_null(kelp_http_encoder_put(encoder, text.data, 1000));
    assert_null(kelp_http_encoder_put(encoder, text.data + 1000, text.length - 1000));
    assert_null(kelp_http_encoder_end(encoder));
    kelp_http_encoder_destroy(encoder);
    assert_true(packed.length < text.length);
    assert_null(kelp_http_decode(coding, packed.data, packed.length, text.length, &back));
    assert_int_equal(back.length, text.length);
    assert_memory_equal(kelp_http_body_data(&back), text.data, text.length);
    assert_in_range(budget.used_bytes, text.length, 1 << 20);

    kelp_http_body_clear(&back, 0); /* one byte too many */
    kelp_status *status =
        kelp_http_decode(coding, packed.data, packed.length, text.length - 1, &back);
    assert_int_equal(kelp_status_code(status), KELP_OUT_OF_RANGE);
    kelp_status_free(status);
    kelp_http_body_clear(&back, 0); /* truncated */
    status = kelp_http_decode(coding, packed.data, packed.length / 2, text.length, &back);
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    kelp_status_free(status);
    kelp_http_body_clear(&back, 0); /* another format */
    status = kelp_http_decode(coding, "{\"a\":1}", 7, 1000, &back);
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    kelp_status_free(status);
    kelp_http_body_clear(&back, 0); /* the budget counts decompressed bytes */
    budget.limit_bytes = text.length / 2;
    status = kelp_http_decode(coding, packed.data, packed.length, text.length, &back);
    assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
    kelp_status_free(status);
    kelp_buf_deinit(&text);
    kelp_buf_deinit(&packed);
    kelp_http_body_deinit(&back);
    assert_int_equal(budget.used_bytes, 0);
}

static void codings_survive_a_round_trip(void **state) {
    (void)state;
    if (!have_zlib())
        skip();
    round_trip(KELP_HTTP_GZIP);
    round_trip(KELP_HTTP_DEFLATE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_preferred_coding_is_chosen),
        cmocka_unit_test(codings_survive_a_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
