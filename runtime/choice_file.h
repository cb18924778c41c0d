#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace cnn {

// A plan cache: a text file of kernel choices that were timed on some device, one line for each, of
// two fields that name the owner, the key of what is computed, the choice in one or more fields,
// and seconds, with tabs between. A later line takes the place of an earlier one of the same key.
// Processes may share a file: each adds its choices to those of the others.
class ChoiceFile {
 public:
  // The owner of the lines that are read and written; lines of other owners stay in the file
  // unused.
  struct Owner {
    std::string device;   // with all that may change which choice is the fastest, without tabs
    std::string version;  // of the library that most choices belong to, without tabs
    // Returns whether a line of this owner holds a choice.
    bool (*is_choice)(std::string_view text) = nullptr;
  };
  struct Entry {
    std::string choice;
    double seconds = 0;
  };

  // Reads the file. may_create: a missing file is empty. Throws Error that names the file, and the
  // line if it is damaged.
  ChoiceFile(std::filesystem::path file, Owner owner, bool may_create);

  // Returns the entry, which lives until the next store(); null if there is none.
  const Entry* find(const std::string& key) const;
  // Writes the file anew at once, so that nothing is lost if the run ends early: what it holds by
  // now, with this choice. A reader sees the file before or after, never between; processes that
  // store at one time wait for each other at a lock, FILE.lock. Throws Error if the file cannot be
  // written, or has become something else.
  void store(const std::string& key, const Entry& entry);

  std::size_t size() const { return entries_.size(); }
  std::size_t foreign() const { return foreign_; }  // lines for other owners
  const std::filesystem::path& file() const { return file_; }

 private:
  void read(const std::string& line, std::size_t number);
  std::string start_of_line(const std::string& key) const;

  std::filesystem::path file_;
  Owner owner_;
  std::map<std::string, Entry> entries_;
  std::size_t foreign_ = 0;
};

}  // namespace cnn
