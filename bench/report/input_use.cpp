#include "bench/report/input_use.h"

#include <algorithm>
#include <fmt/format.h>

#include "bench/report/units.h"

namespace cnn::bench {
namespace {

constexpr double most_of_the_time = 0.5;
constexpr double least_idle = 0.99;  // from here on threads count as idle

// Returns the seconds of all reading threads together.
double thread_seconds(const InputUse& use) { return use.seconds * use.threads; }

double share(double part, double whole) {
  return whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0;
}

double per_second(double amount, const InputUse& use) {
  return use.seconds > 0 ? amount / use.seconds : 0;
}

double idle_share(const InputUse& use) {
  const double busy = use.read.read_seconds + use.read.decode_seconds + use.read.resize_seconds;
  return 1 - share(busy, thread_seconds(use));
}

// Uses CPU time: wall time counts for a thread only if the thread has a processor to itself.
double images_per_cpu_second(const InputUse& use) {
  return use.cpu_seconds > 0 ? static_cast<double>(use.images) / use.cpu_seconds : 0;
}

}  // namespace

Json input_json(const InputUse& use) {
  const double all = thread_seconds(use);
  return {{"images", use.images},
          {"seconds", use.seconds},
          {"images_per_sec", per_second(static_cast<double>(use.images), use)},
          {"images_per_cpu_second",
           use.cpu_seconds > 0 ? Json(images_per_cpu_second(use)) : Json(nullptr)},
          {"threads", use.threads},
          {"bytes_read", use.read.bytes},
          {"bytes_per_second", per_second(static_cast<double>(use.read.bytes), use)},
          {"examples_read", use.read.examples},
          {"examples_skipped", use.read.skipped},
          {"read_share", share(use.read.read_seconds, all)},
          {"decode_share", share(use.read.decode_seconds, all)},
          {"resize_share", share(use.read.resize_seconds, all)},
          {"idle_share", idle_share(use)},
          {"wait_seconds", use.waited},
          {"wait_share", share(use.waited, use.seconds)}};
}

std::string input_line(const InputUse& use) {
  const double all = thread_seconds(use);
  const auto percent = [](double part) { return 100 * part; };
  std::string line = fmt::format("input: {:.1f} images/s of {} thread{}",
                                 per_second(static_cast<double>(use.images), use), use.threads,
                                 use.threads == 1 ? "" : "s");
  if (use.cpu_seconds > 0) {
    line += fmt::format(", {:.1f} for each second of a core", images_per_cpu_second(use));
  }
  line +=
      fmt::format(", {:.1f} MiB read at {:.1f} MiB/s", static_cast<double>(use.read.bytes) / mib,
                  per_second(static_cast<double>(use.read.bytes), use) / mib);
  line += fmt::format(
      "; the threads read {:.0f} %, decode {:.0f} %, resize {:.0f} % and wait {:.0f} % "
      "of their time",
      percent(share(use.read.read_seconds, all)), percent(share(use.read.decode_seconds, all)),
      percent(share(use.read.resize_seconds, all)), percent(idle_share(use)));
  if (use.read.skipped > 0) {
    line += "; " + skipped_text(use.read);
  }
  return line;
}

std::string skipped_text(const data::InputStatistics& read) {
  return read.skipped == 1 ? std::string("1 broken example was left out")
                           : fmt::format("{} broken examples were left out", read.skipped);
}

bool has_busy_threads(const InputUse& use) { return idle_share(use) < least_idle; }

std::string input_advice(const InputUse& use) {
  const double all = thread_seconds(use);
  if (share(use.read.read_seconds, all) > most_of_the_time) {
    return "reading takes most of the threads' time: put the data on a faster disk, let "
           "--datasets_use_caching keep it in memory, or let more threads wait for the disk by "
           "--datasets_num_private_threads";
  }
  if (use.threads < use.cores) {
    return fmt::format(
        "let more of the {} processors preprocess: --datasets_num_private_threads={}", use.cores,
        use.cores);
  }
  if (use.read.decode_seconds > use.read.resize_seconds) {
    return "decoding takes most of the threads' time, and all processors do it: store the images "
           "smaller, with a shorter side of 320 pixels for instance";
  }
  return "resizing takes most of the threads' time, and all processors do it: leave out "
         "--distortions or --resize_method=area and bicubic, or use more processors";
}

data::InputStatistics since(const data::InputStatistics& now, const data::InputStatistics& then) {
  return {.examples = now.examples - then.examples,
          .skipped = now.skipped - then.skipped,
          .bytes = now.bytes - then.bytes,
          .read_seconds = now.read_seconds - then.read_seconds,
          .decode_seconds = now.decode_seconds - then.decode_seconds,
          .resize_seconds = now.resize_seconds - then.resize_seconds};
}

}  // namespace cnn::bench
