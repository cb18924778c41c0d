#pragma once

#include <memory>

namespace cnn {

// A stream whose handle a library may use on threads of its own, as NCCL does when it launches: the
// handle can outlive the stream.
class SharedHandle {
 public:
  virtual ~SharedHandle() = default;
  // The handle exists for as long as this does.
  virtual std::shared_ptr<void> shared_handle() const = 0;
};

}  // namespace cnn
