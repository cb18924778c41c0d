#include "bench/flags/older_flags.h"

#include <algorithm>
#include <array>

namespace cnn::bench {
namespace {

struct OlderFlag {
  std::string_view name;
  std::string_view advice;
};

constexpr std::array<OlderFlag, 5> older_flags{
    {{"auto_mixed_precision", "use --precision=fp16 with --fp16_enable_auto_loss_scale"},
     {"cpu",
      "use --device=cpu; CNN_MAX_CPU_ISA in the environment limits its instruction set, which is "
      "found otherwise"},
     {"datasets_prefetch_threadpool_size", "use --datasets_num_private_threads"},
     {"gpu_pending_cap", "leave it out: kernels are not tracked one by one"},
     {"input_data_format", "use --data_format"}}};

}  // namespace

std::string_view successor_of(std::string_view older_flag) {
  const auto* const found = std::ranges::find(older_flags, older_flag, &OlderFlag::name);
  return found == older_flags.end() ? std::string_view() : found->advice;
}

}  // namespace cnn::bench
