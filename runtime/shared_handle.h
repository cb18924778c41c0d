#pragma once

#include <memory>

namespace cnn {

// A stream whose handle a library may use on its own threads, as NCCL does when it launches: the
// handle can outlive the stream.
class SharedHandle {
 public:
  virtual ~SharedHandle() = default;
  // Returns an owner of the handle, which exists as long as the owner does.
  virtual std::shared_ptr<void> shared_handle() const = 0;
};

}  // namespace cnn
