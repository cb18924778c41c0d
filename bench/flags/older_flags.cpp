#include "bench/flags/older_flags.h"

#include <algorithm>
#include <array>

namespace cnn::bench {
namespace {

struct OlderFlag {
  std::string_view name;
  std::string_view advice;
};

constexpr std::array<OlderFlag, 12> older_flags{
    {{"auto_mixed_precision", "use --precision=fp16 with --fp16_enable_auto_loss_scale"},
     {"checkpoint_directory", "use --train_dir"},
     {"checkpoint_every_n_epochs", "use --save_model_steps or --save_model_secs"},
     {"checkpoint_interval", "use --save_model_steps or --save_model_secs"},
     {"cpu",
      "use --device=cpu; CNN_MAX_CPU_ISA in the environment limits its instruction set, which is "
      "found otherwise"},
     {"datasets_prefetch_threadpool_size", "use --datasets_num_private_threads"},
     {"gpu_pending_cap", "leave it out: kernels are not tracked one by one"},
     {"input_data_format", "use --data_format"},
     {"kungfu_strategy",
      "KungFu's library is not part of this program; --all_reduce_spec names the algorithm by "
      "which "
      "ranks of --variable_update=horovod add up gradients"},
     {"num_preprocess_threads", "use --datasets_num_private_threads"},
     {"parameter_server", "use --local_parameter_device"},
     {"weak_scaling", "leave it out: --batch_size is the batch of each device in any case"}}};

struct OlderValue {
  std::string_view flag, value, advice;
};

constexpr std::array<OlderValue, 6> older_values{
    {{"data_name", "flowers", "its shards have the form of ImageNet's; use --data_name=imagenet"},
     {"data_name", "imagenette",
      "its shards have the form of ImageNet's; use --data_name=imagenet"},
     {"data_name", "synthetic", "images are synthetic without --data_dir; leave --data_name out"},
     {"device", "numa",
      "use --device=cpu with --num_gpus=N: each of the N devices has processors of its own"},
     {"variable_update", "kungfu",
      "KungFu's library is not part of this program; mpirun -np N with --variable_update=horovod "
      "also adds up the gradients of N processes by an allreduce"},
     {"variable_update", "perseus",
      "Perseus is not part of this program; mpirun -np N with --variable_update=horovod also adds "
      "up the gradients of N processes by an allreduce"}}};

}  // namespace

std::string_view successor_of_value(std::string_view flag, std::string_view value) {
  for (const OlderValue& older : older_values) {
    if (older.flag == flag && older.value == value) {
      return older.advice;
    }
  }
  return {};
}

std::string_view successor_of(std::string_view older_flag) {
  const auto* const found = std::ranges::find(older_flags, older_flag, &OlderFlag::name);
  return found == older_flags.end() ? std::string_view() : found->advice;
}

}  // namespace cnn::bench
