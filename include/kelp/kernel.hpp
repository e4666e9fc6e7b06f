/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/kernel.hpp: a library of kernels written as a C++ class.
 *
 *     #include <kelp/kernel.hpp>
 *     class Mine : public triton::runtime::Backend { … };
 *     extern "C" triton::runtime::Backend *triton_backend_init() { return new Mine(); }
 *
 * Include it in one source of the library: it holds the entry point kelp_plugin_query, which asks
 * triton_backend_init for the backend once and turns its virtual functions into the tables of
 * kelp/kernel.h. Kernels are known by get_function_ptr alone and are called as they are: the
 * context's address first, then what the caller gives, tensors as DLTensor pointers, integers as
 * int64 and floats as double. Exceptions do not leave the library: initialize's text is its error.
 */
#ifndef KELP_KERNEL_HPP_
#define KELP_KERNEL_HPP_

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <kelp/kernel.h>

namespace triton {
namespace runtime {

using TritonContext = ::kelp_kernel_context;
using DLTensor = ::DLTensor;

struct DeviceConfig {
    std::string device; /* "cpu", … */
    int32_t id;
    void *stream;
};

class Backend {
  public:
    virtual ~Backend() = default;
    virtual std::string get_name() const = 0;
    virtual std::vector<std::string> get_supported_devices() const = 0;
    virtual void initialize(const std::vector<DeviceConfig> &configs) = 0;
    virtual void finalize() = 0;
    /* nullptr: there is no such function. */
    virtual void *get_function_ptr(const std::string &name) = 0;
};

}  // namespace runtime
}  // namespace triton

/* The library's factory, called once. */
extern "C" KELP_PLUGIN_EXPORT triton::runtime::Backend *triton_backend_init();

namespace kelp_kernel_detail {

struct holder {
    triton::runtime::Backend *backend = nullptr;
    std::string name;
    std::vector<std::string> device_names;
    std::vector<const char *> devices;
    kelp_kernel_library_def def = {};
    kelp_plugin plugin = {};
};

inline holder &the_holder() {
    static holder one;
    return one;
}

inline kelp_code initialize(const kelp_device_config *configs, size_t count, void **out_state,
                            char *error, size_t capacity) {
    try {
        std::vector<triton::runtime::DeviceConfig> list;
        for (size_t i = 0; i < count; i++)
            list.push_back({configs[i].device, configs[i].id, configs[i].stream});
        the_holder().backend->initialize(list);
        *out_state = &the_holder();
        return KELP_OK;
    } catch (const std::exception &problem) {
        std::snprintf(error, capacity, "%s", problem.what());
    } catch (...) {
        std::snprintf(error, capacity, "an exception that is no std::exception");
    }
    return KELP_INTERNAL;
}

inline void finalize(void *state) {
    holder *one = static_cast<holder *>(state);
    try {
        one->backend->finalize();
    } catch (...) { /* nobody is left to be told */
    }
    delete one->backend;
    one->backend = nullptr;
}

inline void *get_function_ptr(void *state, const char *name) {
    try {
        return static_cast<holder *>(state)->backend->get_function_ptr(name);
    } catch (...) {
        return nullptr;
    }
}

inline const kelp_plugin *query(uint32_t host_abi_version) {
    holder &one = the_holder();
    if (host_abi_version < KELP_PLUGIN_ABI_VERSION)
        return nullptr;
    try {
        if (one.backend == nullptr)
            one.backend = triton_backend_init();
        if (one.backend == nullptr)
            return nullptr;
        one.name = one.backend->get_name();
        one.device_names = one.backend->get_supported_devices();
    } catch (...) {
        return nullptr;
    }
    one.devices.clear();
    for (const std::string &device : one.device_names)
        one.devices.push_back(device.c_str());
    one.devices.push_back(nullptr);
    one.def.struct_size = sizeof one.def;
    one.def.devices = one.devices.data();
    one.def.initialize = initialize;
    one.def.finalize = finalize;
    one.def.get_function_ptr = get_function_ptr;
    one.plugin.magic = KELP_PLUGIN_MAGIC;
    one.plugin.abi_version = KELP_PLUGIN_ABI_VERSION;
    one.plugin.struct_size = sizeof one.plugin;
    one.plugin.name = one.name.c_str();
    one.plugin.kernels = &one.def;
    return &one.plugin;
}

}  // namespace kelp_kernel_detail

extern "C" KELP_PLUGIN_EXPORT __attribute__((used)) inline const kelp_plugin *
kelp_plugin_query(uint32_t host_abi_version) {
    return kelp_kernel_detail::query(host_abi_version);
}

#endif
