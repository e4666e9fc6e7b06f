// SPDX-License-Identifier: Apache-2.0
// A class with typed kernels, one untyped kernel, and defaults for everything else.
#include <triton/runtime/backend.h>
#include <triton/runtime/triton.h>

#include <cstdlib>
#include <stdexcept>

namespace triton {
namespace runtime {

class TypedBackend : public Backend {
  public:
    std::string get_name() const override {
        return "typed_class";
    }
    std::vector<Kernel> get_kernels() override {
        const char *names = std::getenv("TYPED_CLASS_NAMES");
        return {
            kernel<scale>("scale", names != nullptr ? names : "y[...s], x[...s], factor",
                          "multiplies"),
            kernel<describe>("describe", "y[2], x[rows, columns]"),
            kernel<scalars>("scalars"),
            kernel<fail>("fail", "kind"),
            kernel<nothing>("nothing"),
            kernel<increment>("increment", "x"),
        };
    }
    void *get_function_ptr(const std::string &name) override {
        return name == "untyped" ? reinterpret_cast<void *>(nothing) : nullptr;
    }

  private:
    static void scale(kelp::out<float> y, const kelp::in<float> &x, float factor) {
        for (int64_t i = 0; i < y.size(); i++)
            y[i] = factor * x[i];
    }
    static void describe(TritonContext *context, DLTensor *y, const DLTensor *x) {
        if (y->dtype.code != kDLInt || y->dtype.bits != 64)
            throw std::invalid_argument("y must be int64");
        auto *sizes = static_cast<int64_t *>(context->scratch(context, 2 * sizeof(int64_t)));
        if (sizes == nullptr)
            throw std::bad_alloc();
        sizes[0] = x->shape[0], sizes[1] = x->shape[1];
        static_cast<int64_t *>(y->data)[0] = sizes[0],
                            static_cast<int64_t *>(y->data)[1] = sizes[1];
    }
    static void scalars(kelp::out<double> y, bool a, int32_t b, uint32_t c, int64_t d, uint64_t e,
                        double f, const std::string &g, const char *h) {
        double sum = a + b + c + f + static_cast<double>(d) + static_cast<double>(e);
        y[0] = sum + static_cast<double>(g.size()) + std::atof(h);
    }
    static void fail(int32_t kind) {
        if (kind == 0)
            throw std::out_of_range("there is no such bin");
        if (kind == 1)
            throw std::bad_alloc();
        if (kind == 2)
            throw std::runtime_error("the disk is full");
        if (kind == 3)
            throw 3;
    }
    static void nothing(TritonContext *) {
    }
    static void increment(kelp::inout<uint8_t> x) {
        for (uint8_t &value : x)
            value++;
    }
};

} // namespace runtime
} // namespace triton

extern "C" triton::runtime::Backend *triton_backend_init() {
    return new triton::runtime::TypedBackend();
}
