/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/kernel.hpp: a library of kernels as a C++ class.
 *
 * Derive from triton::runtime::Backend and define the factory
 *
 *     extern "C" triton::runtime::Backend *triton_backend_init() { return new MyBackend(); }
 *
 * in one file that includes this header. The header defines kelp_plugin_query (kelp/plugin.h), which
 * calls the factory and forwards to the object, so that Kelp can load the library. Nothing is linked. A
 * kernel is a function of the form void(TritonContext *, DLTensor *…, scalars…); get_function_ptr finds
 * it. An exception thrown by a virtual function becomes a failure with its message. A kernel must not
 * throw, because it is called from C.
 *
 * The object is deleted, after finalize(), when the registry that loaded it is destroyed. A second
 * registry in the same process has its own object.
 *
 * Thread safety: the factory, initialize and finalize are called by one thread at a time, once per
 * object; get_function_ptr by any thread, one at a time. Requires C++17.
 */
#ifndef KELP_KERNEL_HPP_
#define KELP_KERNEL_HPP_

#include <kelp/kernel.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

/* Base class of a library of kernels. */
class Backend {
  public:
    /* Destroys the object, after finalize(). */
    virtual ~Backend() = default;
    /* Returns the name of the library. Called once. */
    virtual std::string get_name() const = 0;
    /* Returns the supported devices: "cpu", "cuda", …. Called once. */
    virtual std::vector<std::string> get_supported_devices() const = 0;
    /* Initializes the library before any kernel runs. Throws to reject the devices. */
    virtual void initialize(const std::vector<DeviceConfig> &configs) = 0;
    /* Cleans up after the last kernel. Called only if initialize succeeded. */
    virtual void finalize() = 0;
    /* Returns the address of a kernel, or nullptr if there is none of this name. */
    virtual void *get_function_ptr(const std::string &fn_name) = 0;
};

} // namespace runtime
} // namespace triton

/* Creates the object. Defined by the library. */
extern "C" __attribute__((visibility("default"))) triton::runtime::Backend *triton_backend_init();

/* Internal linkage: the statics of inline functions would be shared by all libraries of a process. */
namespace kelp {
namespace {

/* Owns what the C tables point to. Created by the first query and never freed. */
struct plugin_tables {
    /* The object that was asked for its name; the first registry that initializes takes it. */
    std::atomic<triton::runtime::Backend *> first{nullptr};
    std::string name;
    std::vector<std::string> devices;
    std::vector<const char *> device_names;
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
        made->def.struct_size = sizeof made->def;
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

/* Returns the table of the library. Weak, so that several files of a library may include this header;
 * not inline, because nothing in the library calls it. */
extern "C" __attribute__((weak, visibility("default"))) const kelp_plugin *
kelp_plugin_query(uint32_t host_abi_version) {
    if (host_abi_version < KELP_PLUGIN_ABI_VERSION || kelp::plugin_get_tables() == nullptr)
        return nullptr;
    return &kelp::plugin_get_tables()->plugin;
}

#endif
