#include "lms/disk_lane.h"

#include <algorithm>
#include <numeric>

namespace cnn::lms {
namespace {

double seconds_of(std::size_t bytes, double bytes_per_second) {
  return bytes_per_second > 0 ? static_cast<double>(bytes) / bytes_per_second : 0;
}

}  // namespace

void DiskLane::start(std::span<const std::size_t> bytes) {
  stored_ = 0;
  end_ = 0;
  if (problem_.disk_bytes == 0) {
    return;
  }
  std::size_t left = std::reduce(bytes.begin(), bytes.end(), std::size_t{0});
  while (left > problem_.host_bytes && stored_ < bytes.size()) {
    left -= bytes[stored_++];
  }
  if (stored_ == 0) {
    return;
  }
  bytes_.assign(bytes.begin(), bytes.end());
  store_ends_.clear();
  loaded_.assign(stored_, 0);
  has_returned_.assign(bytes.size(), false);
  returns_.clear();
  freed_stores_ = freed_returns_ = held_ = 0;
}

double DiskLane::admit(std::size_t swap_out, double time) {
  return stored_ == 0 ? time : make_room(bytes_[swap_out], time);
}

// Takes bytes on the host; those of ended Stores become free first, then those of swap-ins.
double DiskLane::make_room(std::size_t bytes, double time) {
  held_ += bytes;
  while (held_ > problem_.host_bytes) {
    if (freed_stores_ < store_ends_.size()) {
      time = std::max(time, store_ends_[freed_stores_]);
      held_ -= bytes_[freed_stores_++];
    } else if (freed_returns_ < returns_.size()) {
      time = std::max(time, returns_[freed_returns_].first);
      held_ -= returns_[freed_returns_++].second;
    } else {
      break;
    }
  }
  return time;
}

void DiskLane::arrived(std::size_t swap_out, double time) {
  if (is_stored(swap_out)) {
    end_ = std::max(end_, time) + problem_.copy_latency +
           seconds_of(bytes_[swap_out], problem_.store_bytes_per_second);
    store_ends_.push_back(end_);
  }
}

double DiskLane::back(std::size_t swap_out) {
  if (!is_stored(swap_out)) {
    return 0;
  }
  if (loaded_[swap_out] == 0) {
    end_ = make_room(bytes_[swap_out], end_) + problem_.copy_latency +
           seconds_of(bytes_[swap_out], problem_.load_bytes_per_second);
    loaded_[swap_out] = end_;
  }
  return loaded_[swap_out];
}

void DiskLane::returned(std::size_t swap_out, double time) {
  if (stored_ > 0 && !has_returned_[swap_out]) {
    has_returned_[swap_out] = true;
    returns_.emplace_back(time, bytes_[swap_out]);
  }
}

}  // namespace cnn::lms
