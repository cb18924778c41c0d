#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

// The table of kernels that the emulated runtime can start, which nvcc puts into a program's image
// for the real one. The emulation's launch.h enters kernels into the table.
namespace cnn::tests::emulated {

// A kernel with its parameter values, which are copied at the launch.
struct BoundKernel {
  std::function<void()> thread;  // run by each thread of the grid; refers to the values
  std::shared_ptr<const void> values;
  std::size_t value_bytes = 0;      // size of the object that `values` owns
  std::size_t parameter_bytes = 0;  // size of the parameters by CUDA's rules
  std::vector<void*> words;         // aligned words of the parameters, which may be pointers
};

// Binds a kernel to the parameters at these addresses.
using Bind = std::function<BoundKernel(void* const* parameters)>;

// Adds a kernel by its entry; adding it again has no effect.
void add_kernel(const void* entry, const Bind& bind);

// Appends the aligned words of a parameter, each of which may be a pointer.
void append_words(const void* parameter, std::size_t bytes, std::vector<void*>& words);

template <class... Parameters>
void add_kernel(void (*kernel)(Parameters...)) {
  struct Bound {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> values;
  };
  add_kernel(reinterpret_cast<const void*>(kernel), [kernel](void* const* parameters) {
    const auto bind = [&]<std::size_t... i>(std::index_sequence<i...>) {
      BoundKernel result;
      (append_words(parameters[i], sizeof(Parameters), result.words), ...);
      const auto bound = std::make_shared<const Bound>(
          Bound{kernel, {*static_cast<const Parameters*>(parameters[i])...}});
      result.thread = [bound = bound.get()] { std::apply(bound->kernel, bound->values); };
      result.values = bound;
      result.value_bytes = sizeof(Bound);
      result.parameter_bytes = (std::size_t{0} + ... + sizeof(Parameters));
      return result;
    };
    return bind(std::index_sequence_for<Parameters...>{});
  });
}

}  // namespace cnn::tests::emulated
