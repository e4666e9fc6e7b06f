/* SPDX-License-Identifier: Apache-2.0 */
/* An element-wise addition as a C++ class: get_name, devices, initialize, finalize, and a function by name. */
#include <kelp/kernel.hpp>

#include <iostream>
#include <string>
#include <vector>

namespace triton {
namespace runtime {

class CustomAddBackend : public Backend {
  public:
    std::string get_name() const override { return "custom_add"; }

    std::vector<std::string> get_supported_devices() const override { return {"cpu"}; }

    void initialize(const std::vector<triton::runtime::DeviceConfig> &configs) override {
        std::clog << "CustomAddBackend initialized for " << configs.size() << " device.\n";
    }

    void finalize() override { std::clog << "CustomAddBackend finalized.\n"; }

    void *get_function_ptr(const std::string &fn_name) override {
        if (fn_name == "add")
            return reinterpret_cast<void *>(add_kernel);
        return nullptr;
    }

  private:
    static void add_kernel(triton::runtime::TritonContext *, triton::runtime::DLTensor *output,
                           const triton::runtime::DLTensor *input1,
                           const triton::runtime::DLTensor *input2, uint32_t num_elements) {
        float *out = static_cast<float *>(output->data);
        const float *in1 = static_cast<const float *>(input1->data);
        const float *in2 = static_cast<const float *>(input2->data);
        for (uint32_t i = 0; i < num_elements; ++i)
            out[i] = in1[i] + in2[i];
    }
};

}  // namespace runtime
}  // namespace triton

extern "C" triton::runtime::Backend *triton_backend_init() {
    return new triton::runtime::CustomAddBackend();
}
