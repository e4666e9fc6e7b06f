/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of the C API that need no server: errors, names, parameters, messages, attributes,
 * options, log. */
#include "server/support.h"

#include <triton/core/tritonbackend.h>
#include <unistd.h>

static void test_api_versions_are_reported(void **state) {
    uint32_t major = 0, minor = 0;
    (void)state;
    ok(TRITONSERVER_ApiVersion(&major, &minor));
    assert_int_equal(major, 1);
    assert_int_equal(minor, 34);
    ok(TRITONBACKEND_ApiVersion(&major, &minor));
    assert_int_equal(minor, 19);
    fails(TRITONSERVER_ApiVersion(NULL, &minor), TRITONSERVER_ERROR_INVALID_ARG, "major");
}

static void test_errors_have_code_and_message(void **state) {
    static const char *const names[] = {"Unknown",          "Internal",    "Not found",
                                        "Invalid argument", "Unavailable", "Unsupported",
                                        "Already exists",   "Cancelled"};
    (void)state;
    for (int i = 0; i < 8; i++) {
        TRITONSERVER_Error *error = TRITONSERVER_ErrorNew((TRITONSERVER_Error_Code)i, "100% so");
        assert_int_equal(TRITONSERVER_ErrorCode(error), i);
        assert_string_equal(TRITONSERVER_ErrorCodeString(error), names[i]);
        assert_string_equal(TRITONSERVER_ErrorMessage(error), "100% so");
        TRITONSERVER_ErrorDelete(error);
    }
    TRITONSERVER_ErrorDelete(NULL);
}

static void test_enumerations_have_names(void **state) {
    (void)state;
    for (int i = 1; i <= TRITONSERVER_TYPE_BF16; i++) {
        const char *name = TRITONSERVER_DataTypeString((TRITONSERVER_DataType)i);
        assert_int_equal(TRITONSERVER_StringToDataType(name), i);
    }
    assert_string_equal(TRITONSERVER_DataTypeString(TRITONSERVER_TYPE_FP32), "FP32");
    assert_string_equal(TRITONSERVER_DataTypeString((TRITONSERVER_DataType)99), "<invalid>");
    assert_int_equal(TRITONSERVER_DataTypeByteSize(TRITONSERVER_TYPE_FP64), 8);
    assert_int_equal(TRITONSERVER_DataTypeByteSize(TRITONSERVER_TYPE_BYTES), 0);
    assert_int_equal(TRITONSERVER_StringToDataType("float"), TRITONSERVER_TYPE_INVALID);
    assert_string_equal(TRITONSERVER_MemoryTypeString(TRITONSERVER_MEMORY_CPU_PINNED),
                        "CPU_PINNED");
    assert_string_equal(TRITONSERVER_InstanceGroupKindString(TRITONSERVER_INSTANCEGROUPKIND_CPU),
                        "CPU");
    assert_string_equal(
        TRITONSERVER_InferenceTraceActivityString(TRITONSERVER_TRACE_CUSTOM_ACTIVITY),
        "CUSTOM_ACTIVITY");
}

static void test_messages_are_json(void **state) {
    TRITONSERVER_Message *message = NULL;
    const char *base = NULL;
    size_t size = 0;
    (void)state;
    ok(TRITONSERVER_MessageNewFromSerializedJson(&message, "{\"a\":[1,2]}", 11));
    ok(TRITONSERVER_MessageSerializeToJson(message, &base, &size));
    assert_int_equal(size, 11);
    assert_memory_equal(base, "{\"a\":[1,2]}", 11);
    ok(TRITONSERVER_MessageDelete(message));
    fails(TRITONSERVER_MessageNewFromSerializedJson(&message, "{\"a\":", 5),
          TRITONSERVER_ERROR_INVALID_ARG, "");
    ok(TRITONSERVER_MessageDelete(NULL));
}

static void test_buffer_attributes_are_stored(void **state) {
    TRITONSERVER_BufferAttributes *attributes = NULL;
    TRITONSERVER_MemoryType type;
    int64_t id = -1;
    size_t size = 1;
    void *handle = &size;
    (void)state;
    ok(TRITONSERVER_BufferAttributesNew(&attributes));
    ok(TRITONSERVER_BufferAttributesByteSize(attributes, &size));
    assert_int_equal(size, 0);
    ok(TRITONSERVER_BufferAttributesCudaIpcHandle(attributes, &handle));
    assert_null(handle);
    ok(TRITONSERVER_BufferAttributesSetByteSize(attributes, 77));
    ok(TRITONSERVER_BufferAttributesSetMemoryType(attributes, TRITONSERVER_MEMORY_GPU));
    ok(TRITONSERVER_BufferAttributesSetMemoryTypeId(attributes, 3));
    ok(TRITONSERVER_BufferAttributesMemoryType(attributes, &type));
    ok(TRITONSERVER_BufferAttributesMemoryTypeId(attributes, &id));
    ok(TRITONSERVER_BufferAttributesByteSize(attributes, &size));
    assert_int_equal(type, TRITONSERVER_MEMORY_GPU);
    assert_int_equal(id, 3);
    assert_int_equal(size, 77);
    ok(TRITONSERVER_BufferAttributesDelete(attributes));
}

static void test_options_are_checked(void **state) {
    TRITONSERVER_ServerOptions *options = NULL;
    TRITONSERVER_Server *server = NULL;
    (void)state;
    ok(TRITONSERVER_ServerOptionsNew(&options));
    ok(TRITONSERVER_ServerOptionsSetServerId(options, "kelp"));
    ok(TRITONSERVER_ServerOptionsSetServerId(options, "kelp again"));
    ok(TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(options, 0, 1 << 20));
    ok(TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(options, 0));
    ok(TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(options, 7.5));
    ok(TRITONSERVER_ServerOptionsSetBackendConfig(options, "", "default-max-batch-size", "8"));
    ok(TRITONSERVER_ServerOptionsSetHostPolicy(options, "p", "numa-node", "0"));
    fails(TRITONSERVER_ServerOptionsSetHostPolicy(options, "p", "colour", "blue"),
          TRITONSERVER_ERROR_UNSUPPORTED, "colour");
    fails(TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(
              options, TRITONSERVER_INSTANCEGROUPKIND_GPU, 0, 1.5),
          TRITONSERVER_ERROR_INVALID_ARG,
          "expects limit fraction to be in range [0.0, 1.0], got 1.5");
    fails(TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(
              options, TRITONSERVER_INSTANCEGROUPKIND_GPU, -1, 0.5),
          TRITONSERVER_ERROR_INVALID_ARG, "expects device ID >= 0, got -1");
    fails(TRITONSERVER_ServerOptionsSetServerId(options, NULL), TRITONSERVER_ERROR_INVALID_ARG, "");
    fails(TRITONSERVER_ServerNew(&server, options), TRITONSERVER_ERROR_INVALID_ARG,
          "no model repository");
    ok(TRITONSERVER_ServerOptionsDelete(options));
}

static void test_memory_manager_allocates(void **state) {
    void *buffer = NULL;
    (void)state;
    ok(TRITONBACKEND_MemoryManagerAllocate(NULL, &buffer, TRITONSERVER_MEMORY_CPU, 0, 64));
    memset(buffer, 1, 64);
    ok(TRITONBACKEND_MemoryManagerFree(NULL, buffer, TRITONSERVER_MEMORY_CPU, 0));
    fails(TRITONBACKEND_MemoryManagerAllocate(NULL, &buffer, TRITONSERVER_MEMORY_GPU, 0, 64),
          TRITONSERVER_ERROR_UNSUPPORTED, "GPU");
}

static void test_null_arguments_are_errors(void **state) {
    (void)state;
    fails(TRITONSERVER_ServerNew(NULL, NULL), TRITONSERVER_ERROR_INVALID_ARG, "must not be NULL");
    fails(TRITONSERVER_InferenceRequestNew(NULL, NULL, NULL, 1), TRITONSERVER_ERROR_INVALID_ARG,
          "must not be NULL");
    fails(TRITONSERVER_ServerInferAsync(NULL, NULL, NULL), TRITONSERVER_ERROR_INVALID_ARG,
          "server");
    fails(TRITONSERVER_ServerMetadata(NULL, NULL), TRITONSERVER_ERROR_INVALID_ARG, "server");
    fails(TRITONBACKEND_RequestInput(NULL, NULL, NULL), TRITONSERVER_ERROR_INVALID_ARG, "request");
    int backend = 0; /* is not read */
    fails(TRITONBACKEND_BackendArtifacts((void *)&backend, NULL, NULL),
          TRITONSERVER_ERROR_INVALID_ARG, "an output argument must not be NULL");
    fails(TRITONBACKEND_ResponseNew(NULL, NULL), TRITONSERVER_ERROR_INVALID_ARG, "response");
    fails(TRITONBACKEND_RequestRelease(NULL, 1), TRITONSERVER_ERROR_INVALID_ARG, "request");
    ok(TRITONSERVER_InferenceRequestDelete(NULL));
    ok(TRITONSERVER_InferenceResponseDelete(NULL));
    ok(TRITONSERVER_ServerDelete(NULL));
    ok(TRITONBACKEND_ResponseFactoryDelete(NULL));
}

static void test_log_is_written_to_a_file(void **state) {
    char path[] = "/tmp/kelp-test-log-XXXXXX", line[512] = "";
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    ok(TRITONSERVER_ServerOptionsSetLogInfo(NULL, true));
    assert_true(TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_INFO));
    assert_false(TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_VERBOSE));
    ok(TRITONSERVER_ServerOptionsSetLogFile(NULL, path));
    ok(TRITONSERVER_LogMessage(TRITONSERVER_LOG_INFO, "a.c", 12, "say \"it\"\nnow"));
    ok(TRITONSERVER_LogMessage(TRITONSERVER_LOG_VERBOSE, "a.c", 13, "never"));
    ok(TRITONSERVER_ServerOptionsSetLogFile(NULL, ""));
    FILE *file = fopen(path, "r");
    assert_non_null(fgets(line, sizeof line, file));
    contains(line, "a.c:12] \"say \\\"it\\\"\\nnow\"");
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
    remove(path);
    fails(TRITONSERVER_ServerOptionsSetLogFile(NULL, "/nowhere/at/all"),
          TRITONSERVER_ERROR_INVALID_ARG, "/nowhere/at/all");
    fails(TRITONSERVER_LogMessage((TRITONSERVER_LogLevel)9, "a.c", 1, "x"),
          TRITONSERVER_ERROR_INVALID_ARG, "unknown log level");
}

static void test_metrics_are_counted(void **state) {
    static const double bounds[] = {1, 2.5};
    TRITONSERVER_MetricFamily *family = NULL, *same = NULL, *histograms = NULL;
    TRITONSERVER_Metric *counter = NULL, *twin = NULL, *histogram = NULL;
    TRITONSERVER_MetricArgs *args = NULL;
    double value = 0;
    (void)state;
    TRITONSERVER_Parameter *label =
        TRITONSERVER_ParameterNew("who", TRITONSERVER_PARAMETER_STRING, "me \"too\"");
    const TRITONSERVER_Parameter *labels[] = {label};
    ok(TRITONSERVER_MetricFamilyNew(&family, TRITONSERVER_METRIC_KIND_COUNTER, "things", "Things"));
    ok(TRITONSERVER_MetricFamilyNew(&same, TRITONSERVER_METRIC_KIND_COUNTER, "things", "Things"));
    fails(TRITONSERVER_MetricFamilyNew(&same, TRITONSERVER_METRIC_KIND_GAUGE, "things", "Things"),
          TRITONSERVER_ERROR_INVALID_ARG, "different kind");
    ok(TRITONSERVER_MetricNew(&counter, family, labels, 1));
    ok(TRITONSERVER_MetricNew(&twin, same, labels, 1));
    ok(TRITONSERVER_MetricIncrement(counter, 2));
    ok(TRITONSERVER_MetricIncrement(twin, 0.5));
    ok(TRITONSERVER_MetricValue(counter, &value));
    assert_true(value == 2.5);
    fails(TRITONSERVER_MetricIncrement(counter, -1), TRITONSERVER_ERROR_INVALID_ARG,
          "cannot decrease");
    fails(TRITONSERVER_MetricSet(counter, 1), TRITONSERVER_ERROR_UNSUPPORTED, "counter");
    ok(TRITONSERVER_MetricFamilyDelete(same));
    fails(TRITONSERVER_MetricFamilyDelete(family), TRITONSERVER_ERROR_INTERNAL, "it has metrics");
    ok(TRITONSERVER_MetricFamilyNew(&histograms, TRITONSERVER_METRIC_KIND_HISTOGRAM, "spread",
                                    "S"));
    fails(TRITONSERVER_MetricNew(&histogram, histograms, NULL, 0), TRITONSERVER_ERROR_INVALID_ARG,
          "buckets");
    ok(TRITONSERVER_MetricArgsNew(&args));
    ok(TRITONSERVER_MetricArgsSetHistogram(args, bounds, 2));
    ok(TRITONSERVER_MetricNewWithArgs(&histogram, histograms, NULL, 0, args));
    ok(TRITONSERVER_MetricArgsDelete(args));
    ok(TRITONSERVER_MetricObserve(histogram, 1));
    ok(TRITONSERVER_MetricObserve(histogram, 9));
    ok(TRITONSERVER_MetricDelete(histogram));
    ok(TRITONSERVER_MetricFamilyDelete(histograms));
    ok(TRITONSERVER_MetricDelete(counter));
    ok(TRITONSERVER_MetricDelete(twin));
    ok(TRITONSERVER_MetricFamilyDelete(family));
    TRITONSERVER_ParameterDelete(label);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_versions_are_reported),
        cmocka_unit_test(test_errors_have_code_and_message),
        cmocka_unit_test(test_enumerations_have_names),
        cmocka_unit_test(test_messages_are_json),
        cmocka_unit_test(test_buffer_attributes_are_stored),
        cmocka_unit_test(test_options_are_checked),
        cmocka_unit_test(test_memory_manager_allocates),
        cmocka_unit_test(test_null_arguments_are_errors),
        cmocka_unit_test(test_log_is_written_to_a_file),
        cmocka_unit_test(test_metrics_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
