#include "data/repeat.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace cnn::data {
namespace {

class Repeat final : public Dataset {
 public:
  explicit Repeat(std::unique_ptr<Dataset> dataset)
      : dataset_(std::move(dataset)), image_(dataset_->format().bytes()) {
    dataset_->read(0, {image_, &label_});
  }

  std::int64_t size() const override { return dataset_->size(); }
  ImageFormat format() const override { return dataset_->format(); }
  int classes() const override { return dataset_->classes(); }
  void read(std::int64_t /*index*/, const Example& into) const override {
    std::copy(image_.begin(), image_.end(), into.image.begin());
    *into.label = label_;
  }
  bool may_shuffle() const override { return dataset_->may_shuffle(); }
  Transform distortions(std::uint64_t seed) const override { return dataset_->distortions(seed); }

 private:
  std::unique_ptr<Dataset> dataset_;
  std::vector<std::byte> image_;
  std::int32_t label_ = 0;
};

}  // namespace

std::unique_ptr<Dataset> repeat_first(std::unique_ptr<Dataset> dataset) {
  return std::make_unique<Repeat>(std::move(dataset));
}

}  // namespace cnn::data
