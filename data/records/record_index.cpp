#include "data/records/record_index.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <utility>

#include "data/file.h"
#include "data/random.h"
#include "data/records/index_file.h"
#include "data/records/record.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;

// Reading headers waits for the disk, so more threads than processors help.
constexpr unsigned threads_per_processor = 4, max_threads = 32;
constexpr std::int64_t max_shards = 1 << 20;

// Returns the number after the last "-of-" of a shard's name, which an ending such as .tfrecord may
// follow; 0 if there is none. A writer's unfinished file is no shard.
std::int64_t promised_shards(std::string_view name) {
  const std::size_t at = name.rfind("-of-");
  if (at == std::string_view::npos || name.ends_with(AtomicFile::suffix)) {
    return 0;
  }
  std::int64_t number = 0;
  for (const char letter : name.substr(at + 4, name.find('.', at) - (at + 4))) {
    if (letter < '0' || letter > '9' || number > max_shards) {
      return 0;
    }
    number = 10 * number + (letter - '0');
  }
  return number;
}

bool is_shard_of(std::string_view name, const std::string& subset) {
  return name.starts_with(subset + "-") && promised_shards(name) > 0;
}

std::vector<Shard> find_shards(const IndexOptions& options) {
  std::error_code failed;
  std::vector<Shard> shards;
  for (fs::directory_iterator entry(options.dir, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (is_shard_of(entry->path().filename().string(), options.subset)) {
      shards.push_back({.path = entry->path(), .lengths = {}});
    }
  }
  check(!failed, "cannot read the folder " + options.dir.string() + ": " + failed.message());
  return shards;
}

std::vector<Shard> list_shards(const IndexOptions& options) {
  std::vector<Shard> shards = find_shards(options);
  check(!shards.empty(),
        "there are no files " + options.subset + "-*-of-* in " + options.dir.string());
  std::ranges::sort(shards, {}, &Shard::path);
  for (Shard& shard : shards) {
    struct stat status {};
    if (::stat(shard.path.c_str(), &status) != 0) {
      const std::error_code reason(errno, std::generic_category());
      throw Error("cannot read " + shard.path.string() + ": " + reason.message());
    }
    shard.bytes = static_cast<std::uint64_t>(status.st_size);
    shard.modified = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  }
  return shards;
}

std::string broken_end_text(const Shard& shard, const RecordLengths& found) {
  return shard.path.string() + ": left out all behind byte " + std::to_string(*found.broken_at) +
         " of " + std::to_string(shard.bytes) + ", where a record is broken: " + found.problem;
}

// Scans shards with several threads; the first failed shard in order decides the error.
class Scan {
 public:
  Scan(std::vector<Shard>& shards, bool skip_broken)
      : shards_(shards),
        skip_broken_(skip_broken),
        notices_(shards.size()),
        errors_(shards.size()) {}

  std::vector<std::string> run() {
    const unsigned wanted =
        std::clamp(threads_per_processor * std::thread::hardware_concurrency(), 1U, max_threads);
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < std::min<std::size_t>(wanted, shards_.size()); ++i) {
        threads.emplace_back([this] { work(); });
      }
    }
    std::vector<std::string> notices;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      if (errors_[i] != nullptr) {
        std::rethrow_exception(errors_[i]);
      }
      if (!notices_[i].empty()) {
        notices.push_back(notices_[i]);
      }
    }
    return notices;
  }

 private:
  void work() {
    for (std::size_t i = next_++; i < shards_.size(); i = next_++) {
      try {
        scan(i);
      } catch (...) {
        errors_[i] = std::current_exception();
      }
    }
  }
  void scan(std::size_t i) {
    Shard& shard = shards_[i];
    RecordLengths found = scan_records(InputFile(shard.path));
    if (found.broken_at) {
      check(skip_broken_, broken_record_text(shard.path, *found.broken_at, found.problem));
      notices_[i] = broken_end_text(shard, found);
    }
    shard.lengths = std::move(found.bytes);
  }

  std::vector<Shard>& shards_;
  bool skip_broken_;
  std::atomic<std::size_t> next_ = 0;
  std::vector<std::string> notices_;
  std::vector<std::exception_ptr> errors_;
};

fs::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') {
    return fs::path(cache) / "cnn_benchmarks";
  }
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? fs::path(home) / ".cache" / "cnn_benchmarks"
                                         : fs::path();
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0;
  for (const char letter : text) {
    hash = random_bits(hash, static_cast<unsigned char>(letter));
  }
  return hash;
}

void save(const IndexOptions& options, const std::vector<Shard>& shards) {
  for (const fs::path& path : index_paths(options)) {
    std::error_code ignored;
    if (path.parent_path() != options.dir) {
      fs::create_directories(path.parent_path(), ignored);
    }
    if (save_index(path, shards)) {
      return;
    }
  }
}

std::vector<std::string> missing_shards(const std::vector<Shard>& shards) {
  const std::string name = shards.back().path.filename().string();
  const std::int64_t promised = promised_shards(name);
  const auto found = static_cast<std::int64_t>(shards.size());
  if (found >= promised) {
    return {};
  }
  return {shards.back().path.parent_path().string() + " has " + std::to_string(found) + " of the " +
          std::to_string(promised) + " shards that " + name +
          " promises; an epoch is what they hold"};
}

// Returns one notice about shards without a byte, which an interrupted copy may leave.
std::vector<std::string> empty_shards(const std::vector<Shard>& shards) {
  const auto is_empty = [](const Shard& shard) { return shard.bytes == 0; };
  const auto first = std::ranges::find_if(shards, is_empty);
  if (first == shards.end()) {
    return {};
  }
  const auto count = std::ranges::count_if(shards, is_empty);
  const std::string path = first->path.string();
  return {(count == 1 ? path + " is an empty file"
                      : std::to_string(count) + " shards are empty files, the first is " + path) +
          ": an epoch is what the other shards hold"};
}

}  // namespace

RecordIndex::RecordIndex(std::vector<Shard> shards) : shards_(std::move(shards)) {
  for (const Shard& shard : shards_) {
    first_.push_back(size());
    std::uint64_t offset = 0;
    for (const std::uint32_t bytes : shard.lengths) {
      places_.push_back(offset);
      offset += bytes + record_frame_bytes;
    }
  }
}

RecordLocation RecordIndex::operator[](std::int64_t record) const {
  const auto after = std::ranges::upper_bound(first_, record);
  const auto shard = static_cast<std::size_t>(after - first_.begin()) - 1;
  const auto within = static_cast<std::size_t>(record - first_[shard]);
  return {.shard = shard,
          .offset = places_[static_cast<std::size_t>(record)],
          .bytes = shards_[shard].lengths[within]};
}

std::uint64_t RecordIndex::bytes() const {
  std::uint64_t bytes = 0;
  for (const Shard& shard : shards_) {
    bytes += shard.bytes;
  }
  return bytes;
}

bool has_record_shards(const IndexOptions& options) { return !find_shards(options).empty(); }

std::vector<fs::path> index_paths(const IndexOptions& options) {
  std::vector<fs::path> paths{options.dir / ("." + options.subset + ".record_index")};
  std::error_code failed;
  const fs::path whole = fs::absolute(options.dir, failed);
  if (const fs::path cache = cache_folder(); !cache.empty() && !failed) {
    paths.push_back(
        cache / (options.subset + "-" + std::to_string(hash_of(whole.string())) + ".record_index"));
  }
  return paths;
}

OpenedIndex open_record_index(const IndexOptions& options) {
  std::vector<Shard> shards = list_shards(options);
  std::vector<std::string> notices = missing_shards(shards);
  for (std::string& notice : empty_shards(shards)) {
    notices.push_back(std::move(notice));
  }
  std::optional<std::vector<Shard>> known;
  for (const fs::path& path : index_paths(options)) {
    if (!known) {
      known = load_index(path, shards);
    }
  }
  const bool was_built = !known.has_value();
  if (was_built) {
    const std::vector<std::string> broken = Scan(shards, options.skip_broken).run();
    notices.insert(notices.end(), broken.begin(), broken.end());
    if (broken.empty()) {  // else a run without skip_broken would miss the broken record
      save(options, shards);
    }
    known = std::move(shards);
  }
  OpenedIndex opened{RecordIndex(*std::move(known)), was_built, std::move(notices)};
  check(opened.index.size() > 0, "the files " + options.subset + "-*-of-* in " +
                                     options.dir.string() + " hold no records" +
                                     (opened.notices.empty() ? "" : "; " + opened.notices.back()));
  return opened;
}

}  // namespace cnn::data
