/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's TensorRT, loaded where it is installed: libtensorrt_rtx.so.1 or libnvinfer.so.11, and
 * its ONNX parser beside it. The version that the library reports chooses the tables that its
 * objects are called through; one without tables is refused.
 *
 * A loaded library is never unloaded: it has threads and handlers of its own.
 */
#ifndef KELP_TENSORRT_LIBRARY_H_
#define KELP_TENSORRT_LIBRARY_H_

#include "base/dl.h"
#include "tensorrt/tables/methods.h"

typedef enum trt_wanted { TRT_WANT_ANY, TRT_WANT_RTX, TRT_WANT_ENTERPRISE } trt_wanted;

typedef struct trt_library_options {
    /* A library's file, or a folder (see search_path): only that is tried. NULL:
     * KELP_TENSORRT_LIBRARY, else a search. */
    const char *path;
    /* Folders, ':' between them: the library's own, one with lib/, or a Python's site-packages
     * (whose tensorrt_rtx_libs/ and tensorrt_libs/ are looked into). NULL: KELP_TENSORRT_PATH. They
     * come before the site-packages of VIRTUAL_ENV and what the loader finds by name. */
    const char *search_path;
    trt_wanted wanted;
    /* Tables ("rtx-1.7") to call a library of unknown version with; of the same flavour. NULL:
     * KELP_TENSORRT_TABLE, else none. */
    const char *table;
} trt_library_options;

/* Read only. */
typedef struct trt_library {
    kelp_allocator allocator;
    kelp_dl dl, parser_dl;
    const trt_methods *methods;
    trt_flavour flavour;
    int32_t version; /* as the library gives it: 10701 */
    int major, minor, patch, build;
    char *path;          /* where the loader has it from */
    char *parser_path;   /* NULL without a parser */
    char *parser_reason; /* why there is none */
    char *tried;         /* every path tried before, and why it failed, one a line */

    void *(*create_builder)(void *logger, int32_t version);
    void *(*create_runtime)(void *logger, int32_t version);
    void *(*create_refitter)(void *engine, void *logger, int32_t version);
    void *(*create_parser)(void *network, void *logger, int version);
    void *(*create_parser_refitter)(void *refitter, void *logger, int version);
    int32_t parser_version;
} trt_library;

/* `options` may be NULL. NOT_FOUND when no path has a library, UNIMPLEMENTED when one was found
 * that no tables are known for; the message lists every path tried and why it failed. */
kelp_status *trt_library_open(kelp_allocator allocator, const trt_library_options *options,
                              trt_library **out) KELP_MUST_USE;
/* Its objects must be destroyed before. */
void trt_library_destroy(trt_library *library);

/* "TensorRT-RTX 1.7.1.116 (/path)", terminated; the length it has, as snprintf does. */
size_t trt_library_describe(const trt_library *library, char *buffer, size_t capacity);

#endif
