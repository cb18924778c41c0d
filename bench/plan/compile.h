#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "bench/flags/config.h"
#include "layers/passes/pipeline.h"
#include "models/model.h"
#include "runtime/program.h"

namespace cnn::bench {

struct RankContext;

enum class Phase : std::uint8_t { training, evaluation, forward_only };

// How examples reach the graph. Synthetic images are a state drawn once; real ones are the inputs
// "images" [N,C,H,W] laid out nhwc, "labels" i32 [N], cast to x * scale + shift by the first node.
struct InputFormat {
  bool synthetic = true;
  DataType image_type = DataType::u8;
  float scale = 1, shift = 0;
};

struct CompileRequest {
  const Config& config;
  const models::Model& model;
  Phase phase = Phase::training;
  std::int64_t batch = 0;
  std::int64_t image_size = 0;
  DataType compute = DataType::f32;
  InputFormat input;
  std::size_t max_fused_grad_add_bytes = layers::any_size;  // of layers::PipelineOptions
  std::optional<std::size_t> bucket_bytes;                  // of an update; nothing: the usual
  int rank = 0, ranks = 1;                                  // of those that exchange gradients
};

// Counts of the forward graph.
struct NetworkFacts {
  std::int64_t trainable_parameters = 0;
  std::int64_t trainable_tensors = 0;
  double forward_macs = 0;  // of convolutions and dense layers, for one image
};

struct Compiled {
  StepPlan plan;
  std::optional<StepPlan> prologue;  // makes the derived variables; see layers/passes/prologue.h
  NetworkFacts facts;
  Layout layout = Layout::nchw;  // of images inside the network
  layers::Fusion fusion{};       // as reached
  layers::NormForms norms;       // with Fusion::conv
  std::int64_t batch = 0;
  std::int64_t classes = 0;

  // Returns the bytes of the larger plan: both run in one arena, one after the other.
  std::size_t device_bytes() const;
  std::size_t lower_bound_bytes() const;
};

// Whether the ranks of that mode sum their gradients; else they average them.
bool sums_gradients(VariableUpdate mode);

// Bytes of the parameters in one update: gradients wait there for the last of them. No bit depends
// on it.
std::size_t usual_bucket_bytes();
constexpr std::size_t least_bucket_bytes = std::size_t{1} << 20U;

// Config -> planned step: forward graph, fusion, gradients, update, layouts, schedule, memory.
// Inputs of the graph: "global_step" i32 [], "learning_rate" f32 [], and images and labels as
// InputFormat says (with --synthetic_labels=fixed labels are an input too). Outputs: training
// "base_loss", "l2" (sum of squares / 2 before the update), with automatic loss scale "found_inf";
// evaluation "base_loss"; and "top_1", "top_5" hits i32 [] in evaluation, forward only, and where
// training accuracy is asked for. The part that depends on variables alone is left to a prologue
// where no step changes them, or where the update keeps it up to date. fixed: variables of a
// training program that this one shares, so their layouts are given and they change between its
// runs. Throws Error for what the model or the backend cannot do.
Compiled compile(const CompileRequest& request, const RankContext& context,
                 std::span<const TensorInfo> fixed = {});

}  // namespace cnn::bench
