#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace cnn::bench {

// The speed and the room of the disk behind a folder, for tensors that host memory has no room for.
struct DiskSpeed {
  std::string label;  // how messages name the folder: "--lms_disk=/scratch"
  std::filesystem::path folder;
  bool is_direct = false;      // transfers bypass the page cache
  std::size_t free_bytes = 0;  // that a run may take
  double write_bytes_per_second = 0, read_bytes_per_second = 0;

  // Returns the part of one of several runs that use the disk at once.
  DiskSpeed shared_by(int runs) const;
};

// Writes and reads a temporary file in the folder as a step does, for at most about a second.
// Throws Error if it cannot.
DiskSpeed measure_disk(const std::filesystem::path& folder);

// Returns a line for the user about a file system that refuses direct I/O; empty: it does not.
std::string disk_note(const DiskSpeed& disk);

}  // namespace cnn::bench
