#include "layers/cpu/candidate_timer.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "layers/elementwise.h"
#include "runtime/device_timer.h"
#include "runtime/error.h"

namespace cnn::layers::cpu {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// Images of fewer channels are inputs of the network: they lie as their reader wants them.
constexpr std::int64_t few_channels = 8;

// A kernel with its operands; conversions before and after it are kernels too.
struct Step {
  std::unique_ptr<Kernel> kernel;
  Operands operands;
};

// Memory that all candidates share, since one runs at a time: a place is an operand of the
// convolution, or its copy in the layout that was asked for.
class Pool {
 public:
  // Counts the bytes first; memory exists after allocate().
  void need(std::size_t place, const TensorDesc& desc) {
    places_.resize(std::max(places_.size(), place + 1));
    places_[place].bytes = std::max({places_[place].bytes, desc.extent(), std::size_t{64}});
    places_[place].type = desc.type;
  }
  void need_workspace(std::size_t bytes) { workspace_bytes_ = std::max(workspace_bytes_, bytes); }

  std::size_t bytes() const {
    std::size_t sum = workspace_bytes_;
    for (const Place& place : places_) {
      sum += place.bytes;
    }
    return sum;
  }

  void allocate(DeviceTimer& timer) {
    for (Place& place : places_) {
      if (place.bytes > 0) {
        place.memory = timer.filled(place.bytes, place.type);
      }
    }
    workspace_ = timer.device().allocate(workspace_bytes_);
  }

  TensorView view(std::size_t place, const TensorDesc& desc) const {
    return {.desc = desc, .data = places_[place].memory.data()};
  }
  std::span<std::byte> workspace() const { return {workspace_.data(), workspace_.bytes()}; }

 private:
  struct Place {
    std::size_t bytes = 0;
    DataType type = DataType::f32;
    Buffer memory;
  };
  std::vector<Place> places_;
  std::size_t workspace_bytes_ = 64;
  Buffer workspace_;
};

// One operand of a candidate that must be converted.
struct Conversion {
  TensorDesc request, taken;
  std::size_t place = 0;  // of the kernel's operand; its copy lies `operands` places further
  bool input = false;
};

std::vector<Conversion> conversions_of(const Op& op, const Signature& settled,
                                       const KernelSpec& spec) {
  std::vector<Conversion> found;
  const auto compare = [&](const std::vector<TensorDesc>& request,
                           const std::vector<TensorDesc>& taken, bool input) {
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const bool image = request[i].shape.rank() == 4 && !is_weights(op, input, i);
      if (image && request[i] != taken[i] && request[i].shape[1] >= few_channels) {
        found.push_back({.request = request[i],
                         .taken = taken[i],
                         .place = input ? i : spec.in.size() + i,
                         .input = input});
      }
    }
  };
  compare(settled.in, spec.in, true);
  compare(settled.out, spec.out, false);
  return found;
}

Signature signature_of(const Conversion& conversion) {
  return conversion.input ? Signature{.in = {conversion.request}, .out = {conversion.taken}}
                          : Signature{.in = {conversion.taken}, .out = {conversion.request}};
}

void count(Pool& pool, const Op& op, const Signature& settled, const ConvCandidate& candidate,
           const KernelTable& converts) {
  const KernelSpec& spec = candidate.spec;
  const std::size_t operands = spec.in.size() + spec.out.size();
  for (std::size_t i = 0; i < operands; ++i) {
    pool.need(i, i < spec.in.size() ? spec.in[i] : spec.out[i - spec.in.size()]);
  }
  pool.need_workspace(spec.workspace);
  for (const Conversion& conversion : conversions_of(op, settled, spec)) {
    pool.need(operands + conversion.place, conversion.request);
    const auto copy =
        converts.describe(Convert(signature_of(conversion).out[0].type), signature_of(conversion));
    pool.need_workspace(copy ? copy->workspace : 0);
  }
}

Step convolution(const Pool& pool, const Op& op, const ConvCandidate& candidate) {
  const KernelSpec& spec = candidate.spec;
  Step step{.kernel = candidate.table->make(op, {.in = spec.in, .out = spec.out}), .operands = {}};
  for (std::size_t i = 0; i < spec.in.size(); ++i) {
    step.operands.in.push_back(pool.view(i, spec.in[i]));
  }
  for (std::size_t i = 0; i < spec.out.size(); ++i) {
    step.operands.out.push_back(pool.view(spec.in.size() + i, spec.out[i]));
  }
  step.operands.workspace = pool.workspace();
  return step;
}

Step conversion_step(const Pool& pool, const Conversion& conversion, std::size_t operands,
                     const KernelTable& converts) {
  const Signature signature = signature_of(conversion);
  Step step{.kernel = converts.make(Convert(signature.out[0].type), signature), .operands = {}};
  const TensorView request = pool.view(operands + conversion.place, conversion.request);
  const TensorView taken = pool.view(conversion.place, conversion.taken);
  step.operands.in.push_back(conversion.input ? request : taken);
  step.operands.out.push_back(conversion.input ? taken : request);
  step.operands.workspace = pool.workspace();
  return step;
}

// Returns the kernels of a candidate in their order; none if one of them cannot be made.
std::vector<Step> steps_of(const Pool& pool, const Op& op, const Signature& settled,
                           const ConvCandidate& candidate, const KernelTable& converts) {
  try {
    const std::size_t operands = candidate.spec.in.size() + candidate.spec.out.size();
    std::vector<Step> before, after;
    for (const Conversion& each : conversions_of(op, settled, candidate.spec)) {
      (each.input ? before : after).push_back(conversion_step(pool, each, operands, converts));
    }
    before.push_back(convolution(pool, op, candidate));
    std::ranges::move(after, std::back_inserter(before));
    return before;
  } catch (const Error&) {  // a kernel that can be described may still not be made
    return {};
  }
}

}  // namespace

std::vector<double> seconds_of_candidates(Device& device, const Op& op, const Signature& settled,
                                          std::span<const ConvCandidate> all,
                                          const KernelTable& converts) {
  std::vector<double> seconds(all.size(), never);
  Pool pool;
  for (const ConvCandidate& candidate : all) {
    count(pool, op, settled, candidate, converts);
  }
  if (pool.bytes() > device.memory_bytes() / 2) {
    return seconds;
  }
  DeviceTimer timer(device);
  pool.allocate(timer);
  std::vector<std::vector<Step>> steps;
  std::vector<std::function<void()>> runs;
  std::vector<std::size_t> places;
  for (const ConvCandidate& candidate : all) {
    steps.push_back(steps_of(pool, op, settled, candidate, converts));
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].empty()) {
      places.push_back(i);
      runs.emplace_back([&timer, &list = steps[i]] {
        for (const Step& step : list) {
          step.kernel->run(timer.stream(), step.operands);
        }
      });
    }
  }
  const std::vector<double> measured = timer.seconds_of_each(runs);
  for (std::size_t i = 0; i < places.size(); ++i) {
    seconds[places[i]] = measured[i];
  }
  return seconds;
}

}  // namespace cnn::layers::cpu
