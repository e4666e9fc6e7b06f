/* SPDX-License-Identifier: Apache-2.0 */
/* What the plug-in library of provider_plugin.c counts. */
#ifndef KELP_TESTS_SERVER_PROVIDER_PLUGIN_H_
#define KELP_TESTS_SERVER_PROVIDER_PLUGIN_H_

typedef struct tally_counts {
    int loads, inits, drains, destroys;
    int undrained;                   /* models that were destroyed without a drain after init */
    int input_device, output_device; /* of the last inference: a DLDeviceType */
    int runs;
    long long rows; /* of the last inference */
} tally_counts;

#endif
