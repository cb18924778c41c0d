#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cnn::bench {

// A file that a flag names. The target of links decides how it is written: regular files are
// replaced atomically, pipes and devices are written to.
class OutputFile {
 public:
  // flag: names the path in messages. Throws Error if the path is not writable; leaves an existing
  // file untouched and creates none.
  OutputFile(std::string_view flag, const std::string& path);

  // True: each write atomically replaces the file, so it may be repeated. False: each write
  // appends.
  bool replaceable() const { return mode_ == WriteMode::replace; }

  // Throws Error with flag and path.
  void write(std::string_view text) const;

 private:
  enum class WriteMode : std::uint8_t { replace, in_place, descriptor };

  void replace(std::string_view text) const;
  void write_in_place(std::string_view text) const;
  [[noreturn]] void fail(int problem) const;

  std::string name_;    // --flag=path
  std::string target_;  // target of the links
  WriteMode mode_ = WriteMode::replace;
  int descriptor_ = -1;  // stdout or stderr, if the path leads there
};

// Creates the missing parent folders of a file; opening the file reports any failure.
void make_folder_of(const std::string& path);
// Calls make_folder_of() and returns `path`.
std::string with_folder(const std::string& path);

// Appends the text to a file and creates it if missing; an empty text tests whether this is
// possible. Throws Error with flag and path.
void append_to_file(std::string_view flag, const std::string& path, std::string_view text);

}  // namespace cnn::bench
