/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads NVIDIA's TensorRT, if it is installed: libtensorrt_rtx.so.1 or libnvinfer.so.11, and the
 * ONNX parser next to it. The library's version selects the method tables for its objects; a
 * version without tables is rejected.
 *
 * A loaded library is never unloaded: it has its own threads and handlers.
 */
#ifndef KELP_TENSORRT_LIBRARY_H_
#define KELP_TENSORRT_LIBRARY_H_

#include "base/dl.h"
#include "tensorrt/tables/methods.h"

typedef enum trt_wanted { TRT_WANT_ANY, TRT_WANT_RTX, TRT_WANT_ENTERPRISE } trt_wanted;

typedef struct trt_library_options {
    /* The library's file, or a directory (see search_path); other places are not searched. NULL:
     * KELP_TENSORRT_LIBRARY, or a search. */
    const char *path;
    /* Directories, separated by ':': that of the library, one that contains lib/, or the
     * site-packages of Python (with tensorrt_rtx_libs/ and tensorrt_libs/). NULL:
     * KELP_TENSORRT_PATH. They precede the site-packages of VIRTUAL_ENV and the dynamic loader's
     * search. */
    const char *search_path;
    trt_wanted wanted;
    /* Tables ("rtx-1.7") for a library of unknown version; must be of the same flavor. NULL:
     * KELP_TENSORRT_TABLE, or those of the version. */
    const char *table;
} trt_library_options;

/* A loaded library. Immutable. */
typedef struct trt_library {
    kelp_allocator allocator;
    kelp_dl dl, parser_dl;
    const trt_methods *methods;
    trt_flavor flavor;
    int32_t version; /* the library's number: 10701 */
    int major, minor, patch, build;
    char *path;          /* of the loaded file */
    char *parser_path;   /* NULL: no parser */
    char *parser_reason; /* why there is no parser */
    char *tried;         /* lines with the tried paths and their errors */

    void *(*create_builder)(void *logger, int32_t version);
    void *(*create_runtime)(void *logger, int32_t version);
    void *(*create_refitter)(void *engine, void *logger, int32_t version);
    void *(*create_parser)(void *network, void *logger, int version);
    void *(*create_parser_refitter)(void *refitter, void *logger, int version);
    int32_t parser_version;
} trt_library;

/* Finds and loads a library. `options` may be NULL. Fails with NOT_FOUND if no library is found,
 * and with UNIMPLEMENTED if the found library has an unsupported version. The message lists all
 * tried paths with the reasons. */
kelp_status *trt_library_open(kelp_allocator allocator, const trt_library_options *options,
                              trt_library **out) KELP_MUST_USE;
/* Frees the description. All objects of the library must be destroyed before. */
void trt_library_destroy(trt_library *library);

/* Formats "TensorRT-RTX 1.7.1.116 (/path)". Returns the length like snprintf. */
size_t trt_library_describe(const trt_library *library, char *buffer, size_t capacity);

#endif
