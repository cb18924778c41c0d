#include "bench/plan/search.h"

#include <chrono>
#include <fmt/format.h>

#include "bench/plan/fitting.h"
#include "bench/ranks/rank_context.h"
#include "bench/report/units.h"
#include "runtime/error.h"
#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

// A search and its result.
struct Search {
  std::string_view flag;
  std::int64_t step = 1;
  std::int64_t largest = 0;
  std::size_t limit = 0;  // bytes of the device
  std::string limit_source{};
  std::optional<std::size_t> bytes{};    // of the largest size; with LMS the minimum
  std::optional<std::size_t> further{};  // of the next size; nothing: it is impossible
  double seconds = 0;
};

Search search(const Job& job, const RankContext& context, bool with_lms) {
  const auto start = std::chrono::steady_clock::now();
  const bool images = job.config->search.image_size;
  const Fitting fitting(job, context, with_lms);
  Search result{.flag = images ? "image_size" : job.batch_flag().substr(2),
                .step = images ? image_step : 1,
                .largest = images ? largest_image(job, context, with_lms)
                                  : largest_batch(job, context, with_lms),
                .limit = fitting.limit(),
                .limit_source = fitting.limit_source()};
  const auto bytes_of = [&](std::int64_t size) {
    Sizes sizes = images ? sizes_of(job) : with_batch(job, size);
    sizes.image_size = images ? size : sizes.image_size;
    return fitting.min_bytes(sizes);
  };
  if (result.largest > 0) {
    result.bytes = bytes_of(result.largest);
    result.further = bytes_of(result.largest + result.step);
  }
  result.seconds = seconds_since(start);
  return result;
}

Json to_json(const Search& search, bool with_lms) {
  return {{"flag", search.flag},
          {"step", search.step},
          {"lms", with_lms},
          {"largest", search.largest},
          {"limit_bytes", search.limit},
          {"bytes", or_null(search.bytes)},
          {"further_bytes", or_null(search.further)},
          {"seconds", search.seconds}};
}

double in_mib(std::size_t bytes) { return static_cast<double>(bytes) / mib; }

// Returns why the next size is too large.
std::string reason(const Search& search) {
  if (!search.further) {
    return "cannot be had on this backend";
  }
  return *search.further > search.limit ? fmt::format("takes {:.1f} MiB", in_mib(*search.further))
                                        : std::string("has no plan that device and host both hold");
}

}  // namespace

void report_search(const Job& job, const RankContext& context, Console& console, Json& result) {
  const bool with_lms = job.config->lms.enabled && job.trains();
  const Search found = search(job, context, with_lms);
  result["search"] = to_json(found, with_lms);
  const std::string limit = fmt::format("{:.1f} MiB ({})", in_mib(found.limit), found.limit_source);
  if (found.largest == 0) {
    compile_programs(job, context, with_batch(job, 1));  // throws what is wrong at any size
    throw DoesNotFit(fmt::format("search: no --{} of {} fits in {}{}", found.flag, job.model->name,
                                 limit, with_lms || !job.trains() ? "" : "; --lms needs less"));
  }
  console.print(fmt::format("Largest {}: {}", found.flag, found.largest));
  console.note(fmt::format("search: --{}={} takes {}{:.1f} of {}; {} {}; found in {:.1f} s",
                           found.flag, found.largest, with_lms ? "at least " : "",
                           in_mib(found.bytes.value()), limit, found.largest + found.step,
                           reason(found), found.seconds));
}

}  // namespace cnn::bench
