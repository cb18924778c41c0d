#include "bench/make_records/write_shards.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <fmt/format.h>
#include <mutex>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <vector>

#include "data/file.h"
#include "data/images/decoder.h"
#include "data/permutation.h"
#include "data/random.h"
#include "data/records/image_example.h"
#include "data/records/record.h"
#include "data/records/record_index.h"
#include "runtime/error.h"

namespace cnn::records {
namespace {

namespace fs = std::filesystem;

std::uint64_t add_to_hash(std::uint64_t hash, std::string_view text) {
  for (const char letter : text) {
    hash = data::random_bits(hash, static_cast<unsigned char>(letter));
  }
  return data::random_bits(hash, 256);  // includes the end of the text
}

// Returns a hash of the list of images, their sizes, labels and order.
std::uint64_t hash_of(const ShardJob& job) {
  std::uint64_t hash = data::random_bits(job.seed, static_cast<std::uint64_t>(job.shards));
  for (const data::ImageFile& file : job.images.files) {
    const data::ClassFolder& folder = job.images.classes[file.folder];
    struct stat status {};
    const fs::path path = job.images.path(file);
    check(::stat(path.c_str(), &status) == 0, "cannot read " + path.string() + ": it has vanished");
    hash = add_to_hash(add_to_hash(hash, folder.name), file.name);
    hash = data::random_bits(hash, static_cast<std::uint64_t>(status.st_size));
    hash = data::random_bits(hash, static_cast<std::uint64_t>(folder.label));
  }
  return data::random_bits(hash, job.skip_broken ? 1 : 0);
}

// Checks that existing shards in the folder belong to this same job.
void claim_folder(const ShardJob& job) {
  std::error_code failed;
  fs::create_directories(job.output, failed);
  check(!failed, fmt::format("cannot create {}: {}", job.output.string(), failed.message()));
  const fs::path path = job.output / fmt::format(".{}.make_records", job.subset);
  const std::string mine = fmt::format("make_records 1\n{} images, {} shards, {:016x}\n",
                                       job.images.files.size(), job.shards, hash_of(job));
  if (fs::exists(path)) {
    constexpr std::uint64_t longest = 1024;
    std::string theirs;
    if (data::InputFile(path).size() <= longest) {
      for (const std::byte byte : data::read_whole(path)) {
        theirs += static_cast<char>(byte);
      }
    }
    check(theirs == mine,
          fmt::format("{} holds {} shards of other images, another order or another number of "
                      "shards; remove them and {}, or choose another folder",
                      job.output.string(), job.subset, path.string()));
    return;
  }
  check(!data::has_record_shards({.dir = job.output, .subset = job.subset}),
        fmt::format("{} holds {} shards that make_records did not write; remove them or choose "
                    "another folder",
                    job.output.string(), job.subset));
  data::write_atomically(path, mine);
}

// Makes the record of one image; returns nothing for a damaged file that the job leaves out.
class RecordMaker {
 public:
  explicit RecordMaker(const ShardJob& job) : job_(job) {}

  bool append(const data::ImageFile& file, std::vector<std::byte>& to) {
    const fs::path path = job_.images.path(file);
    const data::ClassFolder& folder = job_.images.classes[file.folder];
    check(data::InputFile(path).size() < data::largest_record / 2,
          path.string() + " has more than 512 MiB");
    const std::vector<std::byte> encoded = data::read_whole(path);
    data::ImageSize size;
    try {
      size = decoder_.open(encoded);
    } catch (const Error& error) {
      check(job_.skip_broken, fmt::format("cannot use {}: {}; leave such files out with "
                                          "--skip_broken",
                                          path.string(), error.what()));
      return false;
    }
    data::append_record(
        to, data::image_example_record({.encoded = encoded,
                                        .format = data::is_png(encoded) ? "PNG" : "JPEG",
                                        .file_name = file.name,
                                        .synset = folder.name,
                                        .text = folder.name,
                                        .label = folder.label,
                                        .height = size.height,
                                        .width = size.width}));
    return true;
  }

 private:
  const ShardJob& job_;
  data::ImageDecoder decoder_;
};

class Writers {
 public:
  Writers(const ShardJob& job, const ShardListener& listener)
      : job_(job),
        listener_(listener),
        order_(static_cast<std::int64_t>(job.images.files.size()), job.seed, 0) {}

  ShardProgress run() {
    {
      std::vector<std::jthread> threads;
      threads.reserve(static_cast<std::size_t>(job_.threads));
      for (int i = 0; i < std::min(job_.threads, job_.shards); ++i) {
        threads.emplace_back([this] { work(); });
      }
    }
    if (error_ != nullptr) {
      std::rethrow_exception(error_);
    }
    return progress_;
  }

 private:
  void work() {
    RecordMaker maker(job_);
    try {
      for (int shard = next_++; shard < job_.shards && !stopped_; shard = next_++) {
        write(shard, maker);
      }
    } catch (...) {
      stopped_ = true;
      const std::lock_guard lock(mutex_);
      error_ = error_ == nullptr ? std::current_exception() : error_;
    }
  }

  void write(int shard, RecordMaker& maker) {
    const fs::path path = job_.output / shard_name(job_.subset, shard, job_.shards);
    ShardProgress done{.shards = 1};
    if (fs::exists(path)) {
      done.shards_before = 1;
    } else {
      data::AtomicFile file(path);
      const auto images = static_cast<std::int64_t>(job_.images.files.size());
      std::vector<std::byte> record;
      for (std::int64_t i = images * shard / job_.shards; i < images * (shard + 1) / job_.shards;
           ++i) {
        check(!stopped_, "another shard failed");
        record.clear();
        const bool used =
            maker.append(job_.images.files[static_cast<std::size_t>(order_(i))], record);
        file.write(record);
        done.images += used ? 1 : 0;
        done.skipped += used ? 0 : 1;
        done.bytes += static_cast<std::int64_t>(record.size());
      }
      file.commit();
    }
    tell(done);
  }

  void tell(const ShardProgress& done) {
    const std::lock_guard lock(mutex_);
    progress_.shards += done.shards;
    progress_.shards_before += done.shards_before;
    progress_.images += done.images;
    progress_.skipped += done.skipped;
    progress_.bytes += done.bytes;
    listener_(progress_);
  }

  const ShardJob& job_;
  const ShardListener& listener_;
  data::Permutation order_;
  std::atomic<int> next_ = 0;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  ShardProgress progress_;
  std::exception_ptr error_;  // the first one, which may have caused others
};

}  // namespace

std::string shard_name(const std::string& subset, int shard, int shards) {
  return fmt::format("{}-{:05}-of-{:05}", subset, shard, shards);
}

ShardProgress write_shards(const ShardJob& job, const ShardListener& listener) {
  check(job.shards >= 1 && job.threads >= 1, "shards and threads are at least 1");
  check(static_cast<std::size_t>(job.shards) <= job.images.files.size(),
        fmt::format("{} shards for {} images: some would be empty", job.shards,
                    job.images.files.size()));
  claim_folder(job);
  return Writers(job, listener).run();
}

}  // namespace cnn::records
