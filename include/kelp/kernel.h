/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/kernel.h: named kernels over DLPack tensors, in shared libraries.
 *
 * The first part is for authors: a library exports kelp_plugin_query (kelp/plugin.h), whose table
 * points to a kelp_kernel_library_def with kernels. Each kernel is a C function with a signature.
 * A library needs only this header and links nothing.
 *
 * The second part is for applications: a registry finds libraries by name and calls their kernels.
 * Arguments are checked against the signature before the kernel runs. Kernels without a signature,
 * from libraries that only have get_function_ptr, are called without these checks, through libffi
 * if necessary.
 *
 * Signatures
 *
 * A signature describes the parameters of a kernel, or of an operator (kelp_opset_op). It is a list
 * of parameters separated by commas, and may end with constraints. A parameter is a scalar or a
 * tensor:
 *
 *     [optional] NAME: SCALAR [= DEFAULT]
 *     [optional] [variadic] [out|inout] NAME: [strided] TYPE[SHAPE]
 *     where LETTER: TYPE | TYPE …, LETTER: …
 *
 * SCALAR is int32, uint32, int64, uint64, float32, float64, bool or string. A DEFAULT is a number,
 * `true`, `false`, or a string in quotes. A scalar of an operator is an attribute, which may also
 * be of type ints, floats, strings, tensor or graph.
 *
 * TYPE of a tensor is a name of kelp_dtype_name, `any`, or a capital letter. All tensors with the
 * same letter must have the same type, which is one of those that `where` lists, if it does. SHAPE
 * is a list of dimensions, each a number, a name or `?` for any size. All dimensions with the same
 * name must have the same size. A leading `...` stands for any number of dimensions; wherever
 * `...NAME` has the same NAME, they must be equal. An integer parameter with the name of a
 * dimension receives its size. The kernel writes parameters marked out or inout, so their arguments
 * must not be read-only. Tensors must be compact unless the parameter is `strided`.
 *
 * An `optional` parameter, or one with a default, may be omitted. A kernel receives an omitted
 * tensor as an argument of kind 0, or as NULL if it is a function registered by its address; it
 * receives the default of an omitted scalar. Only operators have optional scalars without a
 * default, `variadic` tensors, tensors without a DLPack form, and attributes other than scalars. A
 * `variadic` tensor, the last input or output of an operator, stands for one tensor or more; if it
 * is also optional, for any number of tensors.
 *
 *     "out y: T[...s], a: T[...s], b: T[...s]"         elementwise
 *     "out hist: int64[bins], image: uint8[h, w], bins: int64"
 *     "out y: float32[h, w], x: float32[h, w], radius: int32 = 3"
 *     "out y: T[m, n], a: T[m, k], b: T[k, n], optional c: T[n] where T: float32 | float16"
 *
 * A function that is registered by its address (kelp_kernel_library_register) receives DLTensor
 * pointers. With a `*` before TYPE, it receives the address of the first element instead, which JIT
 * compilers expect: "out y: *float32[n]".
 *
 * Unless stated otherwise:
 *   - A registry and its libraries are thread-safe; a session is used by one thread at a time.
 *   - Returned strings and pointers are borrowed and valid as long as the registry.
 *   - Options structs: zeroed fields take the defaults given in [brackets].
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

/* ---- For authors ---- */

/* Kind of an argument. */
typedef enum kelp_arg_kind {
    KELP_ARG_TENSOR = 1, /* tensor */
    KELP_ARG_INT = 2,    /* any integer or bool, passed as int64 */
    KELP_ARG_FLOAT = 3,  /* float32 or float64, passed as double */
    KELP_ARG_STRING = 4  /* string terminated by NUL */
} kelp_arg_kind;

/* Flag of kelp_kernel_arg: the tensor must not be written. */
#define KELP_ARG_READ_ONLY 1u

/* An argument. Arguments are passed in the order of the signature. */
typedef struct kelp_kernel_arg {
    uint32_t kind;  /* a kelp_arg_kind; 0: omitted, for optional parameters */
    uint32_t flags; /* bits of KELP_ARG_* */
    /* Value, by kind: a tensor borrowed during the call, an integer, a float or a string. */
    union {
        DLTensor *tensor;
        int64_t i;
        double f;
        const char *s;
    } as;
} kelp_kernel_arg;

/* Services that a kernel may use during a call. */
typedef struct kelp_kernel_context kelp_kernel_context;

/* Handle of an asynchronous kernel call. */
typedef struct kelp_kernel_completion kelp_kernel_completion;

/* Contents of kelp_kernel_context. Valid during the call, and for an asynchronous kernel until
 * `complete`. */
struct kelp_kernel_context {
    uint32_t struct_size; /* sizeof(kelp_kernel_context) of the caller */
    int32_t threads;      /* number of threads that `parallel` uses */
    DLDevice device;      /* device of the session */
    void *stream;         /* stream of the device configuration; NULL on the CPU */
    /* Allocates memory, aligned to 64 bytes, that stays valid until the call is done. Makes no
     * heap call once calls of this size have been made. Returns NULL if memory is exhausted. */
    void *(*scratch)(const kelp_kernel_context *context, size_t size_bytes);
    /* Splits [0, count) into chunks of at least `grain`, or into halves if `count` is less than
     * twice `grain`, runs `fn` on several threads and returns when all are done. Up to `grain`
     * items are one chunk. `worker` is less than `threads` and unique among the chunks that run at
     * the same time. */
    void (*parallel)(const kelp_kernel_context *context, int64_t count, int64_t grain,
                     void (*fn)(void *userp, int64_t begin, int64_t end, int worker), void *userp);
    /* Logs a message. `level` is 0 error, 1 warning, 2 info or 3 verbose. */
    void (*log)(const kelp_kernel_context *context, int level, const char *text);
    /* Sets the message of the failure that the kernel then returns. Copies up to 511 bytes of
     * `text`. */
    void (*fail)(const kelp_kernel_context *context, const char *text);
    /* Makes the call asynchronous. A kernel calls it before it starts the work and then returns
     * KELP_OK; `complete` ends the call. Returns NULL for a kernel without KELP_KERNEL_ASYNC, and
     * if the call is already asynchronous. */
    kelp_kernel_completion *(*later)(const kelp_kernel_context *context);
    /* Ends an asynchronous call, exactly once, on any thread. `text` (may be NULL) is the message
     * of a failure. */
    void (*complete)(kelp_kernel_completion *completion, kelp_code code, const char *text);
    /* Transfers ownership of a resource to the session, which calls `release` when it is
     * destroyed, in reverse order. If memory is exhausted, releases the resource immediately and
     * returns false. */
    bool (*own)(const kelp_kernel_context *context, void (*release)(void *resource),
                void *resource);
};

/* A kernel. Returns KELP_OK, or another code after setting a message with context->fail. */
typedef kelp_code (*kelp_kernel_fn)(const kelp_kernel_context *context,
                                    const kelp_kernel_arg *args);

/* Flag of kelp_kernel_def: the kernel may call context->later. */
#define KELP_KERNEL_ASYNC 1u

/* Definition of a kernel. */
typedef struct kelp_kernel_def {
    const char *name;      /* unique within the library */
    const char *signature; /* signature, see above */
    kelp_kernel_fn fn;     /* the kernel */
    uint32_t flags;        /* bits of KELP_KERNEL_* */
    uint32_t reserved;     /* 0 */
    const char *summary;   /* one line for people; may be NULL */
} kelp_kernel_def;

/* A device that a library will run on. */
typedef struct kelp_device_config {
    const char *device; /* "cpu", "cuda", … */
    int32_t id;         /* index of the device */
    void *stream;       /* stream of the device; may be NULL */
} kelp_device_config;

/* Definition of a kernel library. Must be valid as long as the library is loaded. */
typedef struct kelp_kernel_library_def {
    uint32_t struct_size;           /* sizeof(kelp_kernel_library_def) */
    uint32_t kernel_count;          /* number of kernels */
    const kelp_kernel_def *kernels; /* kernels */
    const char *const *devices;     /* supported devices, terminated by NULL; NULL: CPU only */
    /* Called once per registry, before any kernel, with the devices that will be used.
     * `*out_state` is passed to the functions below. On failure, returns a code and writes a
     * message to `error`; finalize is then not called. May be NULL. */
    kelp_code (*initialize)(const kelp_device_config *configs, size_t config_count,
                            void **out_state, char *error, size_t error_capacity);
    /* Called once, after the last kernel. May be NULL. */
    void (*finalize)(void *state);
    /* Returns the address of a function, or NULL if there is none. Its first parameter is the
     * kelp_kernel_context; the caller must know the others, because there is no signature. May be
     * NULL. */
    void *(*get_function_ptr)(void *state, const char *name);
} kelp_kernel_library_def;

/* Defines the entry point of a library in C:
 *     static const kelp_kernel_def kernels[] = {{.name = "add", .signature = "…", .fn = add}};
 *     KELP_KERNEL_LIBRARY("custom_add", kernels) */
#define KELP_KERNEL_LIBRARY(library_name, kernel_array) \
    KELP_KERNEL_LIBRARY_WITH(library_name, kernel_array, .devices = NULL)

/* Defines the entry point of a library in C with further members of kelp_kernel_library_def:
 *     KELP_KERNEL_LIBRARY_WITH("custom_add", kernels, .initialize = open_devices,
 *                              .finalize = close_devices, .devices = device_names) */
#define KELP_KERNEL_LIBRARY_WITH(library_name, kernel_array, ...)                         \
    KELP_PLUGIN_EXPORT const kelp_plugin *kelp_plugin_query(uint32_t host_abi_version) {  \
        static const kelp_kernel_library_def def = {                                      \
            .struct_size = sizeof(kelp_kernel_library_def),                               \
            .kernel_count = (uint32_t)(sizeof(kernel_array) / sizeof((kernel_array)[0])), \
            .kernels = (kernel_array),                                                    \
            __VA_ARGS__};                                                                 \
        static const kelp_plugin plugin = {.magic = KELP_PLUGIN_MAGIC,                    \
                                           .abi_version = KELP_PLUGIN_ABI_VERSION,        \
                                           .struct_size = sizeof(kelp_plugin),            \
                                           .name = (library_name),                        \
                                           .kernels = &def};                              \
        return host_abi_version >= KELP_PLUGIN_ABI_VERSION ? &plugin : NULL;              \
    }

/* ---- For applications ---- */

/* A set of kernel libraries. */
typedef struct kelp_kernel_registry kelp_kernel_registry;

/* A library. Valid as long as its registry. */
typedef struct kelp_kernel_library kelp_kernel_library;

/* A kernel. Valid as long as its registry. */
typedef struct kelp_kernel kelp_kernel;

/* Options of a registry. */
typedef struct kelp_kernel_registry_options {
    uint32_t struct_size;     /* sizeof(kelp_kernel_registry_options) */
    int32_t threads;          /* number of threads for `parallel` [all CPUs] */
    kelp_allocator allocator; /* [C library heap] */
    /* Directories and .so files separated by colons [those in the environment variables
     * KELP_BACKEND_PATH and TRITON_BACKEND_PATH, then kelp/kernels in the library directory]. */
    const char *search_path;
    const kelp_device_config *configs; /* devices, passed to `initialize` [one CPU] */
    size_t config_count;               /* number of devices */
    /* receives messages of kernels and of the registry, from any thread [none] */
    void (*log)(void *userp, int level, const char *text);
    void *log_userp; /* passed to `log` */
} kelp_kernel_registry_options;

/* Creates a registry. `options` may be NULL. The caller releases it. */
KELP_API kelp_status *kelp_kernel_registry_create(const kelp_kernel_registry_options *options,
                                                  kelp_kernel_registry **out) KELP_MUST_USE;

/* Adds a reference and returns `registry`. */
KELP_API kelp_kernel_registry *kelp_kernel_registry_retain(kelp_kernel_registry *registry);

/* Drops a reference. With the last reference, finalizes the libraries, the newest first, and frees
 * the registry; the code of the libraries stays mapped. NULL is allowed. */
KELP_API void kelp_kernel_registry_release(kelp_kernel_registry *registry);

/* Opens a library by name, or by file name if `name` contains a '/'. The first call for a library
 * loads and initializes it. Fails with NOT_FOUND; the message lists the paths that were tried and
 * why each was rejected. */
KELP_API kelp_status *kelp_kernel_registry_open(kelp_kernel_registry *registry, const char *name,
                                                kelp_kernel_library **out) KELP_MUST_USE;

/* Opens a library like kelp_kernel_registry_open and calls `tried` (may be NULL) for each file
 * that was rejected, in order, with the reason (borrowed). `tried` runs on the calling thread and
 * must not use the registry. */
KELP_API kelp_status *
kelp_kernel_registry_search(kelp_kernel_registry *registry, const char *name,
                            void (*tried)(void *userp, const char *path, const kelp_status *why),
                            void *userp, kelp_kernel_library **out) KELP_MUST_USE;

/* Creates an empty library for functions registered by address. Fails with ALREADY_EXISTS if the
 * name is taken. */
KELP_API kelp_status *kelp_kernel_registry_add(kelp_kernel_registry *registry, const char *name,
                                               kelp_kernel_library **out) KELP_MUST_USE;

/* Returns the number of open libraries. */
KELP_API size_t kelp_kernel_registry_count(kelp_kernel_registry *registry);

/* Returns an open library, or NULL if `index` is out of range. */
KELP_API kelp_kernel_library *kelp_kernel_registry_at(kelp_kernel_registry *registry, size_t index);

/* Opens every library in the directories of the search path and returns the number of open
 * libraries. Failures are logged. */
KELP_API size_t kelp_kernel_registry_scan(kelp_kernel_registry *registry);

/* Returns the name. */
KELP_API const char *kelp_kernel_library_name(const kelp_kernel_library *library);

/* Returns the file name; "" for a library without a file. */
KELP_API const char *kelp_kernel_library_path(const kelp_kernel_library *library);

/* Returns the name of a supported device, or NULL if `index` is out of range. */
KELP_API const char *kelp_kernel_library_device(const kelp_kernel_library *library, size_t index);

/* Returns the number of kernels. */
KELP_API size_t kelp_kernel_library_count(const kelp_kernel_library *library);

/* Returns a kernel, or NULL if `index` is out of range. */
KELP_API const kelp_kernel *kelp_kernel_library_at(const kelp_kernel_library *library,
                                                   size_t index);

/* Finds a kernel by name. A function that is found only by get_function_ptr becomes a kernel
 * without a signature. Fails with NOT_FOUND; the message lists the kernels. */
KELP_API kelp_status *kelp_kernel_library_find(kelp_kernel_library *library, const char *name,
                                               const kelp_kernel **out) KELP_MUST_USE;

/* Returns the address of a function (see get_function_ptr), or NULL. */
KELP_API void *kelp_kernel_library_function(kelp_kernel_library *library, const char *name);

/* Registers a function by address as a kernel. The function must stay valid as long as the
 * registry. If `with_context` is true, its first parameter is the context. Its other parameters are
 * those of the signature: tensors as DLTensor pointers, scalars as the C types of the signature.
 * Without a signature (NULL), integers are passed as int64_t and floats as double. Fails with
 * ALREADY_EXISTS if the name is taken and INVALID_ARGUMENT if the signature is malformed. */
KELP_API kelp_status *kelp_kernel_library_register(kelp_kernel_library *library, const char *name,
                                                   void *function, const char *signature,
                                                   bool with_context,
                                                   const kelp_kernel **out) KELP_MUST_USE;

/* Adds a kernel of the application, defined as in a library. Copies `def` and its strings except
 * `summary`, which must outlive the registry. Fails with ALREADY_EXISTS if the name is taken and
 * INVALID_ARGUMENT if the definition is malformed. */
KELP_API kelp_status *kelp_kernel_library_define(kelp_kernel_library *library,
                                                 const kelp_kernel_def *def,
                                                 const kelp_kernel **out) KELP_MUST_USE;

/* Returns the name. */
KELP_API const char *kelp_kernel_name(const kelp_kernel *kernel);

/* Returns the signature; "" if there is none. */
KELP_API const char *kelp_kernel_signature(const kelp_kernel *kernel);

/* Returns the summary; "" if there is none. */
KELP_API const char *kelp_kernel_summary(const kelp_kernel *kernel);

/* Returns bits of KELP_KERNEL_*; 0 for a bare function. */
KELP_API uint32_t kelp_kernel_flags(const kelp_kernel *kernel);

/* Direction of a parameter. */
typedef enum kelp_param_direction {
    KELP_PARAM_IN = 0,   /* read */
    KELP_PARAM_OUT = 1,  /* written */
    KELP_PARAM_INOUT = 2 /* read and written */
} kelp_param_direction;

/* A parameter of a signature. */
typedef struct kelp_kernel_param {
    const char *name;               /* name */
    kelp_arg_kind kind;             /* kind */
    kelp_param_direction direction; /* direction */
    /* type of the elements or of the scalar; KELP_DTYPE_INVALID for `any` and for a letter */
    kelp_dtype dtype;
    bool optional; /* may be omitted: marked optional, or has a default */
} kelp_kernel_param;

/* Returns the number of parameters, or -1 without a signature. */
KELP_API int32_t kelp_kernel_param_count(const kelp_kernel *kernel);

/* Returns a parameter, or a zeroed struct with name "" if `index` is out of range. */
KELP_API kelp_kernel_param kelp_kernel_param_at(const kelp_kernel *kernel, int32_t index);

/* Shape of a tensor parameter as the signature gives it. */
typedef struct kelp_kernel_shape {
    /* number of dimensions below; -1 for a scalar and for an `index` out of range */
    int32_t rank;
    bool leading;                     /* true if the shape begins with `...` */
    const char *leading_name;         /* name in `...NAME`, or NULL */
    int64_t extents[KELP_MAX_RANK];   /* dimensions; -1 for a name and for `?` */
    const char *names[KELP_MAX_RANK]; /* names of the dimensions, or NULL */
} kelp_kernel_shape;

/* Returns the shape of a parameter. */
KELP_API kelp_kernel_shape kelp_kernel_param_shape(const kelp_kernel *kernel, int32_t index);

/* State that successive calls share: scratch memory, a device and owned resources. */
typedef struct kelp_kernel_session kelp_kernel_session;

/* Creates a session and retains the registry. `config` NULL means the CPU. */
KELP_API kelp_status *kelp_kernel_session_create(kelp_kernel_registry *registry,
                                                 const kelp_device_config *config,
                                                 kelp_kernel_session **out) KELP_MUST_USE;

/* Waits for the call in flight, releases the resources of kelp_kernel_context.own, the newest
 * first, and destroys the session. NULL is allowed. */
KELP_API void kelp_kernel_session_destroy(kelp_kernel_session *session);

/* Returns the context that kernels of this session receive, valid as long as the session. */
KELP_API const kelp_kernel_context *kelp_kernel_session_context(kelp_kernel_session *session);

/* Checks the arguments, runs the kernel and waits until it is done. Tensors must be on the
 * session's device. Does not allocate once calls of these sizes have been made. Fails with
 * INVALID_ARGUMENT, before it runs the kernel, if an argument does not match the signature; the
 * message names the parameter, the expected value and the actual one. Fails with
 * FAILED_PRECONDITION if a call of the session is in flight, and with the code of the kernel. */
KELP_API kelp_status *kelp_kernel_call(const kelp_kernel *kernel, kelp_kernel_session *session,
                                       const kelp_kernel_arg *args, int32_t count) KELP_MUST_USE;

/* Computes the types and shapes of the tensors that the kernel would write, without calling it.
 * `args` are those of a call; tensors marked `out` are ignored, and an integer that is the size of
 * a dimension may be omitted (kind 0) if a tensor determines it. `out_tensors` has one entry per
 * written tensor, in the order of the signature, with NULL data. Fails with INVALID_ARGUMENT if the
 * arguments do not determine a shape, and FAILED_PRECONDITION if the kernel has no signature. */
KELP_API kelp_status *kelp_kernel_infer_shapes(const kelp_kernel *kernel,
                                               const kelp_kernel_arg *args, int32_t count,
                                               kelp_tensor *out_tensors) KELP_MUST_USE;

/* Starts a kernel without waiting for its asynchronous work. Arguments must stay valid until
 * `event` (may be NULL) is done; then call kelp_kernel_session_result. A kernel that is not
 * asynchronous has run when this function returns. If the kernel fails before it returns, returns
 * that failure. Fails with FAILED_PRECONDITION if a call of the session is in flight. */
KELP_API kelp_status *kelp_kernel_submit(const kelp_kernel *kernel, kelp_kernel_session *session,
                                         const kelp_kernel_arg *args, int32_t count,
                                         kelp_event *event) KELP_MUST_USE;

/* Waits for the last submission and returns its result, which the caller frees. A second call
 * returns NULL. */
KELP_API kelp_status *kelp_kernel_session_result(kelp_kernel_session *session) KELP_MUST_USE;

/* ---- Kernels as ONNX operators ----
 *
 * A runtime uses the kernels of a library as operators if
 * - the library is loaded as a plug-in (kelp_runtime_load_plugin), or
 * - an engine is created from a model with a node whose domain no registered provider declares, and
 *   the environment variables KELP_BACKEND_PATH and TRITON_BACKEND_PATH list directories or files
 *   with a library of that name. No other directory is searched, and nothing is searched if both
 *   are unset. If kelp_engine_options.providers is set, only names in it are searched, and no
 *   domains. The runtime keeps the library; the reasons for each file that was rejected are part of
 *   the engine's failure. A domain that is not letters, digits, '_', '-' and '.' is not searched.
 *
 * The following function makes the operators for an application. */

/* See kelp/opset.h. */
struct kelp_opset_backend;

/* Returns an operator provider whose operators are the kernels of the library. Their domain has the
 * name of the library, version 1. In the order of the signature, the tensors that a kernel reads
 * are the inputs, the tensors that it writes are the outputs, and the scalars are attributes. Omits
 * kernels without a signature and kernels whose output shapes the signature does not determine.
 * Register the result with kelp_runtime_register_opset; it is valid as long as the registry. Fails
 * with NOT_FOUND if no kernel is suitable. */
KELP_API kelp_status *kelp_kernel_library_opset(kelp_kernel_library *library,
                                                const struct kelp_opset_backend **out_backend,
                                                void **out_self) KELP_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
