#include "layers/cpu/onednn/batch_parts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "layers/cpu/conv_candidates.h"
#include "layers/cpu/onednn/widened.h"
#include "layers/cpu/parallel.h"

namespace cnn::layers::cpu {
namespace {

// Bytes of wide images of a part, for each thread: about a second-level cache. Measured on
// ResNet-50 with 16 images on two cores of a Xeon with 2 MiB each: 512 KiB to 4 MiB are within 3 %.
constexpr std::size_t part_bytes_per_thread = 2 << 20;

// In gradients of weights, a part also has this many bytes of wide images for each byte of sums,
// because each part reads and writes the sums again. A half to twice as many are within 1 %.
constexpr std::size_t image_bytes_per_sum_byte = 8;

// Calls visit(planned, requested) for each image among the operands of a convolution.
template <class Visit>
void each_image(const Op& op, Signature& planned, const Signature& request, const Visit& visit) {
  const auto look_at = [&](std::vector<TensorDesc>& operands, const std::vector<TensorDesc>& asked,
                           bool input) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].shape.rank() == 4 && !is_weights(op, input, i)) {
        visit(operands[i], asked[i]);
      }
    }
  };
  look_at(planned.in, request.in, true);
  look_at(planned.out, request.out, false);
}

// Returns the images of a part, of which a batch has a whole number.
std::int64_t images_of_part(const Op& op, Signature whole, const Signature& request) {
  std::size_t wide = 0;
  std::int64_t batch = 1;
  each_image(op, whole, request, [&](const TensorDesc& image, const TensorDesc& /*asked*/) {
    wide += image.bytes();
    batch = image.shape[0];
  });
  const std::size_t sums = is_weights(op, false, 0) ? whole.out[0].bytes() : 0;
  const std::size_t most = std::max(part_bytes_per_thread * static_cast<std::size_t>(team_size()),
                                    image_bytes_per_sum_byte * sums);
  const std::size_t each = wide / static_cast<std::size_t>(batch);
  std::int64_t images = batch;
  while (images > 1 && (batch % images != 0 || static_cast<std::size_t>(images) * each > most)) {
    --images;
  }
  return images;
}

}  // namespace

std::optional<Plan> plan_in_parts(const Op& op, const Signature& request,
                                  const PlanOfImages& plan_of) {
  std::optional<Plan> whole = plan_of(request);
  if (!whole || whole->is_slow() || !is_widened(*whole, request)) {
    return whole;
  }
  Signature part{.in = whole->spec.in, .out = whole->spec.out};
  const std::int64_t images = images_of_part(op, part, request);
  bool is_cut = false;
  each_image(op, part, request, [&](TensorDesc& image, const TensorDesc& asked) {
    is_cut = images < image.shape[0];
    image.shape[0] = images;
    image.type = asked.type;
  });
  if (!is_cut) {
    return whole;
  }
  std::optional<Plan> plan = plan_of(part);
  return plan && !plan->is_slow() ? plan : whole;
}

}  // namespace cnn::layers::cpu
