#include "tests/support/grid/shared_memory.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "runtime/error.h"

namespace cnn::tests::grid {

namespace {

std::string element_name(const SharedArray& array, std::int64_t index) {
  return "element " + std::to_string(index) + " of the shared array at " +
         std::string(array.where.file_name()) + ":" + std::to_string(array.where.line()) + " in " +
         array.where.function_name();
}

}  // namespace

std::string_view verb(Access access) {
  switch (access) {
    case Access::read:
      return "reads";
    case Access::write:
      return "writes";
    case Access::atomic:
      break;
  }
  return "changes (atomically)";
}

std::string thread_name(std::size_t thread) {
  const auto text = [](std::size_t value) { return std::to_string(value); };
  return "thread (" + text(thread % blockDim.x) + ", " + text(thread / blockDim.x % blockDim.y) +
         ", " + text(thread / blockDim.x / blockDim.y) + ")";
}

void SharedMemory::reset() {
  std::ranges::fill(bytes_, std::byte{0xFF});
  ++block_;
}

bool is_ordered(const Moment& then, const Moment& now, const WarpClock& known) {
  return then.interval != now.interval || then.thread == now.thread ||
         (then.thread / warp_size == now.thread / warp_size &&
          known[then.thread % warp_size] > then.clock);
}

void SharedMemory::check_cell(const Cell& cell, const Visit& visit) {
  const auto refuse = [&](const std::string& why) {
    throw Error(thread_name(visit.now.thread) + " " + std::string(verb(visit.access)) + " " +
                element_name(visit.array, visit.index) + ", " + why);
  };
  const bool both_atomic = visit.access == Access::atomic && cell.writer.atomic;
  if (visit.access != Access::write && !cell.writer.made) {
    refuse("which no thread of this block has written");
  }
  if (cell.writer.made && !both_atomic && !is_ordered(cell.writer.moment, visit.now, visit.known)) {
    refuse("which " + thread_name(cell.writer.moment.thread) + " wrote with no barrier between");
  }
  if (visit.access == Access::read) {
    return;
  }
  for (const Note& reader : cell.readers) {
    if (reader.made && !is_ordered(reader.moment, visit.now, visit.known)) {
      refuse("which " + thread_name(reader.moment.thread) + " read with no barrier between");
    }
  }
}

void SharedMemory::note(Cell& cell, const Visit& visit) {
  const Note made{.moment = visit.now, .made = true, .atomic = visit.access == Access::atomic};
  if (visit.access != Access::read) {
    cell.writer = made;
    return;
  }
  if (cell.readers[0].moment.thread != visit.now.thread) {
    cell.readers[1] = cell.readers[0];
  }
  cell.readers[0] = made;
}

std::byte* SharedMemory::touch(const SharedArray& array, std::int64_t index, Access access,
                               const Moment& now, const WarpClock& known) {
  if (index < 0 || index >= array.count) {
    throw Error(thread_name(now.thread) + " " + std::string(verb(access)) + " " +
                element_name(array, index) + ", which has " + std::to_string(array.count));
  }
  const std::size_t first = array.offset + static_cast<std::size_t>(index) * array.element_bytes;
  const Visit visit{array, index, access, now, known};
  for (std::size_t i = first; i < first + array.element_bytes; ++i) {
    if (cells_[i].block != block_) {
      cells_[i] = {.block = block_, .writer = {}, .readers = {}};
    }
    check_cell(cells_[i], visit);
    note(cells_[i], visit);
  }
  return bytes_.data() + first;
}

}  // namespace cnn::tests::grid
