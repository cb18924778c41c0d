#pragma once

#include "tests/support/cuda/dnn/object.h"

namespace cnn::tests::emulated::dnn {

// Checks a descriptor whose attributes are set and adds its read-only attributes. Throws DnnError
// that names the error.
void finalize(Object& object);

// A request for an attribute, as the interface returns it: at most `capacity` values and their
// number. Descriptors are copied into those whose handles the caller gives.
struct Request {
  cudnnBackendAttributeName_t name{};
  cudnnBackendAttributeType_t type{};
  std::int64_t capacity = 0;
  std::int64_t* got = nullptr;
  void* values = nullptr;
};
void read(const Object& object, const Request& request);

}  // namespace cnn::tests::emulated::dnn
