/* SPDX-License-Identifier: Apache-2.0 */
/* What the plug-in library of provider_plugin.c counts. */
#ifndef KELP_TESTS_SERVER_PROVIDER_PLUGIN_H_
#define KELP_TESTS_SERVER_PROVIDER_PLUGIN_H_

#include <stdatomic.h>

/* Atomic, because a server finalizes models in parallel. */
typedef struct tally_counts {
    atomic_int loads, inits, drains, destroys;
    atomic_int undrained; /* models that were destroyed without a drain after init */
    atomic_int input_device, output_device; /* of the last inference: a DLDeviceType */
    atomic_int runs;
    atomic_llong rows; /* of the last inference */
} tally_counts;

#endif
