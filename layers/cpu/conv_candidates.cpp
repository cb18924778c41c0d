#include "layers/cpu/conv_candidates.h"

#include <algorithm>
#include <array>
#include <functional>

#include "layers/conv.h"
#include "layers/cpu/kernels.h"
#include "runtime/error.h"

namespace cnn::layers::cpu {
namespace {

using Layouts = std::array<Layout, 2>;  // of x and of y

// Besides those asked for. A first convolution reads few channels faster from a plain image.
constexpr std::array<Layouts, 4> other_layouts{
    Layouts{Layout::nchw16c, Layout::nchw16c}, Layouts{Layout::nhwc, Layout::nhwc},
    Layouts{Layout::nchw, Layout::nchw16c}, Layouts{Layout::nchw, Layout::nchw}};

// The operands of a convolution that are images.
struct Images {
  TensorDesc &x, &y;
};

// Returns the op, which is no other convolution. Throws Error if it is none at all.
const Conv2dBackwardWeights& weights_gradient(const Op& op) {
  const auto* gradient = dynamic_cast<const Conv2dBackwardWeights*>(&op);
  check(gradient != nullptr,
        std::string(op.name()) + " is no convolution, and only these have several kernels");
  return *gradient;
}

Images images_in(const Op& op, Signature& s) {
  if (dynamic_cast<const Conv2d*>(&op) != nullptr) {
    return {s.in[0], s.out[0]};
  }
  if (dynamic_cast<const Conv2dBackwardData*>(&op) != nullptr) {
    return {s.out[0], s.in[0]};
  }
  static_cast<void>(weights_gradient(op));
  return {s.in[0], s.in[1]};
}

const ConvAttributes& attributes_of(const Op& op) {
  if (const auto* forward = dynamic_cast<const Conv2d*>(&op)) {
    return forward->attributes;
  }
  if (const auto* data = dynamic_cast<const Conv2dBackwardData*>(&op)) {
    return data->attributes;
  }
  return weights_gradient(op).attributes;
}

// The residual of a forward convolution lies as y does.
void set_layouts(const Op& op, const Layouts& layouts, Signature& s) {
  const Images images = images_in(op, s);
  images.x.layout = layouts[0];
  images.y.layout = layouts[1];
  if (dynamic_cast<const Conv2d*>(&op) != nullptr && attributes_of(op).residual) {
    s.in.back().layout = layouts[1];
  }
}

Layouts layouts_of(const Op& op, Signature s) {
  const Images images = images_in(op, s);
  return {images.x.layout, images.y.layout};
}

std::string text_of(const Layouts& layouts) {
  std::string text(name_of(layouts[0]));
  if (layouts[1] != layouts[0]) {
    text.append(">").append(name_of(layouts[1]));
  }
  return text;
}

Signature signature_of(const KernelSpec& spec) { return {.in = spec.in, .out = spec.out}; }

std::string text_of(const WinogradForm& form) {
  return std::to_string(form.tile_h) + "x" + std::to_string(form.tile_w);
}

}  // namespace

ConvCandidates::ConvCandidates(const Isa& isa, bool winograd) {
  add_kernels(rules_, {.isa = isa, .winograd = winograd});
  kinds_ = library_conv_candidates(isa);
  if (!isa.avx2 || !winograd) {
    return;
  }
  for (const WinogradForm& form : winograd_forms) {
    const std::string name = "winograd " + text_of(form);  // unique for a window
    add_winograd_candidate(kinds_.emplace_back(ConvCandidateRows{.name = name}).table, isa, form);
  }
}

std::optional<Signature> ConvCandidates::settled(const Op& op, const Signature& request) const {
  const std::optional<KernelSpec> spec = rules_.describe(op, request);
  if (!spec) {
    return std::nullopt;
  }
  Signature ruled = signature_of(*spec), result = request;
  set_layouts(op, layouts_of(op, ruled), result);
  const Images from = images_in(op, ruled), to = images_in(op, result);
  for (const auto& [image, as] : {std::pair(&to.x, &from.x), std::pair(&to.y, &from.y)}) {
    image->type = as->type;
    image->pitch = 0;
  }
  return result;
}

std::vector<ConvCandidate> ConvCandidates::offers(const Op& op, const Signature& settled) const {
  std::vector<ConvCandidate> found;
  const auto add = [&](const ConvCandidateRows& kind, const Layouts& layouts) {
    Signature request = settled;
    set_layouts(op, layouts, request);
    const std::optional<KernelSpec> spec = kind.table.describe(op, request);
    if (!spec || layouts_of(op, signature_of(*spec)) != layouts) {
      return;
    }
    const std::string name = kind.has_layouts ? kind.name + " " + text_of(layouts) : kind.name;
    if (std::ranges::find(found, name, &ConvCandidate::name) != found.end()) {
      return;
    }
    if (layouts != layouts_of(op, settled)) {
      const std::optional<Signature> kept = this->settled(op, request);
      if (!kept || layouts_of(op, *kept) != layouts) {
        return;
      }
    }
    found.push_back({.name = name, .spec = *spec, .table = &kind.table});
  };
  for (const ConvCandidateRows& kind : kinds_) {
    add(kind, layouts_of(op, settled));
  }
  for (const ConvCandidateRows& kind : kinds_) {
    for (const Layouts& layouts : other_layouts) {
      if (kind.has_layouts) {
        add(kind, layouts);
      }
    }
  }
  return found;
}

std::optional<ConvCandidate> ConvCandidates::offer(const std::string& name, const Op& op,
                                                   const Signature& settled) const {
  for (ConvCandidate& candidate : offers(op, settled)) {
    if (candidate.name == name) {
      return std::move(candidate);
    }
  }
  return std::nullopt;
}

bool is_weights(const Op& op, bool input, std::size_t index) {
  const bool gradient = dynamic_cast<const Conv2dBackwardWeights*>(&op) != nullptr;
  return gradient ? !input && index == 0 : input && index == 1;
}

std::vector<TensorDesc> images_of(const Op& op, const Signature& signature) {
  Signature copy = signature;
  const Images images = images_in(op, copy);
  return {images.x, images.y};
}

std::string conv_key(const Op& op, const Signature& signature) {
  const ConvAttributes& a = attributes_of(op);
  const Window& w = a.window;
  const auto pair = [](std::int64_t first, std::int64_t second) {
    return std::to_string(first) + "x" + std::to_string(second);
  };
  const std::vector<TensorDesc> images = images_of(op, signature);
  return std::string(op.name()) + " " + pair(w.kernel_h, w.kernel_w) + " stride " +
         pair(w.stride_h, w.stride_w) + " pad " + pair(w.pad_top, w.pad_bottom) + "," +
         pair(w.pad_left, w.pad_right) + (a.depthwise ? " depthwise" : "") +
         (a.bias ? " bias" : "") + (a.residual ? " residual" : "") + (a.relu ? " relu" : "") +
         " x " + to_string(images[0]) + " y " + to_string(images[1]);
}

}  // namespace cnn::layers::cpu
