#include "layers/cuda/library/plan_cache.h"

#include <charconv>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "runtime/error.h"

namespace cnn::layers::cuda {
namespace {

constexpr std::string_view first_line = "# plan cache of cnn_benchmarks, format 1";
constexpr std::size_t fields_per_line = 7;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

template <class Number>
bool read_number(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

// "2=4,13=0", or "-" for none.
bool read_knobs(const std::string& text, std::vector<Choice::Knob>& into) {
  if (text == "-") {
    return true;
  }
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    Choice::Knob knob;
    if (equals == std::string::npos ||
        !read_number(std::string_view(part).substr(0, equals), knob.type) ||
        !read_number(std::string_view(part).substr(equals + 1), knob.value)) {
      return false;
    }
    into.push_back(knob);
  }
  return !into.empty();
}

std::string knobs_text(const std::vector<Choice::Knob>& knobs) {
  std::string text;
  for (const Choice::Knob& knob : knobs) {
    text +=
        (text.empty() ? "" : ",") + std::to_string(knob.type) + "=" + std::to_string(knob.value);
  }
  return text.empty() ? "-" : text;
}

}  // namespace

PlanCache::PlanCache(std::filesystem::path file, Owner owner, bool may_create)
    : file_(std::move(file)), owner_(std::move(owner)) {
  std::ifstream in(file_);
  if (!in) {
    check(may_create && !std::filesystem::exists(file_),
          "cannot read the plan cache " + file_.string() + "; --tune makes one");
    return;
  }
  std::string line;
  check(std::getline(in, line) && line == first_line,
        file_.string() + " is no plan cache: its first line is not \"" + std::string(first_line) +
            "\"; name another file or delete it");
  for (std::size_t number = 2; std::getline(in, line); ++number) {
    read(line, number);
  }
}

void PlanCache::read(const std::string& line, std::size_t number) {
  const std::vector<std::string> fields = split(line, '\t');
  Entry entry;
  std::size_t version = 0;
  const bool good =
      fields.size() == fields_per_line && read_number(fields[1], version) &&
      read_number(fields[3], entry.choice.engine) && read_knobs(fields[4], entry.choice.knobs) &&
      read_number(fields[5], entry.choice.workspace) && read_number(fields[6], entry.seconds);
  check(good, "line " + std::to_string(number) + " of the plan cache " + file_.string() +
                  " is damaged; delete the line, or the file and run with --tune");
  if (fields[0] == owner_.device && version == owner_.cudnn_version) {
    entries_[fields[2]] = std::move(entry);
  } else {
    ++foreign_;
  }
}

std::optional<PlanCache::Entry> PlanCache::find(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? std::nullopt : std::optional(found->second);
}

void PlanCache::store(const std::string& key, const Entry& entry) {
  const bool fresh = !std::filesystem::exists(file_);
  std::ofstream out(file_, std::ios::app);
  if (fresh) {
    out << first_line << '\n';
  }
  out << owner_.device << '\t' << owner_.cudnn_version << '\t' << key << '\t' << entry.choice.engine
      << '\t' << knobs_text(entry.choice.knobs) << '\t' << entry.choice.workspace << '\t'
      << entry.seconds << '\n';
  out.flush();
  check(out.good(), "cannot write the plan cache " + file_.string());
  entries_[key] = entry;
}

}  // namespace cnn::layers::cuda
