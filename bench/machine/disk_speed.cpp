#include "bench/machine/disk_speed.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <system_error>

#include "runtime/disk_file.h"
#include "runtime/error.h"
#include "runtime/memory_plan.h"
#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

constexpr std::size_t piece_bytes = std::size_t{8} << 20U;  // about one tensor
constexpr std::size_t max_pieces = 8;
constexpr double max_seconds = 0.5;  // of each direction

// Calls transfer(offset) for piece after piece while time is left; returns how many.
template <class Transfer>
std::size_t transfer_pieces(std::size_t pieces, Transfer transfer) {
  const auto start = std::chrono::steady_clock::now();
  std::size_t done = 0;
  while (done < pieces && (done == 0 || seconds_since(start) < max_seconds)) {
    transfer(done * piece_bytes);
    ++done;
  }
  return done;
}

double bytes_per_second(std::size_t pieces, std::chrono::steady_clock::time_point start) {
  constexpr double shortest = 1e-9;
  return static_cast<double>(pieces * piece_bytes) / std::max(shortest, seconds_since(start));
}

// Zeros would flatter a file system that compresses.
void fill_randomly(std::span<std::byte> bytes) {
  std::minstd_rand random;
  std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random() >> 8U); });
}

// Leaves a twentieth to others.
std::size_t free_bytes(const std::filesystem::path& folder, const std::string& label) {
  std::error_code problem;
  const std::filesystem::space_info space = std::filesystem::space(folder, problem);
  check(!problem, fmt::format("{}: {}", label, problem.message()));
  return space.available / 20 * 19;
}

}  // namespace

DiskSpeed DiskSpeed::shared_by(int runs) const {
  DiskSpeed share = *this;
  share.free_bytes /= static_cast<std::size_t>(runs);
  share.write_bytes_per_second /= runs;
  share.read_bytes_per_second /= runs;
  return share;
}

DiskSpeed measure_disk(const std::filesystem::path& folder) {
  DiskSpeed disk{.label = fmt::format("--lms_disk={}", folder.string()), .folder = folder};
  const DiskFile file(folder, disk.label);
  disk.is_direct = file.is_direct();
  disk.free_bytes = free_bytes(folder, disk.label);
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(disk_alignment, piece_bytes), &std::free);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  const std::span<std::byte> bytes(static_cast<std::byte*>(memory.get()), piece_bytes);
  fill_randomly(bytes);
  // A nearly full disk is measured by one piece.
  const std::size_t pieces =
      std::clamp<std::size_t>(disk.free_bytes / piece_bytes / 2, 1, max_pieces);
  auto start = std::chrono::steady_clock::now();
  const std::size_t written =
      transfer_pieces(pieces, [&](std::size_t at) { file.write(bytes, at); });
  file.flush();
  disk.write_bytes_per_second = bytes_per_second(written, start);
  start = std::chrono::steady_clock::now();
  const std::size_t read = transfer_pieces(written, [&](std::size_t at) { file.read(bytes, at); });
  disk.read_bytes_per_second = bytes_per_second(read, start);
  return disk;
}

std::string disk_note(const DiskSpeed& disk) {
  return disk.is_direct
             ? std::string()
             : fmt::format(
                   "{}: this file system refuses direct I/O, so ordinary I/O is used, whose "
                   "cache takes host memory",
                   disk.label);
}

}  // namespace cnn::bench
