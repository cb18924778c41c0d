#include "bench/make_records/options.h"

#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "runtime/error.h"

namespace cnn::records {
namespace {

constexpr std::string_view usage =
    R"(make_records IMAGES OUTPUT   writes the images of a folder as TFRecord shards

IMAGES holds train/<class>/x.JPEG and perhaps val/<class>/x.JPEG (or validation/). OUTPUT gets
train-00000-of-00128 and so on, tf.train.Example records in random order, which TensorFlow and
cnn_benchmarks --data_name=imagenet --data_dir=OUTPUT read. Labels count from 1. A shard appears
when it is complete, and a run that was stopped goes on with the shards that are missing.

  --train_shards=N, --validation_shards=N   default: one for 1024 images
  --threads=N          that write shards side by side; default: as many as there are processors
  --class_list=FILE    the name of a class's folder in each line, the first of label 1; default:
                       the folders' names, sorted
  --seed=N             of the images' order (1234)
  --skip_broken        leave out files whose header is damaged; else the first one ends the run
  --help

Exit code: 0 all shards are there, 1 an error.
)";

constexpr int max_shards = 99'999;
constexpr int max_threads = 1024;

template <class Number>
Number number_of(const std::string& name, const std::string& text, Number least, Number most) {
  Number value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(
      problem == std::errc() && end == text.data() + text.size() && value >= least && value <= most,
      fmt::format("--{}={}: wants a number from {} to {}", name, text, least, most));
  return value;
}

using Setter = std::function<void(Options&, const std::string&)>;

const std::map<std::string, Setter, std::less<>>& setters() {
  static const std::map<std::string, Setter, std::less<>> table{
      {"train_shards",
       [](Options& o, const std::string& text) {
         o.train_shards = number_of("train_shards", text, 1, max_shards);
       }},
      {"validation_shards",
       [](Options& o, const std::string& text) {
         o.validation_shards = number_of("validation_shards", text, 1, max_shards);
       }},
      {"threads",
       [](Options& o, const std::string& text) {
         o.threads = number_of("threads", text, 1, max_threads);
       }},
      {"class_list", [](Options& o, const std::string& text) { o.class_list = text; }},
      {"seed",
       [](Options& o, const std::string& text) {
         o.seed = number_of<std::uint64_t>("seed", text, 0, UINT64_MAX);
       }},
  };
  return table;
}

}  // namespace

Options parse_options(std::span<const std::string> words) {
  Options options;
  std::vector<std::string> folders;
  for (const std::string& word : words) {
    if (!word.starts_with("-")) {
      folders.push_back(word);
      continue;
    }
    const std::string text = word.substr(word.starts_with("--") ? 2 : 1);
    if (text == "help" || text == "h") {
      options.help = true;
      return options;
    }
    if (text == "skip_broken") {
      options.skip_broken = true;
      continue;
    }
    const std::size_t equals = text.find('=');
    const auto setter = setters().find(text.substr(0, equals));
    check(setter != setters().end(),
          fmt::format("no option {}; make_records --help lists them", word));
    check(equals != std::string::npos, fmt::format("{} wants a value: {}=...", word, word));
    setter->second(options, text.substr(equals + 1));
  }
  check(folders.size() == 2,
        "which folders? make_records IMAGES OUTPUT (make_records --help tells more)");
  options.images = folders[0];
  options.output = folders[1];
  return options;
}

std::string_view help_text() { return usage; }

}  // namespace cnn::records
