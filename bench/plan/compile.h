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

// The graph's input format. Synthetic images are a state drawn once; real ones are the inputs
// "images" [N,C,H,W] in nhwc and "labels" i32 [N], converted to x * scale + shift by the first
// node.
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
  std::optional<std::size_t> bucket_bytes;  // of an update; nothing: default_bucket_bytes()
  std::int64_t slices = 1;                  // of the batch, at most one for each example
  std::int64_t row_slices = 1;              // of images along their rows
  std::int64_t dense_slices = 1;            // of dense layers with weights on the host
  layers::IsOnHost is_on_host = {};         // of layers::PipelineOptions
  int rank = 0, ranks = 1;                  // among the ranks that exchange gradients
};

// Counts for the forward graph.
struct NetworkFacts {
  std::int64_t trainable_parameters = 0;
  std::int64_t trainable_tensors = 0;
  double forward_macs = 0;  // of convolutions and dense layers, for one image
};

struct Compiled {
  StepPlan plan;
  std::optional<StepPlan> prologue;  // computes derived variables; see layers/passes/prologue.h
  NetworkFacts facts;
  Layout layout = Layout::nchw;  // of images inside the network
  layers::Fusion fusion{};       // the level reached
  layers::NormForms norms;       // with Fusion::conv
  layers::Slicing slicing;
  std::int64_t batch = 0;
  std::int64_t classes = 0;

  // Returns the bytes of the larger plan: both run in one arena, in sequence.
  std::size_t device_bytes() const;
  std::size_t lower_bound_bytes() const;
};

// Returns whether ranks in that mode sum their gradients; otherwise they average them.
bool sums_gradients(VariableUpdate mode);

// Returns the bytes of the parameters in one update, in which gradients wait for the last of them.
// The value changes no bit of the results.
std::size_t default_bucket_bytes();
constexpr std::size_t min_bucket_bytes = std::size_t{1} << 20U;

// Compiles a configuration to a planned step: forward graph, fusion, gradients, update, layouts,
// schedule, memory. Inputs of the graph: "global_step" i32 [], "learning_rate" f32 [], and images
// and labels as in InputFormat (with --synthetic_labels=fixed labels are an input too). Outputs:
// training "base_loss", "l2" (sum of squares / 2 before the update), with automatic loss scale
// "found_inf"; evaluation "base_loss"; and "top_1", "top_5" hits i32 [] in evaluation, forward
// only, and with training accuracy. A prologue computes the part that depends on variables alone,
// if no step changes them or the update keeps it up to date. fixed: variables shared with a
// training program, whose layouts are given and which change between runs. Throws Error if the
// model or the backend cannot do the request.
Compiled compile(const CompileRequest& request, const RankContext& context,
                 std::span<const TensorInfo> fixed = {});

}  // namespace cnn::bench
