#pragma once

#include <cstdint>
#include <cudnn.h>
#include <span>

namespace cnn::tests::emulated {

// An attribute that one type of descriptor supports.
struct AttributeRule {
  cudnnBackendDescriptorType_t descriptor_type{};
  cudnnBackendAttributeName_t name{};
  cudnnBackendAttributeType_t type{};
  std::int64_t most = 1;  // largest number of values
  bool required = true;   // to be set before the descriptor is finalized
};

// Lists all attributes of the emulation, which refuses all others.
std::span<const AttributeRule> attribute_rules();

// Returns null if descriptors of that type have no such attribute.
const AttributeRule* find_rule(cudnnBackendDescriptorType_t descriptor_type,
                               cudnnBackendAttributeName_t name);

}  // namespace cnn::tests::emulated
