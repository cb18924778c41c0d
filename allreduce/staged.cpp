#include "allreduce/staged.h"

#include <atomic>
#include <string>
#include <utility>

#include "runtime/error.h"

namespace cnn::allreduce {

StagedCommunicator::StagedCommunicator(Communicator& host, StagingTools tools)
    : host_(host), tools_(std::move(tools)), thread_([this] { loop(); }) {}

StagedCommunicator::~StagedCommunicator() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StagedCommunicator::prepare(std::size_t bucket, std::size_t elements) {
  const std::lock_guard lock(mutex_);
  if (buckets_.size() <= bucket) {
    buckets_.resize(bucket + 1);
    waiting_.reserve(buckets_.size());
  }
  if (buckets_[bucket] == nullptr) {
    buckets_[bucket] = std::make_unique<Bucket>();
    *buckets_[bucket] = {.number = bucket, .staged = tools_.room(elements), .flag = tools_.flag()};
  }
  check(buckets_[bucket]->staged.size() == elements,
        "bucket " + std::to_string(bucket) + " of an exchange has changed its size");
}

void StagedCommunicator::all_reduce(Stream& stream, std::size_t number,
                                    std::span<const std::span<float>> pieces, float factor) {
  Bucket& bucket = *buckets_.at(number);
  bucket.factor = factor;
  const auto host_bytes = std::as_writable_bytes(bucket.staged);
  std::size_t at = 0;
  for (const std::span<float>& piece : pieces) {
    stream.copy(host_bytes.data() + at, std::as_bytes(piece).data(), piece.size_bytes());
    at += piece.size_bytes();
  }
  check(at == host_bytes.size(), "a bucket of an exchange is not as large as it was prepared for");
  stream.host([this, &bucket] { arrived(bucket); });
  tools_.wait_for(stream, flag_of(bucket));
  stream.host([this] { rethrow(); });
  at = 0;
  for (const std::span<float>& piece : pieces) {
    stream.copy(std::as_writable_bytes(piece).data(), host_bytes.data() + at, piece.size_bytes());
    at += piece.size_bytes();
  }
}

void StagedCommunicator::arrived(Bucket& bucket) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&bucket);
  }
  changed_.notify_all();
}

void StagedCommunicator::rethrow() {
  const std::lock_guard lock(mutex_);
  if (error_) {
    std::rethrow_exception(error_);
  }
}

void StagedCommunicator::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) {
      return;
    }
    Bucket& bucket = *waiting_.front();
    waiting_.erase(waiting_.begin());
    if (error_ == nullptr) {
      lock.unlock();
      sum(bucket);
      lock.lock();
    }
    // Who waits sees the sum, or the error, that was written before.
    std::atomic_ref(*flag_of(bucket))
        .store(error_ == nullptr ? staging_done : staging_failed, std::memory_order_release);
  }
}

void StagedCommunicator::sum(Bucket& bucket) {
  try {
    host_.all_reduce(bucket.number, std::span(&bucket.staged, 1), bucket.factor);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
}

}  // namespace cnn::allreduce
