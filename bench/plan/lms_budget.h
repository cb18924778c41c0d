#pragma once

#include <cstddef>
#include <string>

namespace cnn::bench {

struct LmsFlags;
struct RankContext;

// The memory that an LMS plan may use, by flags and device.

// Returns whether the policy plans with a share of the memory beside the variables, as TFLMS 2
// does.
bool shares_what_variables_leave(const LmsFlags& flags);

// Returns the bytes on the device, variables included. Throws Error if the flags leave none.
std::size_t device_budget(const LmsFlags& flags, const RankContext& context);

// Returns the origin of device_budget() for messages: the device's memory and the flags that
// reduced it.
std::string source_of_budget(const LmsFlags& flags, const RankContext& context);

// Returns a notice that names the flags of device_budget() that do not act beside others; empty if
// all act.
std::string idle_budget_flags(const LmsFlags& flags, const RankContext& context);

// Returns the bytes on the host for tensors that leave the device: 0 if the device computes in host
// memory, since its tensors cannot be swapped.
std::size_t host_budget(const LmsFlags& flags, const RankContext& context);

}  // namespace cnn::bench
