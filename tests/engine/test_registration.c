/* SPDX-License-Identifier: Apache-2.0 */
/* Registration of providers: tables that are incomplete, of another version, or registered twice.
 */
#include <kelp/compute.h>
#include <kelp/engine.h>
#include <kelp/engine_provider.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

static kelp_runtime *new_runtime(void) {
    kelp_runtime *runtime = NULL;
    check_ok(kelp_runtime_create(NULL, &runtime));
    return runtime;
}

static void incomplete_providers_of_models_are_rejected(void **state) {
    (void)state;
    kelp_runtime *runtime = new_runtime();
    size_t count = kelp_compute_count(runtime);
    kelp_compute_backend good = *kelp_compute_at(runtime, 0), bad[6];
    good.name = "mine";
    for (size_t i = 0; i < 6; i++)
        bad[i] = good;
    bad[0].abi_version++;
    bad[1].struct_size--;
    bad[2].name = NULL;
    bad[3].capabilities = NULL;
    bad[4].load_model = NULL;
    bad[5].name = "cpu";
    for (size_t i = 0; i < 6; i++)
        expect_failure(kelp_compute_register(runtime, &bad[i]),
                       i == 5 ? KELP_ALREADY_EXISTS : KELP_INVALID_ARGUMENT,
                       i == 0   ? "of ABI version"
                       : i == 5 ? "provider 'cpu' already offers models"
                                : "name, capabilities and load_model are required");
    assert_int_equal(kelp_compute_count(runtime), count);
    assert_null(kelp_compute_at(runtime, count));
    check_ok(kelp_compute_register(runtime, &good));
    assert_int_equal(kelp_compute_count(runtime), count + 1);
    assert_ptr_equal(kelp_compute_at(runtime, count), &good);
    expect_failure(kelp_compute_register(runtime, &good), KELP_ALREADY_EXISTS, "'mine'");
    kelp_runtime_release(runtime);
}

static void incomplete_providers_of_engines_are_rejected(void **state) {
    (void)state;
    kelp_runtime *runtime = new_runtime();
    size_t count = kelp_engine_provider_count(runtime);
    kelp_engine_provider good = *kelp_engine_provider_at(runtime, 0), bad[8];
    const char *taken = good.name;
    good.name = "mine";
    good.struct_size =
        offsetof(kelp_engine_provider, describe); /* functions after it are optional */
    for (size_t i = 0; i < 8; i++)
        bad[i] = good;
    bad[0].abi_version++;
    bad[1].struct_size--;
    bad[2].name = NULL;
    bad[3].name = "";
    bad[4].build = NULL;
    bad[5].load = NULL;
    bad[6].recognises = NULL;
    bad[7].name = taken;
    expect_failure(kelp_engine_provider_register(runtime, NULL), KELP_INVALID_ARGUMENT, "NULL");
    for (size_t i = 0; i < 8; i++)
        expect_failure(kelp_engine_provider_register(runtime, &bad[i]),
                       i == 7 ? KELP_ALREADY_EXISTS : KELP_INVALID_ARGUMENT,
                       i == 7 ? "already offers engines"
                              : "with a name, build, load and recognises");
    assert_int_equal(kelp_engine_provider_count(runtime), count);
    assert_null(kelp_engine_provider_at(runtime, count));
    check_ok(kelp_engine_provider_register(runtime, &good));
    assert_int_equal(kelp_engine_provider_count(runtime), count + 1);
    assert_ptr_equal(kelp_engine_provider_at(runtime, count), &good);
    kelp_runtime_release(runtime);
}

/* The declared opsets are enumerated without gaps, those of every provider. */
static void declared_opsets_are_enumerated(void **state) {
    (void)state;
    kelp_runtime *runtime = new_runtime();
    kelp_opset_declared declared;
    size_t count = 0, of_cpu = 0;
    while (kelp_opset_registry_at(kelp_runtime_opsets(runtime), count, &declared)) {
        if (strcmp(declared.backend->name, "cpu") == 0)
            of_cpu++;
        if (count++ == 0)
            assert_string_equal(declared.backend->name, "cpu");
    }
    assert_true(of_cpu > 1 && of_cpu < count);
    kelp_runtime_release(runtime);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(incomplete_providers_of_models_are_rejected),
        cmocka_unit_test(incomplete_providers_of_engines_are_rejected),
        cmocka_unit_test(declared_opsets_are_enumerated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
