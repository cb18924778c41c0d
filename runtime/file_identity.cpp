#include "runtime/file_identity.h"

#include <system_error>

namespace cnn {
namespace {

namespace fs = std::filesystem;

// Follows links whose target does not exist yet, at which weakly_canonical() stops.
fs::path follow_dangling(fs::path path) {
  constexpr int max_links = 40;  // as Linux
  std::error_code failure;
  for (int i = 0; i < max_links && fs::is_symlink(path, failure) && !fs::exists(path, failure);
       ++i) {
    path = path.parent_path() / fs::read_symlink(path, failure);
  }
  return path;
}

}  // namespace

std::string file_identity(const fs::path& path) {
  std::error_code failure;
  const fs::file_type type = fs::status(path, failure).type();
  const bool holds_bytes = type == fs::file_type::regular || type == fs::file_type::directory;
  if (path.parent_path() == "/dev" || path.parent_path() == "/dev/fd" ||
      (!holds_bytes && fs::exists(path, failure))) {
    return {};
  }
  const fs::path whole =
      fs::weakly_canonical(follow_dangling(fs::absolute(path, failure)), failure);
  return failure ? path.string() : whole.string();
}

}  // namespace cnn
