/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/accepted.h"

#include "base/checked.h"

#include <stddef.h>
#include <stdio.h>

/* The help is the reason why an option has no effect. An option that gets an effect moves to a
 * table in cli/serve/options. */
#define AT(member) offsetof(kelp_serve_accepted, member)
static const kelp_arg_spec specs[] = {
    {.group = "Accepted without effect",
     .name = "grpc-infer-thread-count",
     .kind = KELP_ARG_I64,
     .offset = AT(integer),
     .value = "N",
     .help = "the threads of --http-thread-count serve every protocol"},
    {.name = "grpc-infer-allocation-pool-size",
     .kind = KELP_ARG_I64,
     .offset = AT(integer),
     .value = "N",
     .help = "each thread keeps the memory of up to 64 calls"},
    {.name = "grpc-max-response-pool-size",
     .kind = KELP_ARG_I64,
     .offset = AT(integer),
     .value = "N",
     .help = "streams limit the bytes of their responses"},
    {.name = "allow-sagemaker",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(flag),
     .help = "SageMaker endpoints are not supported"},
    {.name = "sagemaker-port",
     .kind = KELP_ARG_I64,
     .offset = AT(integer),
     .value = "PORT",
     .help = "SageMaker endpoints are not supported"},
    {.name = "sagemaker-safe-port-range",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(text),
     .value = "FIRST-LAST",
     .help = "SageMaker endpoints are not supported"},
    {.name = "sagemaker-thread-count",
     .kind = KELP_ARG_I64,
     .offset = AT(integer),
     .value = "N",
     .help = "SageMaker endpoints are not supported"},
    {.name = "allow-vertex-ai",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(flag),
     .help = "Vertex AI endpoints are not supported"},
    {.name = "vertex-ai-port",
     .kind = KELP_ARG_I64,
     .offset = AT(integer),
     .value = "PORT",
     .help = "Vertex AI endpoints are not supported"},
    {.name = "vertex-ai-thread-count",
     .kind = KELP_ARG_I64,
     .offset = AT(integer),
     .value = "N",
     .help = "Vertex AI endpoints are not supported"},
    {.name = "vertex-ai-default-model",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(text),
     .value = "NAME",
     .help = "Vertex AI endpoints are not supported"},
    {.name = "allow-gpu-metrics",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(flag),
     .help = "there are no metrics of GPUs"},
    {.name = "metrics-interval-ms",
     .kind = KELP_ARG_F64,
     .offset = AT(number),
     .value = "MS",
     .help = "metrics are read when they are requested"},
    {.name = "pinned-memory-pool-byte-size",
     .kind = KELP_ARG_I64,
     .offset = AT(integer),
     .value = "BYTES",
     .help = "there is no pool of pinned memory"},
    {.name = "cuda-memory-pool-byte-size",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(text),
     .value = "DEVICE:BYTES",
     .help = "there is no pool of GPU memory"},
    {.name = "cuda-virtual-address-size",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(text),
     .value = "DEVICE:BYTES",
     .help = "there is no pool of GPU memory"},
    {.name = "min-supported-compute-capability",
     .kind = KELP_ARG_F64,
     .offset = AT(number),
     .value = "VERSION",
     .help = "GPUs are not selected by their capability"},
    {.name = "buffer-manager-thread-count",
     .kind = KELP_ARG_I64,
     .offset = AT(integer),
     .value = "N",
     .help = "threads of the front-ends copy tensors"},
    {.name = "model-load-gpu-limit",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(text),
     .value = "DEVICE:FRACTION",
     .help = "the memory of GPUs is not limited"},
    {.name = "enable-peer-access",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(flag),
     .help = "GPUs do not access the memory of each other"},
};
#undef AT

const kelp_arg_table kelp_serve_accepted_table = {specs, KELP_COUNT(specs)};

bool kelp_serve_is_accepted(const kelp_arg_spec *spec) {
    return spec >= specs && spec < specs + KELP_COUNT(specs);
}

kelp_status *kelp_serve_accept(kelp_serve_accepted *accepted, const kelp_arg_spec *spec,
                               const char *value) {
    size_t index = (size_t)(spec - specs);
    _Static_assert(KELP_COUNT(specs) <= 64, "a bit for each option");
    KELP_TRY(kelp_args_set(spec, value, accepted));
    if (!(accepted->warned & UINT64_C(1) << index))
        fprintf(stderr, "Warning: option '--%s' has no effect: %s\n", spec->name, spec->help);
    accepted->warned |= UINT64_C(1) << index;
    return NULL;
}
