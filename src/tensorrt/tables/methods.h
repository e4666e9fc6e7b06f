/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a method of one of TensorRT's C++ objects is found from C. An object is a pointer to its
 * table of methods, then (at a known offset) a pointer to the part that implements it, whose table
 * holds the methods in an order that depends on the library's version. One trt_methods a version
 * lists the slot of each method; tables/calls.h has a typed function for each.
 *
 * The layout is that of the Itanium C++ ABI, on x86-64 and arm64 Linux alike. All that is passed by
 * value is plain C data, which C and C++ pass alike.
 */
#ifndef KELP_TENSORRT_TABLES_METHODS_H_
#define KELP_TENSORRT_TABLES_METHODS_H_

#include "tensorrt/tables/enums.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRT_MAX_DIMS 8

typedef struct trt_dims {
    int32_t rank;
    int64_t d[TRT_MAX_DIMS]; /* -1 is a dimension known when the engine runs */
} trt_dims;

/* Borrowed until the network is built. */
typedef struct trt_weights {
    trt_data_type type;
    const void *values;
    int64_t count; /* elements */
} trt_weights;

typedef struct trt_permutation {
    int32_t order[TRT_MAX_DIMS];
} trt_permutation;

typedef void *trt_stream; /* CUstream, cudaStream_t */
typedef void *trt_event;

_Static_assert(sizeof(trt_dims) == 72 && offsetof(trt_dims, d) == 8, "as nvinfer1::Dims64");
_Static_assert(sizeof(trt_weights) == 24 && offsetof(trt_weights, count) == 16, "as Weights");
_Static_assert(sizeof(trt_permutation) == 32, "as nvinfer1::Permutation");

/* TRT_M_network_add_input and so on. */
typedef enum trt_method {
#define TRT_METHOD(name, cxx, ...) TRT_M_##name,
#include "tensorrt/tables/methods.inc"
#undef TRT_METHOD
    TRT_METHOD_COUNT
} trt_method;

typedef enum trt_flavor { TRT_FLAVOR_RTX, TRT_FLAVOR_ENTERPRISE } trt_flavor;

/* The tables of one version; constant. */
typedef struct trt_methods {
    trt_flavor flavor;
    int major, minor;
    const char *name; /* "rtx-1.7" */
    uint8_t column;   /* in tables/values.inc */
    uint8_t slots[TRT_METHOD_COUNT];
} trt_methods;

/* The known versions, `trt_methods_count()` of them. */
size_t trt_methods_count(void);
const trt_methods *trt_methods_at(size_t index);
/* By name ("rtx-1.7"); NULL for one that is not known. */
const trt_methods *trt_methods_named(const char *name);
/* `version`: result of getInferLibVersion (10701, 110400). Returns NULL if it is not known. */
const trt_methods *trt_methods_for(int32_t version);
/* The flavor, major, minor and patch of such a number: RTX counts from 1, enterprise from 8. */
void trt_split_version(int32_t version, trt_flavor *out_flavor, int *out_major, int *out_minor,
                       int *out_patch);
/* "TensorRT-RTX" or "TensorRT". */
const char *trt_flavor_name(trt_flavor flavor);

#define TRT_NO_SLOT 255

static inline bool trt_has(const trt_methods *m, trt_method method) {
    return m->slots[method] != TRT_NO_SLOT;
}
/* "INetworkDefinition::addInput" */
const char *trt_method_name(trt_method method);
/* true when this version has the enumerator; `name` is that of tables/enums.h
 * ("TRT_COMPUTE_CAPABILITY_SM120"). One that is in no table is in every version. */
bool trt_has_value(const trt_methods *m, const char *name);

#define TRT_AS(type, pointer) ((type)(uintptr_t)(pointer))

/* The part that implements an object; NULL for none. */
static inline void *trt_self(const void *object, size_t offset) {
    return object == NULL || offset == 0
               ? (void *)(uintptr_t)object
               : *(void *const *)(const void *)((const char *)object + offset);
}

/* The address of a method of `self` (what trt_self gave); NULL when the version has none, or there
 * is no object, since the library answered an earlier call with NULL. */
static inline void *trt_slot(const trt_methods *m, const void *self, trt_method method) {
    uint8_t slot = m->slots[method];
    return slot != TRT_NO_SLOT && self != NULL ? (*(void *const *const *)self)[slot] : NULL;
}

#endif
