#include "data/feeder.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <unistd.h>
#include <utility>

#include "runtime/error.h"
#include "runtime/memory_plan.h"
#include "runtime/seconds_since.h"

namespace cnn::data {
namespace {

// Bytes of examples per piece: few lock operations for small images, no idle threads for large
// ones.
constexpr std::size_t piece_bytes = 256U << 10;

Buffer plain_memory(std::size_t bytes) {
  auto* data = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{alignment}));
  return {data, bytes,
          [](std::byte* memory) { ::operator delete (memory, std::align_val_t{alignment}); }};
}

// Throws Error before the buffers take more than the machine has: writing them would stop all else.
void check_fits(std::size_t bytes, std::size_t buffers, std::string_view batch_flag) {
  const auto memory = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  check(bytes <= memory / buffers,
        std::to_string(buffers) + " batches of " + std::to_string(bytes >> 20U) +
            " MiB are kept ready, and this machine has " + std::to_string(memory >> 20U) +
            " MiB; use a smaller " + std::string(batch_flag) +
            " or --multi_device_iterator_max_buffer_size");
}

// For ranks that share the runs of a large set.
constexpr std::int64_t own_records_ahead = 256;

// Returns the position of an example in the sequence of all ranks; `example` counts from this
// feeder's first.
std::int64_t position_of(const FeederOptions& options, std::int64_t example) {
  const std::int64_t step = options.first_step + example / options.batch;
  return (step * options.shards + options.shard) * options.batch + example % options.batch;
}

FeederOptions checked(FeederOptions options) {
  check(options.batch >= 1, "a batch needs at least one example");
  check(options.threads >= 1, "a feeder needs at least one thread");
  check(options.buffers >= 1, "a feeder needs at least one buffer");
  check(options.shard >= 0 && options.shard < options.shards, "a feeder's shard does not exist");
  check(options.first_step >= 0, "the global step cannot be negative");
  // Positions are 64-bit numbers; half of the range remains for the run.
  std::int64_t position = 0;
  const bool fits =
      !__builtin_mul_overflow(options.batch, std::int64_t{options.shards}, &position) &&
      !__builtin_mul_overflow(position, options.first_step, &position) &&
      position <= std::numeric_limits<std::int64_t>::max() / 2;
  check(fits, "the global step is too large for this batch size");
  return options;
}

}  // namespace

std::int64_t Sequence::operator[](std::int64_t position) const {
  const std::int64_t within = position % size_;
  if (order_ == Order::sequential) {
    return within;
  }
  const std::int64_t epoch = position / size_;
  return windowed_ ? WindowedPermutation(size_, seed_, epoch)(within)
                   : Permutation(size_, seed_, epoch)(within);
}

Sequence::Run Sequence::run_at(std::int64_t position) const {
  const WindowedPermutation order(size_, seed_, position / size_);
  const std::int64_t within = position % size_;
  Run run{.first = order.in_runs(within), .count = 1};
  while (run.count < WindowedPermutation::run && within + run.count < size_ &&
         order.in_runs(within + run.count) == run.first + run.count) {
    ++run.count;
  }
  return run;
}

Feeder::Feeder(const Dataset& dataset, FeederOptions options)
    : dataset_(dataset),
      options_(checked(std::move(options))),
      format_(dataset.format()),
      sequence_(dataset.size(), dataset.may_shuffle() ? options_.order : Order::sequential,
                options_.seed, dataset.likes_runs()),
      slots_(static_cast<std::size_t>(options_.buffers)) {
  check(dataset.size() > 0, "a data set without examples");
  allocate();
  for (int i = 0; i < options_.threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
  if (sequence_.has_windows()) {
    threads_.emplace_back([this](const std::stop_token& stop) { read_ahead(stop); });
  }
}

void Feeder::allocate() {
  const auto batch = static_cast<std::size_t>(options_.batch);
  const std::size_t label_bytes = aligned(batch * sizeof(std::int32_t));
  std::size_t image_bytes = 0;
  check(!__builtin_mul_overflow(batch, format_.bytes(), &image_bytes) &&
            image_bytes <= std::numeric_limits<std::size_t>::max() / 2,
        "the batch is larger than memory");
  const std::size_t bytes = aligned(image_bytes) + label_bytes;
  check_fits(bytes, slots_.size(), options_.batch_flag);
  for (Slot& slot : slots_) {
    memory_.push_back(options_.device == nullptr ? plain_memory(bytes)
                                                 : options_.device->allocate_host(bytes));
    std::byte* data = memory_.back().data();
    // The system maps a page at its first write: no batch shall wait for that.
    std::memset(data, 0, bytes);
    auto* labels = reinterpret_cast<std::int32_t*>(data + aligned(image_bytes));
    std::uninitialized_fill_n(labels, batch, 0);
    slot.batch.images = {data, image_bytes};
    slot.batch.labels = {labels, batch};
  }
}

const Batch& Feeder::next() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  if (given_back_ < delivered_) {
    Slot& before = slot_of(given_back_);
    before.filled = 0;
    ++given_back_;
    room_.notify_all();
  }
  Slot& slot = slot_of(delivered_);
  filled_.wait(lock, [this, &slot] { return slot.filled == options_.batch; });
  if (slot.error != nullptr) {
    std::rethrow_exception(slot.error);
  }
  slot.batch.step = options_.first_step + delivered_;
  ++delivered_;
  slot.batch.seconds_waited = seconds_since(start);
  return slot.batch;
}

bool Feeder::has_next() {
  const std::lock_guard lock(mutex_);
  // With one buffer the next batch overwrites the caller's.
  const bool apart = delivered_ - given_back_ < options_.buffers;
  const Slot& slot = slot_of(delivered_);
  return apart && slot.filled == options_.batch && slot.error == nullptr;
}

void Feeder::work(const std::stop_token& stop) {
  std::vector<std::byte> scratch(options_.transform ? format_.bytes() : 0);
  Piece piece;
  while (take(stop, piece)) {
    std::exception_ptr error;
    try {
      fill(piece, scratch);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    Slot& slot = slot_of(piece.begin / options_.batch);
    // Keeps the first error in order, so that every run fails the same way.
    if (error != nullptr && (slot.error == nullptr || piece.begin < slot.failed_example)) {
      slot.error = error;
      slot.failed_example = piece.begin;
    }
    slot.filled += piece.end - piece.begin;
    if (slot.filled == options_.batch) {
      filled_.notify_one();
    }
  }
}

bool Feeder::take(const std::stop_token& stop, Piece& piece) {
  std::unique_lock lock(mutex_);
  const bool room = room_.wait(lock, stop, [this] {
    return next_example_ / options_.batch < given_back_ + options_.buffers;
  });
  if (!room || stop.stop_requested()) {
    return false;
  }
  const auto most = static_cast<std::int64_t>(
      std::max<std::size_t>(1, piece_bytes / std::max<std::size_t>(1, format_.bytes())));
  const std::int64_t end_of_batch = (next_example_ / options_.batch + 1) * options_.batch;
  piece.begin = next_example_;
  piece.end = std::min(end_of_batch, piece.begin + most);
  next_example_ = piece.end;
  taken_.notify_all();
  return true;
}

void Feeder::read_ahead(const std::stop_token& stop) {
  // Each of several ranks needs a part of every run, which may be on another host's disk: ranks
  // prefetch only their own records of the next batches.
  const bool whole_runs = options_.shards == 1;
  const std::int64_t lead = whole_runs ? WindowedPermutation::window : own_records_ahead;
  std::int64_t done = 0;  // examples already prefetched
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      taken_.wait(lock, stop, [&] { return done < next_example_ + lead; });
    }
    if (stop.stop_requested()) {
      return;
    }
    const std::int64_t position = position_of(options_, done);
    const Sequence::Run run =
        whole_runs ? sequence_.run_at(position) : Sequence::Run{sequence_[position], 1};
    try {
      dataset_.read_ahead(run.first, run.count);
    } catch (const Error&) {
      return;  // the reading thread reports the file
    }
    done += run.count;
  }
}

void Feeder::fill(const Piece& piece, std::span<std::byte> scratch) {
  for (std::int64_t example = piece.begin; example < piece.end; ++example) {
    read(example, scratch);
  }
}

void Feeder::read(std::int64_t example, std::span<std::byte> scratch) {
  const std::int64_t batch = example / options_.batch;
  const std::int64_t within = example % options_.batch;
  const std::int64_t position = position_of(options_, example);
  Batch& target = slot_of(batch).batch;
  const auto at = static_cast<std::size_t>(within);
  const auto image = target.images.subspan(at * format_.bytes(), format_.bytes());
  std::int32_t* label = &target.labels[at];
  const Place place{.position = position, .in_batch = options_.shard * options_.batch + within};
  if (options_.transform) {
    dataset_.read_for(sequence_[position], place, {scratch, label});
    options_.transform(scratch, image, position);
  } else {
    dataset_.read_for(sequence_[position], place, {image, label});
  }
}

}  // namespace cnn::data
