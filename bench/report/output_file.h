#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cnn::bench {

// A file that a flag names. Links are followed, and what stands at their end decides how it is
// written: regular files are replaced as a whole, pipes and devices are written into.
class OutputFile {
 public:
  // flag: whose value the path is, for messages. Throws Error if the path cannot be written; what
  // is there is not touched, and nothing is made.
  OutputFile(std::string_view flag, const std::string& path);

  // True: a reader sees the old file or the whole new one, so it may be written again and again.
  // False: each write comes behind the last.
  bool replaceable() const { return way_ == Way::replace; }

  // Throws Error, naming flag and path.
  void write(std::string_view text) const;

 private:
  enum class Way : std::uint8_t { replace, in_place, descriptor };

  void replace(std::string_view text) const;
  void write_in_place(std::string_view text) const;
  [[noreturn]] void fail(int problem) const;

  std::string name_;    // --flag=path
  std::string target_;  // where the links end
  Way way_ = Way::replace;
  int descriptor_ = -1;  // stdout or stderr, if that is what the path leads to
};

// Makes the folders above a file that are missing; whoever opens the file tells what went wrong.
void make_folder_of(const std::string& path);
// Returns `path` after make_folder_of().
std::string with_folder(const std::string& path);

// Adds the text to the end of a file, which is made if it is missing; an empty text shows whether
// that is possible. Throws Error, naming flag and path.
void append_to_file(std::string_view flag, const std::string& path, std::string_view text);

}  // namespace cnn::bench
