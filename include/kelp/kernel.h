/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/kernel.h: shared libraries of named kernels over DLPack tensors.
 *
 * First part, for authors: a library exports kelp_plugin_query (kelp/plugin.h), whose table leads
 * to a kelp_kernel_library_def: its name, devices, initialize and finalize, and kernels, each a C
 * function with a signature in words. A library needs this header alone and links nothing.
 *
 * Second part, for users: a registry finds libraries by name and calls their kernels; arguments are
 * checked against the signature before the kernel runs. Kernels without a signature, as in
 * libraries that only have get_function_ptr, are called as they are, where need be through libffi.
 *
 * Signatures: parameters separated by commas; a scalar, then a tensor:
 *
 *     NAME: TYPE                        int32 uint32 int64 uint64 float32 float64 bool string
 *     [out|inout] NAME: [strided] TYPE[SHAPE]
 *
 * TYPE of a tensor is a name of kelp_dtype_name, `any`, or a capital letter, which stands for one
 * type throughout. SHAPE lists extents: a number; a name, which stands for one extent throughout;
 * `?` for any. A first `...`, or `...NAME`, stands for any number of leading extents, the same ones
 * wherever the NAME is. An integer with the name of an extent has that extent's value. Tensors
 * marked out or inout are written and must not be read-only; they are compact unless `strided`.
 *
 *     "out y: T[...s], a: T[...s], b: T[...s]"         element by element
 *     "out hist: int64[bins], image: uint8[h, w], bins: int64"
 *     "out y: float32[h, w], x: float32[h, w], radius: int32"
 *
 * A function that is registered by its address takes DLTensor pointers; a `*` before TYPE gives it
 * the address of the first element instead, as what a JIT makes has it: "out y: *float32[n]".
 *
 * Threads: a registry and its libraries from any thread; a context from one at a time.
 */
#ifndef KELP_KERNEL_H_
#define KELP_KERNEL_H_

#include <kelp/dlpack.h>
#include <kelp/event.h>
#include <kelp/plugin.h>
#include <kelp/status.h>
#include <kelp/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ==== for authors ==== */

/* One argument, in the order of the signature. */
typedef enum kelp_arg_kind {
    KELP_ARG_TENSOR = 1,
    KELP_ARG_INT = 2,   /* every integer and bool */
    KELP_ARG_FLOAT = 3, /* float32 and float64 */
    KELP_ARG_STRING = 4 /* terminated */
} kelp_arg_kind;
#define KELP_ARG_READ_ONLY 1u
typedef struct kelp_kernel_arg {
    uint32_t kind;  /* kelp_arg_kind */
    uint32_t flags; /* KELP_ARG_READ_ONLY: a tensor that must not be written */
    union {
        DLTensor *tensor; /* borrowed for the call */
        int64_t i;
        double f;
        const char *s;
    } as;
} kelp_kernel_arg;

/* What a kernel may use while it runs. */
typedef struct kelp_kernel_context kelp_kernel_context;
typedef struct kelp_kernel_completion kelp_kernel_completion;
struct kelp_kernel_context {
    uint32_t struct_size;
    int32_t threads; /* that parallel uses at most */
    DLDevice device;
    void *stream; /* the device's, as its configuration gave it; NULL on the CPU */
    /* Memory until the call is done; 64-byte aligned; NULL when there is none. No heap call once
     * the context has seen calls of this size. */
    void *(*scratch)(const kelp_kernel_context *context, size_t size_bytes);
    /* Splits [0, count) into chunks of at least `grain` over threads; returns when all are done. */
    void (*parallel)(const kelp_kernel_context *context, int64_t count, int64_t grain,
                     void (*fn)(void *userp, int64_t begin, int64_t end, int worker), void *userp);
    /* level: 0 error, 1 warning, 2 info, 3 verbose */
    void (*log)(const kelp_kernel_context *context, int level, const char *text);
    /* The words of the error that the kernel then returns a code for. */
    void (*fail)(const kelp_kernel_context *context, const char *text);
    /* Called by a kernel marked KELP_KERNEL_ASYNC before it returns KELP_OK with work still under
     * way; `complete` is then called once, from any thread. NULL when there is no memory. */
    kelp_kernel_completion *(*later)(const kelp_kernel_context *context);
    void (*complete)(kelp_kernel_completion *completion, kelp_code code, const char *text);
    /* A device's resource: released when the context goes, the newest first, also after errors.
     * false when there is no memory: then it was released already. */
    bool (*own)(const kelp_kernel_context *context, void (*release)(void *resource),
                void *resource);
};

/* Returns KELP_OK or another code, with words given to context->fail. */
typedef kelp_code (*kelp_kernel_fn)(const kelp_kernel_context *context,
                                    const kelp_kernel_arg *args);

#define KELP_KERNEL_ASYNC 1u /* may use context->later */
typedef struct kelp_kernel_def {
    const char *name;
    const char *signature;
    kelp_kernel_fn fn;
    uint32_t flags;      /* KELP_KERNEL_* */
    uint32_t reserved;   /* 0 */
    const char *summary; /* a line for people; may be NULL */
} kelp_kernel_def;

typedef struct kelp_device_config {
    const char *device; /* "cpu", "cuda", … */
    int32_t id;
    void *stream; /* may be NULL */
} kelp_device_config;

typedef struct kelp_kernel_library_def {
    uint32_t struct_size; /* sizeof(kelp_kernel_library_def) */
    uint32_t kernel_count;
    const kelp_kernel_def *kernels;
    const char *const *devices; /* names, ended by NULL; NULL: the CPU */
    /* Once, before anything else, with the devices that will be used. On failure a code, and words
     * in `error`; finalize is then not called. May be NULL. */
    kelp_code (*initialize)(const kelp_device_config *configs, size_t config_count,
                            void **out_state, char *error, size_t error_capacity);
    void (*finalize)(void *state); /* may be NULL */
    /* The bare function of a kernel, for callers who know its parameters: the context's address,
     * then what the author says. NULL when there is none. May be NULL. */
    void *(*get_function_ptr)(void *state, const char *name);
} kelp_kernel_library_def;

/* The whole entry of a library in C:
 *     static const kelp_kernel_def kernels[] = {{.name = "add", .signature = "…", .fn = add}};
 *     KELP_KERNEL_LIBRARY("custom_add", kernels)
 */
#define KELP_KERNEL_LIBRARY(library_name, kernel_array)                                   \
    KELP_PLUGIN_EXPORT const kelp_plugin *kelp_plugin_query(uint32_t host_abi_version) {  \
        static const kelp_kernel_library_def def = {                                      \
            .struct_size = sizeof(kelp_kernel_library_def),                               \
            .kernel_count = (uint32_t)(sizeof(kernel_array) / sizeof((kernel_array)[0])), \
            .kernels = (kernel_array)};                                                   \
        static const kelp_plugin plugin = {.magic = KELP_PLUGIN_MAGIC,                    \
                                           .abi_version = KELP_PLUGIN_ABI_VERSION,        \
                                           .struct_size = sizeof(kelp_plugin),            \
                                           .name = (library_name),                        \
                                           .kernels = &def};                              \
        return host_abi_version >= KELP_PLUGIN_ABI_VERSION ? &plugin : NULL;              \
    }

/* ==== for users ==== */

typedef struct kelp_kernel_registry kelp_kernel_registry;
typedef struct kelp_kernel_library kelp_kernel_library; /* lives as long as its registry */
typedef struct kelp_kernel kelp_kernel;                 /* lives as long as its library */

typedef struct kelp_kernel_registry_options {
    uint32_t struct_size;
    int32_t threads;          /* of parallel; 0: all CPUs */
    kelp_allocator allocator; /* zeroed: the system's */
    /* Folders and files, separated by colons, in place of KELP_BACKEND_PATH, TRITON_BACKEND_PATH
     * and the folder of the installation; NULL: those. */
    const char *search_path;
    const kelp_device_config *configs; /* given to initialize; NULL: one CPU */
    size_t config_count;
    void (*log)(void *userp, int level, const char *text); /* NULL: nowhere */
    void *log_userp;
} kelp_kernel_registry_options;
KELP_API kelp_status *kelp_kernel_registry_create(const kelp_kernel_registry_options *options,
                                                  kelp_kernel_registry **out) KELP_MUST_USE;
KELP_API kelp_kernel_registry *kelp_kernel_registry_retain(kelp_kernel_registry *registry);
/* The last one finalizes the libraries, the newest first. Their code stays mapped. */
KELP_API void kelp_kernel_registry_release(kelp_kernel_registry *registry);

/* The library of that name, or (with a '/') in that file; loaded and initialized the first time.
 * NOT_FOUND lists every path that was tried and why it was not taken. */
KELP_API kelp_status *kelp_kernel_registry_open(kelp_kernel_registry *registry, const char *name,
                                                kelp_kernel_library **out) KELP_MUST_USE;
/* The same, telling `tried` (may be NULL) about each file that was looked at and not taken, in
 * order, with the reason, which is borrowed. It is called before this returns, on the caller's
 * thread, and must not use the registry. */
KELP_API kelp_status *
kelp_kernel_registry_search(kelp_kernel_registry *registry, const char *name,
                            void (*tried)(void *userp, const char *path, const kelp_status *why),
                            void *userp, kelp_kernel_library **out) KELP_MUST_USE;
/* An empty library of our own, for functions that are registered by address. ALREADY_EXISTS. */
KELP_API kelp_status *kelp_kernel_registry_add(kelp_kernel_registry *registry, const char *name,
                                               kelp_kernel_library **out) KELP_MUST_USE;
/* Libraries so far. */
KELP_API size_t kelp_kernel_registry_count(kelp_kernel_registry *registry);
KELP_API kelp_kernel_library *kelp_kernel_registry_at(kelp_kernel_registry *registry, size_t index);
/* Opens every library in the folders of the search path; what fails is said through the log.
 * Returns how many there are then. */
KELP_API size_t kelp_kernel_registry_scan(kelp_kernel_registry *registry);

KELP_API const char *kelp_kernel_library_name(const kelp_kernel_library *library);
KELP_API const char *kelp_kernel_library_path(const kelp_kernel_library *library); /* or "" */
/* NULL past the last. */
KELP_API const char *kelp_kernel_library_device(const kelp_kernel_library *library, size_t index);
KELP_API size_t kelp_kernel_library_count(const kelp_kernel_library *library);
KELP_API const kelp_kernel *kelp_kernel_library_at(const kelp_kernel_library *library,
                                                   size_t index);
/* NOT_FOUND lists the kernels that there are. A function known to get_function_ptr alone becomes a
 * kernel without a signature. */
KELP_API kelp_status *kelp_kernel_library_find(kelp_kernel_library *library, const char *name,
                                               const kelp_kernel **out) KELP_MUST_USE;
/* The bare function; NULL when there is none. */
KELP_API void *kelp_kernel_library_function(kelp_kernel_library *library, const char *name);
/* A function by its address, which stays valid. It is called with the context's address (when
 * `with_context`) and then its parameters: tensors as DLTensor pointers, scalars as the C types of
 * the signature. Without a signature (NULL) integers pass as int64 and floats as double. */
KELP_API kelp_status *kelp_kernel_library_register(kelp_kernel_library *library, const char *name,
                                                   void *function, const char *signature,
                                                   bool with_context,
                                                   const kelp_kernel **out) KELP_MUST_USE;

/* A kernel of this program, as a library would declare it. `def` and what it points to are copied,
 * but for the summary, which outlives the registry. ALREADY_EXISTS when the name is taken. */
KELP_API kelp_status *kelp_kernel_library_define(kelp_kernel_library *library,
                                                 const kelp_kernel_def *def,
                                                 const kelp_kernel **out) KELP_MUST_USE;

KELP_API const char *kelp_kernel_name(const kelp_kernel *kernel);
KELP_API const char *kelp_kernel_signature(const kelp_kernel *kernel); /* "" when there is none */
KELP_API const char *kelp_kernel_summary(const kelp_kernel *kernel);   /* or "" */

typedef enum kelp_param_direction {
    KELP_PARAM_IN = 0,
    KELP_PARAM_OUT = 1,
    KELP_PARAM_INOUT = 2
} kelp_param_direction;
typedef struct kelp_kernel_param {
    const char *name;
    kelp_arg_kind kind;
    kelp_param_direction direction;
    kelp_dtype dtype; /* of elements or the scalar; INVALID: any, or a letter */
} kelp_kernel_param;
/* -1 without a signature. */
KELP_API int32_t kelp_kernel_param_count(const kelp_kernel *kernel);
KELP_API kelp_kernel_param kelp_kernel_param_at(const kelp_kernel *kernel, int32_t index);

/* What a signature says about the shape of a tensor. */
typedef struct kelp_kernel_shape {
    int32_t rank;                     /* extents below; -1: a scalar, or no such parameter */
    bool leading;                     /* any number of extents come before them: "..." */
    const char *leading_name;         /* "...NAME"; or NULL */
    int64_t extents[KELP_MAX_RANK];   /* -1: what a name stands for, or any */
    const char *names[KELP_MAX_RANK]; /* or NULL */
} kelp_kernel_shape;
KELP_API kelp_kernel_shape kelp_kernel_param_shape(const kelp_kernel *kernel, int32_t index);

/* What calls share: scratch memory, a device, resources. */
typedef struct kelp_kernel_session kelp_kernel_session;
KELP_API kelp_status *kelp_kernel_session_create(kelp_kernel_registry *registry,
                                                 const kelp_device_config *config, /* NULL: CPU */
                                                 kelp_kernel_session **out) KELP_MUST_USE;
/* Waits for what is under way, then releases the resources, the newest first. */
KELP_API void kelp_kernel_session_destroy(kelp_kernel_session *session);
/* What kernels see; valid as long as the session. */
KELP_API const kelp_kernel_context *kelp_kernel_session_context(kelp_kernel_session *session);

/* Checks the arguments, runs the kernel, and waits for it when it is asynchronous. Tensors lie on
 * the session's device. INVALID_ARGUMENT names the parameter, what was expected and found; nothing
 * has run then. Allocates nothing once warm. */
KELP_API kelp_status *kelp_kernel_call(const kelp_kernel *kernel, kelp_kernel_session *session,
                                       const kelp_kernel_arg *args, int32_t count) KELP_MUST_USE;
/* The types and shapes of what the kernel would write, without calling it. `args` as for a call,
 * but those of tensors marked `out` are ignored, and an integer that stands for an extent may be
 * left out (kind 0) where a tensor tells. `out_tensors` has room for every tensor that is written,
 * in the signature's order; their data is NULL. INVALID_ARGUMENT where a shape does not follow,
 * FAILED_PRECONDITION for a kernel without a signature. */
KELP_API kelp_status *kelp_kernel_infer_shapes(const kelp_kernel *kernel,
                                               const kelp_kernel_arg *args, int32_t count,
                                               kelp_tensor *out_tensors) KELP_MUST_USE;
/* The same without waiting: arguments stay valid until `event` is done; kelp_kernel_session_result
 * then gives the outcome. One at a time a session. A kernel that is not asynchronous has run when
 * this returns. */
KELP_API kelp_status *kelp_kernel_submit(const kelp_kernel *kernel, kelp_kernel_session *session,
                                         const kelp_kernel_arg *args, int32_t count,
                                         kelp_event *event) KELP_MUST_USE;
/* Of the last submission; waits for it. Given once, then NULL. */
KELP_API kelp_status *kelp_kernel_session_result(kelp_kernel_session *session) KELP_MUST_USE;

/* ---- as operators of ONNX ---- */
struct kelp_opset_backend;
/* The library's kernels with a signature as operators of version 1 of the domain that has the
 * library's name: inputs are the tensors that are read, outputs those that are written, attributes
 * the scalars, all in the signature's order; an operator's outputs take their shapes from the names
 * in the signature, so that a kernel with an output of an open extent is left out. Register the
 * backend with kelp_runtime_register_opset; both live as long as the registry. NOT_FOUND: no kernel
 * of the library can be an operator. */
KELP_API kelp_status *kelp_kernel_library_opset(kelp_kernel_library *library,
                                                const struct kelp_opset_backend **out_backend,
                                                void **out_self) KELP_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
