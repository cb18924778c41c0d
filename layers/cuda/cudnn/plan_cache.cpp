#include "layers/cuda/cudnn/plan_cache.h"

#include <string_view>
#include <utility>

#include "layers/cuda/cudnn/choice_text.h"
#include "runtime/error.h"

namespace cnn::layers::cuda {
namespace {

ChoiceFile::Owner line_owner(const PlanCache::Owner& owner) {
  return {.device = owner.device + ", driver " + owner.driver + ", cuBLASLt " +
                    std::to_string(owner.cublaslt_version),
          .version = std::to_string(owner.cudnn_version),
          .is_choice = [](std::string_view text) {
            Choice choice;
            return read_choice_fields(text, choice);
          }};
}

}  // namespace

PlanCache::PlanCache(std::filesystem::path file, const Owner& owner, bool may_create)
    : file_(std::move(file), line_owner(owner), may_create) {}

std::optional<PlanCache::Entry> PlanCache::find(const std::string& key) const {
  const ChoiceFile::Entry* const found = file_.find(key);
  if (found == nullptr) {
    return std::nullopt;
  }
  Entry entry{.choice = {}, .seconds = found->seconds};
  check(read_choice_fields(found->choice, entry.choice),
        "the plan cache " + file().string() + " has no engine for " + key);
  return entry;
}

void PlanCache::store(const std::string& key, const Entry& entry) {
  file_.store(key, {.choice = choice_fields(entry.choice), .seconds = entry.seconds});
}

}  // namespace cnn::layers::cuda
