#pragma once

#include <span>
#include <string_view>

#include "lms/policy.h"

namespace cnn::lms {

struct PolicyRow {
  std::string_view name;  // as --lms_policy says it
  Policy plan = nullptr;
};

std::span<const PolicyRow> policies();

// Throws Error that lists the names if there is none of this one.
const PolicyRow& find_policy(std::string_view name);

}  // namespace cnn::lms
