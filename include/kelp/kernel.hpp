/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/kernel.hpp: a library of kernels as a C++ class.
 *
 * Derive from triton::runtime::Backend and define the factory
 *
 *     extern "C" triton::runtime::Backend *triton_backend_init() { return new MyBackend(); }
 *
 * in one file that includes this header. The header defines kelp_plugin_query (kelp/plugin.h),
 * which calls the factory and forwards to the object, so that Kelp can load the library. Nothing is
 * linked. An exception thrown by a virtual function becomes a failure with its message.
 *
 * There are two ways to offer a kernel:
 *
 * 1. get_kernels() returns typed kernels. The signature (kelp/kernel.h) follows from the types of
 * the function's parameters, so that Kelp checks the arguments of each call:
 *
 *        static void scale(kelp::out<float> y, kelp::in<float> x, float factor);
 *
 *        std::vector<Kernel> get_kernels() override {
 *            return {kernel<scale>("scale", "y[...s], x[...s], factor")};
 *        }
 *
 *    An exception thrown by the function is a failure of the call with its message:
 *    std::invalid_argument has the code INVALID_ARGUMENT, std::out_of_range OUT_OF_RANGE,
 *    std::bad_alloc RESOURCE_EXHAUSTED, and others INTERNAL.
 *
 * 2. get_function_ptr() returns the address of a function void(TritonContext *, DLTensor *…,
 *    scalars…). Its arguments are not checked, and it must not throw.
 *
 * The object is deleted, after finalize(), when the registry that loaded it is destroyed. A second
 * registry in the same process has its own object.
 *
 * Thread safety: the factory, get_kernels, initialize and finalize are called by one thread at a
 * time, once per object; get_function_ptr by any thread, one at a time; kernels by any number of
 * threads. Requires C++17.
 */
#ifndef KELP_KERNEL_HPP_
#define KELP_KERNEL_HPP_

#include <kelp/kernel.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace kelp {

/* The name of an element type in signatures. Not defined for other types. */
template <class T> struct element_type;
template <> struct element_type<float> { static constexpr const char *name = "float32"; };
template <> struct element_type<double> { static constexpr const char *name = "float64"; };
template <> struct element_type<bool> { static constexpr const char *name = "bool"; };
template <> struct element_type<int8_t> { static constexpr const char *name = "int8"; };
template <> struct element_type<int16_t> { static constexpr const char *name = "int16"; };
template <> struct element_type<int32_t> { static constexpr const char *name = "int32"; };
template <> struct element_type<int64_t> { static constexpr const char *name = "int64"; };
template <> struct element_type<uint8_t> { static constexpr const char *name = "uint8"; };
template <> struct element_type<uint16_t> { static constexpr const char *name = "uint16"; };
template <> struct element_type<uint32_t> { static constexpr const char *name = "uint32"; };
template <> struct element_type<uint64_t> { static constexpr const char *name = "uint64"; };

/* Accesses the elements of a tensor without gaps. Borrowed during the call. */
template <class T> class span {
  public:
    explicit span(DLTensor *tensor) : tensor_(tensor) {
        for (int32_t i = 0; i < tensor->ndim; i++)
            size_ *= tensor->shape[i];
    }
    /* Returns the first element. */
    T *data() const {
        return reinterpret_cast<T *>(static_cast<char *>(tensor_->data) + tensor_->byte_offset);
    }
    T *begin() const {
        return data();
    }
    T *end() const {
        return data() + size_;
    }
    /* Returns an element, counted over all dimensions. The index is not checked. */
    T &operator[](int64_t index) const {
        return data()[index];
    }
    /* Returns the number of elements. */
    int64_t size() const {
        return size_;
    }
    /* Returns the number of dimensions. */
    int32_t rank() const {
        return tensor_->ndim;
    }
    /* Returns the size of a dimension. The axis is not checked. */
    int64_t dim(int32_t axis) const {
        return tensor_->shape[axis];
    }
    /* Returns the description of the tensor. */
    const DLTensor *tensor() const {
        return tensor_;
    }

  private:
    DLTensor *tensor_;
    int64_t size_ = 1;
};

/* Parameters of typed kernels: a tensor of T that is read, written, or read and written. */
template <class T> struct in : span<const T> { using span<const T>::span; };
template <class T> struct out : span<T> { using span<T>::span; };
template <class T> struct inout : span<T> { using span<T>::span; };

} // namespace kelp

namespace triton {
namespace runtime {

/* The DLPack types that kernels use (kelp/dlpack.h). */
using ::DLDataType;
using ::DLDevice;
using ::DLTensor;

/* First argument of a kernel: scratch memory, parallel loops, log (kelp/kernel.h). */
using TritonContext = ::kelp_kernel_context;

/* A device that the library will run on. */
struct DeviceConfig {
    std::string device;     /* "cpu", "cuda", … */
    int device_id = 0;      /* index of the device */
    void *stream = nullptr; /* stream of the device, or nullptr */
};

/* A typed kernel; see `kernel` below. */
struct Kernel {
    std::string name;          /* unique within the library */
    std::string signature;     /* see kelp/kernel.h */
    ::kelp_kernel_fn function; /* converts the arguments and catches exceptions */
    std::string summary;       /* one line for people */
};

/* Base class of a library of kernels. */
class Backend {
  public:
    /* Destroys the object, after finalize(). */
    virtual ~Backend() = default;
    /* Returns the name of the library. Called once. */
    virtual std::string get_name() const = 0;
    /* Returns the supported devices: "cpu", "cuda", …. Called once. */
    virtual std::vector<std::string> get_supported_devices() const {
        return {"cpu"};
    }
    /* Initializes the library before any kernel runs. Throws to reject the devices. */
    virtual void initialize(const std::vector<DeviceConfig> &) {
    }
    /* Cleans up after the last kernel. Called only if initialize succeeded. */
    virtual void finalize() {
    }
    /* Returns the typed kernels. Called once, on the first object of the library. */
    virtual std::vector<Kernel> get_kernels() {
        return {};
    }
    /* Returns the address of an untyped kernel, or nullptr if there is none of this name. */
    virtual void *get_function_ptr(const std::string &) {
        return nullptr;
    }
};

} // namespace runtime
} // namespace triton

/* ---- Typed kernels ---- */

namespace kelp {
namespace {

/* How a parameter type appears in a signature, and how an argument is converted to it. */
template <class T> struct parameter {
    static_assert(
        !std::is_same_v<T, T>,
        "a parameter of a typed kernel is kelp::in<T>, kelp::out<T>, kelp::inout<T>, const "
        "DLTensor *, DLTensor *, bool, a 32- or 64-bit integer, float, double, const char * "
        "or std::string");
};
template <class T> struct tensor_parameter {
    static constexpr bool is_tensor = true;
    static T get(const ::kelp_kernel_arg &arg) {
        return T(arg.as.tensor);
    }
};
template <class T> struct parameter<in<T>> : tensor_parameter<in<T>> {
    static constexpr const char *prefix = "", *type = element_type<T>::name;
};
template <class T> struct parameter<out<T>> : tensor_parameter<out<T>> {
    static constexpr const char *prefix = "out ", *type = element_type<T>::name;
};
template <class T> struct parameter<inout<T>> : tensor_parameter<inout<T>> {
    static constexpr const char *prefix = "inout ", *type = element_type<T>::name;
};
template <> struct parameter<const DLTensor *> : tensor_parameter<const DLTensor *> {
    static constexpr const char *prefix = "", *type = "any";
};
template <> struct parameter<DLTensor *> : tensor_parameter<DLTensor *> {
    static constexpr const char *prefix = "out ", *type = "any";
};
template <class T> struct number_parameter {
    static constexpr bool is_tensor = false;
    static constexpr const char *prefix = "", *type = element_type<T>::name;
    static T get(const ::kelp_kernel_arg &arg) {
        return arg.kind == ::KELP_ARG_FLOAT ? static_cast<T>(arg.as.f) : static_cast<T>(arg.as.i);
    }
};
template <> struct parameter<bool> : number_parameter<bool> {};
template <> struct parameter<int32_t> : number_parameter<int32_t> {};
template <> struct parameter<int64_t> : number_parameter<int64_t> {};
template <> struct parameter<uint32_t> : number_parameter<uint32_t> {};
template <> struct parameter<uint64_t> : number_parameter<uint64_t> {};
template <> struct parameter<float> : number_parameter<float> {};
template <> struct parameter<double> : number_parameter<double> {};
template <> struct parameter<const char *> {
    static constexpr bool is_tensor = false;
    static constexpr const char *prefix = "", *type = "string";
    static const char *get(const ::kelp_kernel_arg &arg) {
        return arg.as.s;
    }
};
template <> struct parameter<std::string> : parameter<const char *> {};

/* Returns the words of a list at its commas, without spaces; commas in brackets do not count. */
inline std::vector<std::string> split_names(const std::string &text) {
    std::vector<std::string> words(1);
    int depth = 0;
    for (char c : text) {
        depth += c == '[' ? 1 : c == ']' ? -1 : 0;
        if (c == ',' && depth == 0)
            words.emplace_back();
        else if (c != ' ' || depth > 0)
            words.back() += c;
    }
    if (words.size() == 1 && words[0].empty())
        words.clear();
    return words;
}

/* Returns the signature of parameters with these types. Without names, they are a0, a1, …. */
template <class... Parameters> std::string signature_of(const std::string &names) {
    std::vector<std::string> words = split_names(names);
    std::string signature;
    size_t index = 0;
    if (!names.empty() && words.size() != sizeof...(Parameters))
        throw std::invalid_argument("\"" + names + "\" names " + std::to_string(words.size()) +
                                    " parameters: the function has " +
                                    std::to_string(sizeof...(Parameters)));
    [[maybe_unused]] auto add = [&](const char *prefix, const char *type, bool is_tensor) {
        std::string word = words.empty() ? "a" + std::to_string(index) : words[index];
        size_t bracket = word.find('[');
        signature += index++ > 0 ? ", " : "";
        signature += prefix + word.substr(0, bracket) + ": " + type;
        if (bracket != std::string::npos)
            signature += word.substr(bracket);
        else if (is_tensor)
            signature += "[...]";
    };
    (add(parameter<Parameters>::prefix, parameter<Parameters>::type,
         parameter<Parameters>::is_tensor),
     ...);
    return signature;
}

/* Runs `call` and turns an exception into a failure. */
template <class Call>::kelp_code catch_all(const ::kelp_kernel_context *context, const Call &call) {
    try {
        call();
        return ::KELP_OK;
    } catch (const std::bad_alloc &) {
        context->fail(context, "out of memory");
        return ::KELP_RESOURCE_EXHAUSTED;
    } catch (const std::invalid_argument &thrown) {
        context->fail(context, thrown.what());
        return ::KELP_INVALID_ARGUMENT;
    } catch (const std::out_of_range &thrown) {
        context->fail(context, thrown.what());
        return ::KELP_OUT_OF_RANGE;
    } catch (const std::exception &thrown) {
        context->fail(context, thrown.what());
    } catch (...) {
        context->fail(context, "it threw something that is no std::exception");
    }
    return ::KELP_INTERNAL;
}

/* A function as a kelp_kernel_fn, and its signature. */
template <auto function, class Type = decltype(function)> struct typed_kernel {
    static_assert(!std::is_same_v<Type, Type>, "a typed kernel is a function that returns void");
};
template <auto function, class... Parameters>
struct typed_kernel<function, void (*)(Parameters...)> {
    static std::string signature(const std::string &names) {
        return signature_of<std::decay_t<Parameters>...>(names);
    }
    static ::kelp_code run(const ::kelp_kernel_context *context, const ::kelp_kernel_arg *args) {
        return catch_all(context, [&] { call(args, std::index_sequence_for<Parameters...>()); });
    }
    template <size_t... index>
    static void call(const ::kelp_kernel_arg *args, std::index_sequence<index...>) {
        (void)args;
        function(parameter<std::decay_t<Parameters>>::get(args[index])...);
    }
};
template <auto function, class... Parameters>
struct typed_kernel<function, void (*)(triton::runtime::TritonContext *, Parameters...)> {
    static std::string signature(const std::string &names) {
        return signature_of<std::decay_t<Parameters>...>(names);
    }
    static ::kelp_code run(const ::kelp_kernel_context *context, const ::kelp_kernel_arg *args) {
        return catch_all(context, [&] {
            call(const_cast<::kelp_kernel_context *>(context), args,
                 std::index_sequence_for<Parameters...>());
        });
    }
    template <size_t... index>
    static void call(::kelp_kernel_context *context, const ::kelp_kernel_arg *args,
                     std::index_sequence<index...>) {
        (void)args;
        function(context, parameter<std::decay_t<Parameters>>::get(args[index])...);
    }
};

} // namespace
} // namespace kelp

namespace triton {
namespace runtime {
namespace {

/* Returns a typed kernel for get_kernels. `function` returns void. Its first parameter may be a
 * TritonContext *. The others are tensors (kelp::in<T>, kelp::out<T>, kelp::inout<T>, const
 * DLTensor * for an input and DLTensor * for an output of any type) and scalars (bool, 32- and
 * 64-bit integers, float, double, const char *, std::string). `names` lists the names of the
 * parameters, and after the name of a tensor its shape in brackets, both as in signatures: "y[h,
 * w], x[h, w], radius". A tensor without brackets may have any shape. Without `names`, all may
 * have. Throws std::invalid_argument if the number of names is wrong. The library fails to load if
 * a name or shape is malformed. */
template <auto function>
Kernel kernel(std::string name, const std::string &names = "", std::string summary = "") {
    using typed = ::kelp::typed_kernel<function>;
    return {std::move(name), typed::signature(names), typed::run, std::move(summary)};
}

} // namespace
} // namespace runtime
} // namespace triton

/* Creates the object. Defined by the library. */
extern "C" __attribute__((visibility("default"))) triton::runtime::Backend *triton_backend_init();

/* Internal linkage: the statics of inline functions would be shared by all libraries of a process.
 */
namespace kelp {
namespace {

/* Owns what the C tables point to. Created by the first query and never freed. */
struct plugin_tables {
    /* The object that was asked for its name; the first registry that initializes takes it. */
    std::atomic<triton::runtime::Backend *> first{nullptr};
    std::string name;
    std::vector<std::string> devices;
    std::vector<const char *> device_names;
    std::vector<triton::runtime::Kernel> kernels;
    std::vector<::kelp_kernel_def> kernel_defs;
    std::string error; /* what get_kernels threw */
    ::kelp_kernel_library_def def{};
    ::kelp_plugin plugin{};
};

/* Creates the tables. Returns nullptr if the factory fails. */
plugin_tables *plugin_make_tables();

/* Returns the tables, or nullptr if the factory failed. */
plugin_tables *plugin_get_tables() {
    static plugin_tables *const the_tables = plugin_make_tables();
    return the_tables;
}

/* Writes a message, truncated to `capacity`. */
void plugin_say(char *error, size_t capacity, const char *what) {
    if (capacity > 0)
        std::snprintf(error, capacity, "%s", what);
}

/* Implements kelp_kernel_library_def.initialize. */
::kelp_code plugin_initialize(const ::kelp_device_config *configs, size_t config_count,
                              void **out_state, char *error, size_t error_capacity) {
    const plugin_tables *tables = plugin_get_tables();
    if (!tables->error.empty()) {
        plugin_say(error, error_capacity, tables->error.c_str());
        return ::KELP_INVALID_ARGUMENT;
    }
    try {
        std::unique_ptr<triton::runtime::Backend> backend(
            plugin_get_tables()->first.exchange(nullptr));
        if (!backend)
            backend.reset(triton_backend_init());
        if (!backend) {
            plugin_say(error, error_capacity, "triton_backend_init returned no backend");
            return ::KELP_INTERNAL;
        }
        std::vector<triton::runtime::DeviceConfig> given(config_count);
        for (size_t i = 0; i < config_count; i++) {
            given[i].device = configs[i].device;
            given[i].device_id = configs[i].id;
            given[i].stream = configs[i].stream;
        }
        backend->initialize(given);
        *out_state = backend.release();
        return ::KELP_OK;
    } catch (const std::exception &thrown) {
        plugin_say(error, error_capacity, thrown.what());
    } catch (...) {
        plugin_say(error, error_capacity, "initialize threw something that is no std::exception");
    }
    return ::KELP_INTERNAL;
}

/* Implements kelp_kernel_library_def.finalize. */
void plugin_finalize(void *state) {
    auto *backend = static_cast<triton::runtime::Backend *>(state);
    try {
        backend->finalize();
    } catch (...) { /* there is no caller left to report to */
    }
    delete backend;
}

/* Implements kelp_kernel_library_def.get_function_ptr. */
void *plugin_function(void *state, const char *name) {
    try {
        return static_cast<triton::runtime::Backend *>(state)->get_function_ptr(name);
    } catch (...) {
        return nullptr;
    }
}

/* Adds the typed kernels. If get_kernels throws, initialization reports it. */
void plugin_add_kernels(triton::runtime::Backend &backend, plugin_tables *tables) {
    try {
        tables->kernels = backend.get_kernels();
    } catch (const std::exception &thrown) {
        tables->error = std::string("get_kernels threw: ") + thrown.what();
    } catch (...) {
        tables->error = "get_kernels threw something that is no std::exception";
    }
    for (const triton::runtime::Kernel &kernel : tables->kernels) {
        ::kelp_kernel_def def{};
        def.name = kernel.name.c_str();
        def.signature = kernel.signature.c_str();
        def.fn = kernel.function;
        def.summary = kernel.summary.c_str();
        tables->kernel_defs.push_back(def);
    }
}

plugin_tables *plugin_make_tables() {
    try {
        std::unique_ptr<triton::runtime::Backend> first(triton_backend_init());
        if (!first)
            return nullptr;
        auto made = std::make_unique<plugin_tables>();
        made->name = first->get_name();
        made->devices = first->get_supported_devices();
        for (const std::string &device : made->devices)
            made->device_names.push_back(device.c_str());
        made->device_names.push_back(nullptr);
        plugin_add_kernels(*first, made.get());
        made->def.struct_size = sizeof made->def;
        made->def.kernel_count = static_cast<uint32_t>(made->kernel_defs.size());
        made->def.kernels = made->kernel_defs.data();
        made->def.devices = made->device_names.data();
        made->def.initialize = plugin_initialize;
        made->def.finalize = plugin_finalize;
        made->def.get_function_ptr = plugin_function;
        made->plugin.magic = KELP_PLUGIN_MAGIC;
        made->plugin.abi_version = KELP_PLUGIN_ABI_VERSION;
        made->plugin.struct_size = sizeof made->plugin;
        made->plugin.name = made->name.c_str();
        made->plugin.kernels = &made->def;
        made->first = first.release();
        return made.release();
    } catch (...) {
        return nullptr;
    }
}

} // namespace
} // namespace kelp

/* Returns the table of the library. Weak, so that several files of a library may include this
 * header; not inline, because nothing in the library calls it. */
extern "C" __attribute__((weak, visibility("default"))) const kelp_plugin *
kelp_plugin_query(uint32_t host_abi_version) {
    if (host_abi_version < KELP_PLUGIN_ABI_VERSION || kelp::plugin_get_tables() == nullptr)
        return nullptr;
    return &kelp::plugin_get_tables()->plugin;
}

#endif
