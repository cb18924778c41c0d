#include "allreduce/staged.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/error.h"

namespace cnn::allreduce {

StagedCommunicator::StagedCommunicator(Communicator& host, StagingFunctions functions)
    : host_(host), functions_(std::move(functions)), thread_([this] { run(); }) {}

StagedCommunicator::~StagedCommunicator() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StagedCommunicator::prepare(std::size_t bucket, std::size_t elements) {
  const std::lock_guard lock(mutex_);
  if (buckets_.size() <= bucket) {
    buckets_.resize(bucket + 1);
    queue_.reserve(buckets_.size());
  }
  if (buckets_[bucket] == nullptr) {
    buckets_[bucket] = std::make_unique<Bucket>();
    const std::span<float> memory = take_memory(elements);
    *buckets_[bucket] = {.number = bucket,
                         .memory = memory,
                         .staged = memory.first(elements),
                         .flag = functions_.allocate_flag()};
    word_of(*buckets_[bucket], staging_failed) = error_ == nullptr ? 0 : 1;
  }
  check(buckets_[bucket]->staged.size() == elements,
        "bucket " + std::to_string(bucket) + " of an exchange has changed its size");
}

std::span<float> StagedCommunicator::take_memory(std::size_t elements) {
  return spare_.size() >= elements ? std::exchange(spare_, {})
                                   : functions_.allocate_staging(elements);
}

void StagedCommunicator::release(std::size_t bucket) {
  const std::lock_guard lock(mutex_);
  if (bucket >= buckets_.size() || buckets_[bucket] == nullptr) {
    return;
  }
  const std::span<float> memory = buckets_[bucket]->memory;
  spare_ = memory.size() > spare_.size() ? memory : spare_;
  buckets_[bucket].reset();
  host_.release(bucket);
}

void StagedCommunicator::reserve(std::size_t elements) {
  const std::lock_guard lock(mutex_);
  if (spare_.size() < elements) {
    spare_ = functions_.allocate_staging(elements);
  }
  host_.reserve(elements);
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
  stream.host([this, &bucket] { on_arrival(bucket); });
  functions_.wait_for(stream, flag_of(bucket));
  stream.host([this] { rethrow(); });
  at = 0;
  for (const std::span<float>& piece : pieces) {
    stream.copy(std::as_writable_bytes(piece).data(), host_bytes.data() + at, piece.size_bytes());
    at += piece.size_bytes();
  }
}

void StagedCommunicator::on_arrival(Bucket& bucket) {
  {
    const std::lock_guard lock(mutex_);
    bucket.on_host = true;
    queue_.push_back(&bucket);
  }
  changed_.notify_all();
}

void StagedCommunicator::rethrow() {
  const std::lock_guard lock(mutex_);
  if (error_) {
    std::rethrow_exception(error_);
  }
}

void StagedCommunicator::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) {
      return;
    }
    Bucket& bucket = *queue_.front();
    queue_.erase(queue_.begin());
    if (error_ == nullptr) {
      lock.unlock();
      std::exception_ptr error = sum(bucket);
      lock.lock();
      if (error != nullptr) {
        fail(std::move(error));
      }
    }
    if (error_ == nullptr) {  // a device that sees the flag also sees the sum written before it
      word_of(bucket, staging_done).store(1, std::memory_order_release);
    }
    bucket.on_host = false;
  }
}

std::exception_ptr StagedCommunicator::sum(Bucket& bucket) {
  try {
    host_.all_reduce(bucket.number, std::span(&bucket.staged, 1), bucket.factor);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

// Streams skip host work after an error, so that later buckets never arrive here: their waits must
// end too.
void StagedCommunicator::fail(std::exception_ptr error) {
  error_ = std::move(error);
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    if (bucket != nullptr) {
      word_of(*bucket, staging_failed).store(1, std::memory_order_release);
    }
  }
}

const StagedCommunicator::Bucket* StagedCommunicator::first_overdue() const {
  const auto overdue = [](const std::unique_ptr<Bucket>& bucket) {
    return bucket != nullptr && !bucket->on_host && word_of(*bucket, staging_waits) != 0 &&
           word_of(*bucket, staging_done) == 0;
  };
  const auto found = std::ranges::find_if(buckets_, overdue);
  return found == buckets_.end() ? nullptr : found->get();
}

void StagedCommunicator::poll(bool waiting) {
  if (waiting) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));  // leaves the processor to others
  }
  const std::lock_guard lock(mutex_);
  const Bucket* const bucket = waiting && error_ == nullptr ? first_overdue() : nullptr;
  if (bucket == nullptr) {
    overdue_since_.reset();
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  overdue_since_ = overdue_since_.value_or(now);
  if (now - *overdue_since_ > functions_.handover_timeout) {
    fail(std::make_exception_ptr(Error("the device waits for the sum of bucket " +
                                       std::to_string(bucket->number) +
                                       ", which was not handed to the host")));
  }
}

}  // namespace cnn::allreduce
