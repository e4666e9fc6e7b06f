#include <triton/runtime/backend.h>
#include <triton/runtime/triton.h>
#include <vector>
#include <string>
#include <iostream>
namespace triton {
namespace runtime {
class CustomAddBackend : public Backend {
public:
std::string get_name() const override { return "custom_add"; }
std::vector<std::string> get_supported_devices() const override {
return {"cpu"}; // Or other devices like "cuda" if you implement CUDA kernels
}
void initialize(const std::vector<triton::runtime::DeviceConfig>& configs) override {
// Initialization logic, e.g., setting up device contexts
std::cout << "CustomAddBackend initialized." << std::endl;
}
void finalize() override {
// Cleanup logic
std::cout << "CustomAddBackend finalized." << std::endl;
}
void* get_function_ptr(const std::string& fn_name) override {
if (fn_name == "add") {
return reinterpret_cast<void*>(add_kernel);
}
return nullptr;
}
private:
static void add_kernel(triton::runtime::TritonContext* ctx,
triton::runtime::DLTensor* output,
const triton::runtime::DLTensor* input1,
const triton::runtime::DLTensor* input2,
uint32_t num_elements) {
// This is where your actual C++ tensor operation logic goes.
// For simplicity, we'll assume float inputs and outputs.
float* out_ptr = static_cast<float*>(output->data);
const float* in1_ptr = static_cast<const float*>(input1->data);
const float* in2_ptr = static_cast<const float*>(input2->data);
for (uint32_t i = 0; i < num_elements; ++i) {
out_ptr[i] = in1_ptr[i] + in2_ptr[i];
}
}
};
} // namespace runtime
} // namespace triton
// This is the entry point that Triton's runtime will look for.
extern "C" triton::runtime::Backend* triton_backend_init() {
return new triton::runtime::CustomAddBackend();
}
