#include "bench/run/hash_file.h"

#include <fmt/format.h>

#include "bench/session/tensor_hashes.h"

namespace cnn::bench {
namespace {

constexpr std::string_view flag = "--hash_file";

std::string_view mode_text(const Job& job) {
  return job.mode == Mode::forward_only ? "forward_only" : "training";
}

// Describes the run in one line; result_text() would break the line.
std::string run_line(const Job& job, const Json& result) {
  Json run = {{"mode", mode_text(job)},
              {"batch_size", job.batch.per_device},
              {"ranks", job.ranks},
              {"hash_steps", job.config->report.hash_steps}};
  for (const char* key : {"program", "version", "commit", "command", "started", "config", "machine",
                          "model", "plan"}) {
    if (result.contains(key)) {
      run[key] = result[key];
    }
  }
  return run.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string head_text(const Job& job, const TensorHashes& hashes, const Json& result) {
  std::string text =
      fmt::format("cnn_benchmarks tensor hashes 1\nrun\t{}\n", run_line(job, result));
  const std::vector<WrittenTensor>& tensors = hashes.tensors().all();
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const WrittenTensor& tensor = tensors[t];
    text += fmt::format("tensor\t{}\t{:016x}\t{}\t{}\t{}\t{}\t{}{}\t{}\t{}\n", t, hashes.key_of(t),
                        tensor.node_name, tensor.output, tensor.op, tensor.name,
                        name_of(tensor.desc.type), to_string(tensor.desc.shape),
                        to_string(tensor.desc), tensor.layer);
  }
  return text;
}

}  // namespace

HashFile::HashFile(const Job& job, const Team& team, const Json& result)
    : path_(with_folder(job.config->report.hash_file.value())), file_(flag, path_), team_(team) {
  file_.write(head_text(job, *team.hashed_tensors(), result));
}

void HashFile::step_finished(const FinishedStep& step) {
  runs_ = false;
  finished_ = step.global_step;
  write(step.global_step);
}

void HashFile::failed(const RunEnd& end, std::string_view /*what*/) {
  if (runs_) {  // the run may count the step already, if an observer before this one failed
    write(finished_.value_or(end.global_step) + 1);
  }
}

void HashFile::write(std::int64_t global_step) {
  const TensorHashes* const hashes = team_.hashes();
  if (hashes == nullptr || hashes->hashes().empty()) {
    return;
  }
  std::string text = fmt::format("step\t{}\n", global_step);
  const std::vector<TensorHash> all = hashes->hashes();
  for (const TensorHash& hash : all) {
    text += fmt::format("{}\t{:016x}\n", hash.tensor, hash.hash);
  }
  text += fmt::format("end\t{}\t{}\t{:016x}\n", global_step, all.size(), hashes->combined());
  append(text);
}

// Written lines persist, however the run ends.
void HashFile::append(const std::string& text) const {
  if (file_.replaceable()) {
    append_to_file(flag, path_, text);
  } else {
    file_.write(text);
  }
}

}  // namespace cnn::bench
