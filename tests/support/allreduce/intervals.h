#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

#include "allreduce/step_list.h"

namespace cnn::allreduce {

// A set of elements, stored as disjoint ranges.
class Intervals {
 public:
  bool meets(const Range& range) const {
    const auto next = ends_.lower_bound(range.end);  // the first range that begins behind this one
    return next != ends_.begin() && std::prev(next)->second > range.begin;
  }
  void add(Range range) {
    auto next = ends_.upper_bound(range.begin);
    if (next != ends_.begin() && std::prev(next)->second >= range.begin) {
      --next;
    }
    while (next != ends_.end() && next->first <= range.end) {
      range = {std::min(range.begin, next->first), std::max(range.end, next->second)};
      next = ends_.erase(next);
    }
    ends_.emplace(range.begin, range.end);
  }
  void clear() { ends_.clear(); }
  bool empty() const { return ends_.empty(); }
  // End of each range by its begin.
  const std::map<std::size_t, std::size_t>& ends() const { return ends_; }

 private:
  std::map<std::size_t, std::size_t> ends_;
};

}  // namespace cnn::allreduce
