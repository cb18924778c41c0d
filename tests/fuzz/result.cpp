// libFuzzer target that reads result files as cnn_compare judges and exports them and as the page
// draws them.
#include "bench/compare/configurations.h"
#include "bench/compare/exports.h"
#include "bench/compare/history.h"
#include "bench/compare/run.h"
#include "bench/page/page.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace cnn::compare;

void compare_with_itself(const Run& run) {
  Run other = run;
  other.started += " again";
  other.json["started"] = other.started;
  const Settings settings;
  const std::vector<Configuration> all = find_configurations({run}, {other}, true);
  const std::vector<Finding> findings = judge(all, settings);
  static_cast<void>(exit_code_of(findings));
  static_cast<void>(cnn::page::comparison_page(all, findings, settings));
}

void export_run(const Run& run) {
  static_cast<void>(history_line(run));
  for (const ExportFormat format : {ExportFormat::bencher, ExportFormat::csv}) {
    static_cast<void>(export_text({run}, format, Measure::images_per_sec));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = cnn::fuzz::text_of({data, size});
  cnn::fuzz::survive([&] {
    cnn::page::run_page(text);  // refuses no JSON, and nobody reads anything else
    const Run run = parse_run("fuzz.json", text);
    cnn::fuzz::survive([&] { compare_with_itself(run); });
    cnn::fuzz::survive([&] { export_run(run); });
  });
  return 0;
}
