#pragma once

#include <cstdint>
#include <cudnn.h>
#include <span>

namespace cnn::tests::emulated {

// An attribute that a kind of descriptor takes.
struct AttributeRule {
  cudnnBackendDescriptorType_t of{};
  cudnnBackendAttributeName_t name{};
  cudnnBackendAttributeType_t type{};
  std::int64_t most = 1;  // values
  bool required = true;   // before the descriptor is final
};

// All that the emulation knows; what is not here is refused.
std::span<const AttributeRule> attribute_rules();

// Null: descriptors of that type have no such attribute.
const AttributeRule* find_rule(cudnnBackendDescriptorType_t of, cudnnBackendAttributeName_t name);

}  // namespace cnn::tests::emulated
