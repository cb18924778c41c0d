// Implements make_records, which converts a folder of images to TFRecord shards.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <thread>
#include <vector>

#include "bench/make_records/options.h"
#include "bench/make_records/write_shards.h"
#include "bench/report/console.h"
#include "data/catalog.h"
#include "runtime/divide_up.h"
#include "runtime/error.h"
#include "runtime/resource_limits.h"
#include "runtime/seconds_since.h"

namespace {

using namespace cnn::records;
namespace fs = std::filesystem;

constexpr std::size_t default_images_per_shard = 1024;
constexpr double mib = 1U << 20U;

void make_subset(const Options& options, bool training, cnn::bench::Console& console) {
  const auto start = std::chrono::steady_clock::now();
  const fs::path folder = cnn::data::image_folder_of(options.images, training);
  const int request = training ? options.train_shards : options.validation_shards;
  ShardJob job{.images = cnn::data::list_image_folder(folder, options.class_list,
                                                      cnn::data::find("imagenet").classes - 1),
               .output = options.output,
               .subset = training ? "train" : "validation",
               .seed = options.seed,
               .skip_broken = options.skip_broken};
  const std::size_t images = job.images.files.size();
  job.shards =
      request > 0 ? request : static_cast<int>(cnn::divide_up(images, default_images_per_shard));
  job.threads = options.threads > 0
                    ? options.threads
                    : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const auto line = [&](const ShardProgress& done) {
    const double passed = cnn::seconds_since(start);
    return fmt::format("{}: {} of {} shards, {} images, {:.1f} MiB, {:.1f} MiB/s", job.subset,
                       done.shards, job.shards, done.images, static_cast<double>(done.bytes) / mib,
                       static_cast<double>(done.bytes) / mib / passed);
  };
  const ShardProgress done =
      write_shards(job, [&](const ShardProgress& now) { console.progress(line(now)); });
  std::string text = line(done);
  if (done.shards_before > 0) {
    text += fmt::format("; {} shards were there", done.shards_before);
  }
  if (done.skipped > 0) {
    text += fmt::format("; {} damaged files were left out", done.skipped);
  }
  console.note(text);
}

int run(const std::vector<std::string>& words, cnn::bench::Console& console) {
  const Options options = parse_options(words);
  if (options.help) {
    console.print(help_text());
    return 0;
  }
  make_subset(options, true, console);
  const bool has_validation = fs::is_directory(fs::path(options.images) / "val") ||
                              fs::is_directory(fs::path(options.images) / "validation");
  if (has_validation) {
    make_subset(options, false, console);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  cnn::bench::guard_standard_streams();
  cnn::bench::Console console;
  try {
    return run({argv + (argc > 0 ? 1 : 0), argv + argc}, console);
  } catch (const std::exception& error) {
    console.note(fmt::format("make_records: {}", cnn::failure_text(error)));
    return 1;
  }
}
