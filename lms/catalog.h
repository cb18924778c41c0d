#pragma once

#include <span>
#include <string_view>

#include "lms/policy.h"

namespace cnn::lms {

struct PolicyRow {
  std::string_view name;  // value of --lms_policy
  Policy plan = nullptr;
  // Its schedules say themselves which step waits for which copy.
  bool places_waits = false;
  // It plans the backward pass in backward_order(); the others keep the network's own.
  bool orders = false;
  // Its plans compute tensors again, as far as Options::recompute permits.
  bool recomputes = false;
};

std::span<const PolicyRow> policies();

// Returns the policy of that name. Throws Error with all names if it is unknown.
const PolicyRow& find_policy(std::string_view name);

}  // namespace cnn::lms
