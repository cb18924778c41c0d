#include "layers/cuda/cudnn/plan_cache.h"

#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <string_view>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "layers/cuda/cudnn/choice_text.h"
#include "runtime/error.h"

namespace cnn::layers::cuda {
namespace {

constexpr std::string_view first_line = "# plan cache of cnn_benchmarks, format 1";

template <class Number>
bool read_number(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

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

std::string first_field(const PlanCache::Owner& owner) {
  return owner.device + ", driver " + owner.driver + ", cuBLASLt " +
         std::to_string(owner.cublaslt_version);
}

void check_first_line(std::istream& in, const std::filesystem::path& file) {
  std::string line;
  check(std::getline(in, line) && line == first_line,
        file.string() + " is no plan cache: its first line is not \"" + std::string(first_line) +
            "\"; name another file or delete it");
}

}  // namespace

PlanCache::PlanCache(std::filesystem::path file, const Owner& owner, bool may_create)
    : file_(std::move(file)), owner_(first_field(owner)), cudnn_version_(owner.cudnn_version) {
  std::ifstream in(file_);
  if (!in) {
    check(may_create && !std::filesystem::exists(file_),
          "cannot read the plan cache " + file_.string() + "; --tune makes one");
    return;
  }
  check_first_line(in, file_);
  std::string line;
  for (std::size_t number = 2; std::getline(in, line); ++number) {
    read(line, number);
  }
}

void PlanCache::read(const std::string& line, std::size_t number) {
  // Owner, version and key end at the first three tabs, the choice at the last one.
  const std::size_t owner = line.find('\t');
  const std::size_t version = owner < line.size() ? line.find('\t', owner + 1) : line.npos;
  const std::size_t key = version < line.size() ? line.find('\t', version + 1) : line.npos;
  const std::size_t choice = line.rfind('\t');
  Entry entry;
  std::size_t cudnn = 0;
  const std::string_view text = line;
  const bool good = key < choice && choice < text.size() &&
                    read_number(text.substr(owner + 1, version - owner - 1), cudnn) &&
                    read_choice_fields(text.substr(key + 1, choice - key - 1), entry.choice) &&
                    read_number(text.substr(choice + 1), entry.seconds);
  check(good, "line " + std::to_string(number) + " of the plan cache " + file_.string() +
                  " is damaged; delete the line, or the file and run with --tune");
  if (text.substr(0, owner) == owner_ && cudnn == cudnn_version_) {
    entries_[line.substr(version + 1, key - version - 1)] = std::move(entry);
  } else {
    ++foreign_;
  }
}

std::optional<PlanCache::Entry> PlanCache::find(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? std::nullopt : std::optional(found->second);
}

std::string PlanCache::start_of_line(const std::string& key) const {
  return owner_ + '\t' + std::to_string(cudnn_version_) + '\t' + key + '\t';
}

void PlanCache::store(const std::string& key, const Entry& entry) {
  const FileLock lock(file_.string() + ".lock");
  std::ostringstream text;
  text << first_line << '\n';
  const std::string start = start_of_line(key);
  bool stored = false;
  const auto write = [&] {
    text << start << choice_fields(entry.choice) << '\t' << entry.seconds << '\n';
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
  const std::filesystem::path fresh = file_.string() + ".new";  // one at a time: it is locked
  std::ofstream out(fresh);
  out << text.str();
  out.close();
  std::error_code problem;
  if (out.good()) {
    std::filesystem::rename(fresh, file_, problem);
  }
  check(out.good() && !problem, "cannot write the plan cache " + file_.string());
  entries_[key] = entry;
}

}  // namespace cnn::layers::cuda
