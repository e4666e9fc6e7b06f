/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/kernel.hpp: a library of kernels as a C++ class.
 *
 * Derive from triton::runtime::Backend and define the factory
 *
 *     extern "C" triton::runtime::Backend *triton_backend_init() { return new MyBackend(); }
 *
 * Including this header in the file that defines the factory is all that makes the library one that
 * Kelp loads: the header brings kelp_plugin_query (kelp/plugin.h) with it, which calls the factory
 * once and forwards to the object. Nothing is linked. A kernel is a function of the form
 * void(TritonContext *, DLTensor *…, scalars…); it is found by get_function_ptr. What the object
 * throws from its virtual functions becomes a failure with the exception's words; a kernel itself
 * must not throw, because it is called by C.
 *
 * The object is deleted when the registry that loaded it goes, after finalize(). A second registry
 * in the same process has an object of its own.
 *
 * C++17 or newer. Threads: the factory, initialize and finalize are called once, by one thread at a
 * time; get_function_ptr from any thread, one at a time.
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

using ::DLDataType;
using ::DLDevice;
using ::DLTensor;

/* What a kernel is given first: scratch memory, parallel for, log (kelp/kernel.h). */
using TritonContext = ::kelp_kernel_context;

/* A device that the library will be used on. */
struct DeviceConfig {
    std::string device;     /* "cpu", "cuda", … */
    int device_id = 0;      /* which of them */
    void *stream = nullptr; /* its stream, or nullptr */
};

class Backend {
  public:
    virtual ~Backend() = default;
    /* The name that users ask for. Called once. */
    virtual std::string get_name() const = 0;
    /* "cpu", "cuda", …. Called once. */
    virtual std::vector<std::string> get_supported_devices() const = 0;
    /* Before any kernel runs. Throw to refuse. */
    virtual void initialize(const std::vector<DeviceConfig> &configs) = 0;
    /* After the last kernel ran; only when initialize did not throw. */
    virtual void finalize() = 0;
    /* The kernel's address, or nullptr when there is none of that name. */
    virtual void *get_function_ptr(const std::string &fn_name) = 0;
};

} // namespace runtime
} // namespace triton

/* The library's to define. */
extern "C" __attribute__((visibility("default"))) triton::runtime::Backend *triton_backend_init();

/* Internal to each file that includes this: inline functions and their statics would be one for the
 * whole process, and every library would find the tables of the first. */
namespace kelp {
namespace {

/* What the C tables point to; made by the first query and kept as long as the library. */
struct plugin_tables {
    /* Made to be asked for its name; the first registry that initializes takes it. */
    std::atomic<triton::runtime::Backend *> first{nullptr};
    std::string name;
    std::vector<std::string> devices;
    std::vector<const char *> device_names;
    ::kelp_kernel_library_def def{};
    ::kelp_plugin plugin{};
};

plugin_tables *plugin_make_tables();

/* nullptr when the factory failed. */
plugin_tables *plugin_get_tables() {
    static plugin_tables *const the_tables = plugin_make_tables();
    return the_tables;
}

void plugin_say(char *error, size_t capacity, const char *what) {
    if (capacity > 0)
        std::snprintf(error, capacity, "%s", what);
}

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

void plugin_finalize(void *state) {
    auto *backend = static_cast<triton::runtime::Backend *>(state);
    try {
        backend->finalize();
    } catch (...) { /* nobody is left to be told */
    }
    delete backend;
}

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

/* Weak, so that several files of a library may include this header. Not inline: it must be there
 * although nothing in the library calls it. */
extern "C" __attribute__((weak, visibility("default"))) const kelp_plugin *
kelp_plugin_query(uint32_t host_abi_version) {
    if (host_abi_version < KELP_PLUGIN_ABI_VERSION || kelp::plugin_get_tables() == nullptr)
        return nullptr;
    return &kelp::plugin_get_tables()->plugin;
}

#endif
