#pragma once

#include "tests/support/cuda/dnn/object.h"

namespace cnn::tests::emulated::dnn {

// Checks a descriptor whose attributes are set, and adds those that can only be read. Throws
// DnnError that names what is wrong.
void finalize(Object& object);

// Writes an attribute as the interface hands it out: at most `asked` values, and how many there
// are. Descriptors are copied into those whose handles the caller gives.
struct Request {
  cudnnBackendAttributeName_t name{};
  cudnnBackendAttributeType_t type{};
  std::int64_t asked = 0;
  std::int64_t* got = nullptr;
  void* values = nullptr;
};
void read(const Object& object, const Request& request);

}  // namespace cnn::tests::emulated::dnn
