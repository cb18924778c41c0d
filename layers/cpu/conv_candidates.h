#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "layers/cpu/isa.h"
#include "layers/cpu/rows.h"
#include "runtime/kernel.h"

namespace cnn::layers::cpu {

// One kernel that can run a convolution.
struct ConvCandidate {
  std::string name;  // "winograd 4x4", "pointwise", "onednn nchw16c"; the same in every process
  KernelSpec spec;
  const KernelTable* table = nullptr;  // whose row makes the kernel
};

// The kernels of this folder for Conv2d and its two gradients: those of the rules, which the kernel
// table goes by without tuning, and all others that can run.
class ConvCandidates {
 public:
  ConvCandidates(const Isa& isa, bool winograd);
  ConvCandidates(const ConvCandidates&) = delete;  // candidates point to its tables
  ConvCandidates& operator=(const ConvCandidates&) = delete;

  // The kernel table that the rules fill, which also converts between layouts.
  const KernelTable& rules() const { return rules_; }

  // Returns the request with its images in the layouts and types that the rules' kernel takes;
  // nothing if the rules have no kernel. A request in these layouts yields itself.
  std::optional<Signature> settled(const Op& op, const Signature& request) const;

  // Returns all kernels for a settled request, each kernel once, those in its own layouts first.
  // Kernels in other layouts are among them only if the rules, too, keep these layouts.
  std::vector<ConvCandidate> offers(const Op& op, const Signature& settled) const;
  // Returns the one of offers() with that name; nothing if there is none.
  std::optional<ConvCandidate> offer(const std::string& name, const Op& op,
                                     const Signature& settled) const;

 private:
  KernelTable rules_;
  std::vector<ConvCandidateRows> kinds_;
};

// Returns the images of a convolution's operands: x and y, or their gradients, x first.
std::vector<TensorDesc> images_of(const Op& op, const Signature& signature);

// Returns whether an input or output of a convolution holds its weights or their gradient.
bool is_weights(const Op& op, bool input, std::size_t index);

// Returns the text that is equal for requests of which the same kernel is the fastest: the op, its
// attributes, and the shapes, types and layouts of its images.
std::string conv_key(const Op& op, const Signature& signature);

}  // namespace cnn::layers::cpu
