#include <array>
#include <atomic>
#include <mutex>
#include <unistd.h>
#include <utility>

#include "data/imagenet/source.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

// A decorator of another source.
class Wrapper : public ImageSource {
 public:
  explicit Wrapper(std::unique_ptr<ImageSource> source) : source_(std::move(source)) {}
  std::int64_t size() const override { return source_->size(); }
  ImageExample parse(std::int64_t index, std::span<const std::byte> bytes) const override {
    return source_->parse(index, bytes);
  }
  std::string where(std::int64_t index) const override { return source_->where(index); }
  std::uint64_t bytes() const override { return source_->bytes(); }
  std::vector<std::string> notices() const override { return source_->notices(); }

 protected:
  const ImageSource& source() const { return *source_; }

 private:
  std::unique_ptr<ImageSource> source_;
};

class Cached final : public Wrapper {
 public:
  explicit Cached(std::unique_ptr<ImageSource> source)
      : Wrapper(std::move(source)),
        kept_(static_cast<std::size_t>(size())),
        is_kept_(static_cast<std::size_t>(size())) {
    const auto memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    check(bytes() <= memory / 10 * 9,
          "--datasets_use_caching would keep " + std::to_string(bytes() >> 20U) +
              " MiB of records in memory, and this machine has " + std::to_string(memory >> 20U) +
              " MiB; leave it out: the system keeps in memory what fits");
  }
  std::span<const std::byte> read(std::int64_t index,
                                  std::vector<std::byte>& buffer) const override {
    const auto at = static_cast<std::size_t>(index);
    if (!is_kept_[at].load(std::memory_order_acquire)) {
      const std::span<const std::byte> bytes = source().read(index, buffer);
      const std::lock_guard lock(mutexes_[at % mutexes_.size()]);
      if (!is_kept_[at].load(std::memory_order_relaxed)) {
        kept_[at].assign(bytes.begin(), bytes.end());
        is_kept_[at].store(true, std::memory_order_release);
      }
    }
    return kept_[at];
  }

 private:
  mutable std::vector<std::vector<std::byte>> kept_;
  mutable std::vector<std::atomic<bool>> is_kept_;
  mutable std::array<std::mutex, 64> mutexes_;
};

class Repeated final : public Wrapper {
 public:
  explicit Repeated(std::unique_ptr<ImageSource> source) : Wrapper(std::move(source)) {
    std::vector<std::byte> buffer;
    const std::span<const std::byte> bytes = this->source().read(0, buffer);
    first_.assign(bytes.begin(), bytes.end());
  }
  std::span<const std::byte> read(std::int64_t /*index*/,
                                  std::vector<std::byte>& /*buffer*/) const override {
    return first_;
  }
  ImageExample parse(std::int64_t /*index*/, std::span<const std::byte> bytes) const override {
    return source().parse(0, bytes);
  }
  std::string where(std::int64_t /*index*/) const override { return source().where(0); }

 private:
  std::vector<std::byte> first_;
};

}  // namespace

std::unique_ptr<ImageSource> cached(std::unique_ptr<ImageSource> source) {
  return std::make_unique<Cached>(std::move(source));
}

std::unique_ptr<ImageSource> repeated(std::unique_ptr<ImageSource> source) {
  return std::make_unique<Repeated>(std::move(source));
}

}  // namespace cnn::data
