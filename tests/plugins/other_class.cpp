// SPDX-License-Identifier: Apache-2.0
// A second library in C++, beside the example, whose initialize may throw.
#include <cstdlib>
#include <kelp/kernel.hpp>
#include <stdexcept>

namespace triton {
namespace runtime {

class OtherBackend : public Backend {
  public:
    std::string get_name() const override {
        return "other_class";
    }
    std::vector<std::string> get_supported_devices() const override {
        return {"cpu", "cuda"};
    }
    void initialize(const std::vector<DeviceConfig> &configs) override {
        if (configs.empty() || std::getenv("OTHER_CLASS_THROWS") != nullptr)
            throw std::runtime_error("no device is good enough");
    }
    void finalize() override {
    }
    void *get_function_ptr(const std::string &name) override {
        if (name == "throw")
            throw std::runtime_error("thrown away");
        return name == "nothing" ? reinterpret_cast<void *>(nothing) : nullptr;
    }

  private:
    static void nothing(TritonContext *) {
    }
};

} // namespace runtime
} // namespace triton

extern "C" triton::runtime::Backend *triton_backend_init() {
    return new triton::runtime::OtherBackend();
}
