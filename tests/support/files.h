#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace cnn::tests {

// A new, empty and unique folder, even for tests that run concurrently. The destructor removes it
// with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    // Uses memory if there is enough (a container may have little), so that tests do not wait for
    // fsync on a disk.
    const std::filesystem::path memory = "/dev/shm";
    std::error_code none;
    const std::filesystem::space_info space = std::filesystem::space(memory, none);
    const bool in_memory = !none && space.available >= std::uintmax_t{1} << 30;
    std::string name =
        ((in_memory ? memory : std::filesystem::temp_directory_path()) / "cnn_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("no temporary folder " + name);
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

  // Writes a file of that name and makes its folder if necessary. Returns the file's path.
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::filesystem::path path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::vector<std::string> names() const {  // names of the files, sorted
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace cnn::tests
