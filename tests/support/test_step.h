#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cpu/device.h"
#include "runtime/disk_file.h"
#include "runtime/executor.h"
#include "runtime/kernel.h"
#include "runtime/program.h"
#include "runtime/variables.h"

namespace cnn::tests {

// The behaviour of test_kernels() besides computing their ops.
struct TestKernelOptions {
  std::size_t workspace = 0;  // in bytes; every kernel with a workspace fills it with NaN
  std::chrono::microseconds longest_delay{};  // each kernel sleeps for a time of its own up to this
};

// Fills outputs and workspace with NaN and then runs the reference loops.
class TestKernel final : public Kernel {
 public:
  TestKernel(const Op& op, std::chrono::microseconds delay) : op_(op), delay_(delay) {}

  void run(Stream& stream, const Operands& operands) override {
    stream.host([this, &operands] { compute(operands); });
  }

 private:
  static void poison(std::byte* data, std::size_t bytes) {
    std::fill_n(data, bytes, std::byte{0xFF});  // unlike memset, it accepts nullptr with no bytes
  }

  void compute(const Operands& operands) const {
    if (delay_.count() > 0) {
      std::this_thread::sleep_for(delay_);
    }
    poison(operands.workspace.data(), operands.workspace.size());
    for (const TensorView& out : operands.out) {
      const bool in_place = std::any_of(operands.in.begin(), operands.in.end(),
                                        [&](const TensorView& in) { return in.data == out.data; });
      if (!in_place) {
        poison(out.data, out.desc.bytes());
      }
    }
    op_.reference(operands.in, operands.out);
  }

  const Op& op_;
  std::chrono::microseconds delay_;
};

inline KernelTable test_kernels(TestKernelOptions options = {}) {
  KernelTable table;
  table.otherwise(
      [options](const Op& /*op*/, const Signature& request) {
        return KernelSpec{.workspace = options.workspace, .in = request.in, .out = request.out};
      },
      [options, made = std::make_shared<int>(0)](const Op& op, const Signature& /*signature*/) {
        const int share = ++*made * 7 % 11;  // tenths of the longest delay
        return std::make_unique<TestKernel>(op, options.longest_delay * share / 10);
      });
  return table;
}

// Fills with numbers that differ and are exact in f32.
inline void fill(std::span<float> values, int seed) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((static_cast<int>(i) * 37 + seed * 11) % 101) / 32 - 1;
  }
}

// Compares bits: a NaN equals itself, and zeros of two signs differ.
inline bool identical(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Gives every lane a stream of its own, however little it copies.
inline constexpr ExecutorOptions lanes_apart{.max_compute_stream_copy_bytes = 0};

// A program with everything that it needs to run: device, variables, inputs, and an arena followed
// by canaries.
class TestStep {
 public:
  TestStep(StepPlan plan, const KernelTable& table, CpuOptions options = {})
      : TestStep(make_program(std::move(plan), table), std::move(options)) {}

  explicit TestStep(Program program, CpuOptions options = {})
      : TestStep(std::move(program), std::make_unique<CpuDevice>(std::move(options))) {}

  // device: the host must be able to read and write its memory.
  TestStep(Program program, std::unique_ptr<Device> device, ExecutorOptions options = lanes_apart)
      : options_(options), device_(std::move(device)), variables_(*program.plan.graph) {
    const Graph& graph = *program.plan.graph;
    storage_ = device_->allocate(variables_.bytes());
    variables_.attach(storage_.data());
    int seed = 0;
    for (const Variable& variable : variables_.all()) {
      fill(variables_.view(variable).as<float>(), ++seed);
    }
    for (const TensorId input : graph.inputs()) {
      const TensorDesc& desc = graph.info(input).desc;
      input_bytes_.push_back(device_->allocate_host(desc.bytes()));
      inputs_.push_back({.desc = desc, .data = input_bytes_.back().data()});
      fill(inputs_.back().as<float>(), ++seed);
    }
    start(std::move(program));
  }

  // Continues with another plan of the same graph, with the same kernels and variables.
  void replan(StepPlan plan) {
    Program program = std::move(*executor_).release();
    executor_.reset();
    program.plan = std::move(plan);
    start(std::move(program));
  }

  void run() { executor_->run(inputs_); }
  Executor& executor() { return *executor_; }
  std::span<const TensorView> inputs() const { return inputs_; }
  std::byte* arena() const { return arena_.data(); }

  // Returns everything that a step leaves behind: results, then variables.
  std::vector<float> outcome() const {
    std::vector<float> values;
    const auto append = [&](const TensorView& view) {
      const auto floats = view.as<float>();
      values.insert(values.end(), floats.begin(), floats.end());
    };
    for (const TensorView& result : executor_->results()) {
      append(result);
    }
    for (const Variable& variable : variables_.all()) {
      append(variables_.view(variable));
    }
    return values;
  }

  bool canaries_are_intact() const {
    const std::byte* end = arena_.data() + arena_bytes_;
    return std::all_of(end, end + canary_bytes, [](std::byte b) { return b == std::byte{canary}; });
  }

 private:
  static constexpr std::size_t canary_bytes = 4096;
  static constexpr unsigned char canary = 0xA5;

  void start(Program program) {
    if (program.plan.memory.disk_bytes > 0 && options_.disk == nullptr) {
      disk_ = std::make_unique<DiskFile>(std::filesystem::temp_directory_path(), "disk");
      options_.disk = disk_.get();
    }
    arena_bytes_ = program.plan.memory.device_bytes;
    arena_ = device_->allocate(arena_bytes_ + canary_bytes);
    std::memset(arena_.data(), 0xFF, arena_bytes_);
    std::memset(arena_.data() + arena_bytes_, canary, canary_bytes);
    executor_.emplace(std::move(program), *device_, variables_,
                      std::span(arena_.data(), arena_bytes_), options_);
  }

  ExecutorOptions options_;
  std::unique_ptr<DiskFile> disk_;
  std::unique_ptr<Device> device_;
  Variables variables_;
  Buffer storage_, arena_;
  std::size_t arena_bytes_ = 0;
  std::vector<Buffer> input_bytes_;
  std::vector<TensorView> inputs_;
  std::optional<Executor> executor_;
};

}  // namespace cnn::tests
