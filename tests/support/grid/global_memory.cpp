#include "tests/support/grid/global_memory.h"

namespace cnn::tests::grid {

GlobalMemory::Id GlobalMemory::id_of(const GlobalMoment& now) {
  if (moments_.empty() || moments_.back() != now) {
    moments_.push_back(now);
  }
  return static_cast<Id>(moments_.size());
}

bool GlobalMemory::is_before(Id earlier, const GlobalMoment& now, const WarpClock& known) const {
  if (earlier == 0) {
    return true;
  }
  const GlobalMoment& then = moments_[earlier - 1];
  return then.block == now.block && is_ordered(then.moment, now.moment, known);
}

bool GlobalMemory::races(const Cell& cell, Access access, const GlobalMoment& now,
                         const WarpClock& known) {
  const auto found = [&](Id earlier, bool wrote) {
    if (is_before(earlier, now, known)) {
      return false;
    }
    race_ = {.earlier = moments_[earlier - 1], .wrote = wrote};
    return true;
  };
  const bool both_atomic = access == Access::atomic && cell.atomic;
  if (!both_atomic && found(cell.writer, true)) {
    return true;
  }
  for (std::size_t i = 0; i < cell.readers.size() && access != Access::read; ++i) {
    if (found(cell.readers[i], false)) {
      return true;
    }
  }
  return false;
}

void GlobalMemory::note_reader(Cell& cell, Id id) const {
  if (cell.readers[0] != 0) {
    const GlobalMoment& last = moments_[cell.readers[0] - 1];
    const GlobalMoment& now = moments_[id - 1];
    if (last.block != now.block) {
      cell.readers[2] = cell.readers[0];
      cell.readers[1] = 0;
    } else if (last.moment.thread != now.moment.thread) {
      cell.readers[1] = cell.readers[0];
    }
  }
  cell.readers[0] = id;
}

GlobalMemory::Line& GlobalMemory::line_of(std::uintptr_t number) {
  if (last_line_ == nullptr || last_number_ != number) {
    last_number_ = number;
    last_line_ = &lines_[number];
  }
  return *last_line_;
}

const GlobalMemory::Race* GlobalMemory::touch(const std::byte* at, std::size_t bytes, Access access,
                                              const GlobalMoment& now, const WarpClock& known) {
  const Id id = id_of(now);
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  for (std::uintptr_t byte = begin; byte < begin + bytes; ++byte) {
    Cell& cell = line_of(byte / line_bytes)[byte % line_bytes];
    if (races(cell, access, now, known)) {
      return &race_;
    }
    if (access == Access::read) {
      note_reader(cell, id);
    } else {
      cell.writer = id;
      cell.atomic = access == Access::atomic;
    }
  }
  return nullptr;
}

}  // namespace cnn::tests::grid
