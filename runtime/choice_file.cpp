#include "runtime/choice_file.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "runtime/error.h"

namespace cnn {
namespace {

constexpr std::string_view first_line = "# plan cache of cnn_benchmarks, format 1";

// No run makes a file of this size; one that is larger is something else.
constexpr std::uintmax_t max_bytes = std::uintmax_t{256} << 20U;

// Processes that hold it at one time wait for each other.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& file)
      : descriptor_(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666)) {
    check(descriptor_ >= 0,
          "cannot make " + file.string() + ", which guards the plan cache: " + text_of_errno());
    while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }  // a file system without locks has one writer at a time, or loses a choice
  }
  ~FileLock() { ::close(descriptor_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  static std::string text_of_errno() { return std::generic_category().message(errno); }
  int descriptor_ = -1;
};

void check_first_line(std::istream& in, const std::filesystem::path& file) {
  std::string line;
  check(std::getline(in, line) && line == first_line,
        file.string() + " is no plan cache: its first line is not \"" + std::string(first_line) +
            "\"; name another file or delete it");
}

// A pipe would block the program, and a device may never end.
void check_is_file(const std::filesystem::path& file) {
  std::error_code problem;
  if (!std::filesystem::exists(file, problem)) {
    return;
  }
  const bool regular = std::filesystem::is_regular_file(file, problem);
  check(regular && std::filesystem::file_size(file, problem) <= max_bytes && !problem,
        file.string() + " is no plan cache: it is " + (regular ? "too large" : "no regular file") +
            "; name another file");
}

bool read_seconds(std::string_view text, double& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(into);
}

}  // namespace

ChoiceFile::ChoiceFile(std::filesystem::path file, Owner owner, bool may_create)
    : file_(std::move(file)), owner_(std::move(owner)) {
  check_is_file(file_);
  errno = 0;
  std::ifstream in(file_);
  if (!in) {
    // Looking for the file again would find one that another process has made in between.
    check(may_create && errno == ENOENT,
          "cannot read the plan cache " + file_.string() + "; --tune makes one");
    return;
  }
  check_first_line(in, file_);
  std::string line;
  for (std::size_t number = 2; std::getline(in, line); ++number) {
    read(line, number);
  }
}

void ChoiceFile::read(const std::string& line, std::size_t number) {
  // Device, version and key end at the first three tabs, the choice at the last one.
  const std::size_t device = line.find('\t');
  const std::size_t version = device < line.size() ? line.find('\t', device + 1) : line.npos;
  const std::size_t key = version < line.size() ? line.find('\t', version + 1) : line.npos;
  const std::size_t choice = line.rfind('\t');
  const std::string_view text = line;
  Entry entry;
  bool good =
      key < choice && choice < text.size() && read_seconds(text.substr(choice + 1), entry.seconds);
  if (good && text.substr(0, device) == owner_.device &&
      text.substr(device + 1, version - device - 1) == owner_.version) {
    entry.choice = text.substr(key + 1, choice - key - 1);
    good = owner_.is_choice(entry.choice);
    entries_[line.substr(version + 1, key - version - 1)] = std::move(entry);
  } else {
    ++foreign_;
  }
  check(good, "line " + std::to_string(number) + " of the plan cache " + file_.string() +
                  " is damaged; delete the line, or the file and run with --tune");
}

const ChoiceFile::Entry* ChoiceFile::find(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

std::string ChoiceFile::start_of_line(const std::string& key) const {
  return owner_.device + '\t' + owner_.version + '\t' + key + '\t';
}

void ChoiceFile::store(const std::string& key, const Entry& entry) {
  const FileLock lock(file_.string() + ".lock");
  std::ostringstream text;
  text << first_line << '\n';
  const std::string start = start_of_line(key);
  bool stored = false;
  const auto write = [&] {
    text << start << entry.choice << '\t' << entry.seconds << '\n';
    stored = true;
  };
  if (std::ifstream in(file_); in) {
    check_first_line(in, file_);
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with(start)) {
        text << line << '\n';
      } else if (!stored) {
        write();
      }
    }
  }
  if (!stored) {
    write();
  }
  const std::filesystem::path temporary = file_.string() + ".new";  // one at a time: it is locked
  std::ofstream out(temporary);
  out << text.str();
  out.close();
  std::error_code problem;
  if (out.good()) {
    std::filesystem::rename(temporary, file_, problem);
  }
  check(out.good() && !problem, "cannot write the plan cache " + file_.string());
  entries_[key] = entry;
}

}  // namespace cnn
