#pragma once

#include <memory>
#include <type_traits>

namespace cnn::cuda {

// Deleter that calls the library's own function to destroy a handle. It drops the status: a program
// can do nothing about a handle that cannot be destroyed.
template <auto destroy>
struct Destroy {
  template <class Object>
  void operator()(Object* handle) const noexcept {
    static_cast<void>(destroy(handle));
  }
};

// Owner of a handle: Handle<cudaStream_t, cudaStreamDestroy>.
template <class Raw, auto destroy>
using Handle = std::unique_ptr<std::remove_pointer_t<Raw>, Destroy<destroy>>;

}  // namespace cnn::cuda
