#include "runtime/file_identity.h"

#include <system_error>

namespace cnn {
namespace fs = std::filesystem;

fs::path end_of_links(fs::path path) {
  constexpr int max_links = 40;  // as in Linux
  std::error_code problem;
  for (int i = 0; i < max_links && fs::is_symlink(path, problem); ++i) {
    const fs::path next = fs::read_symlink(path, problem);
    path = path.parent_path() / next;  // an absolute path replaces it
  }
  return path;
}

std::string file_identity(const fs::path& path) {
  std::error_code failure;
  const fs::file_type type = fs::status(path, failure).type();
  const bool holds_bytes = type == fs::file_type::regular || type == fs::file_type::directory;
  if (path.parent_path() == "/dev" || path.parent_path() == "/dev/fd" ||
      (!holds_bytes && fs::exists(path, failure))) {
    return {};
  }
  const fs::path whole = fs::weakly_canonical(end_of_links(fs::absolute(path, failure)), failure);
  return failure ? path.string() : whole.string();
}

}  // namespace cnn
