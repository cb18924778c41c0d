#include <algorithm>
#include <barrier>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <string_view>
#include <thread>
#include <vector>

#include "layers/all_reduce.h"
#include "layers/cpu/kernels.h"
#include "layers/dense.h"
#include "layers/operands.h"
#include "layers/optimizer.h"
#include "layers/passes/autodiff.h"
#include "layers/pool.h"
#include "runtime/cpu/device.h"
#include "runtime/cpu/reference_kernel.h"
#include "runtime/executor.h"
#include "runtime/program.h"

namespace cnn::layers {
namespace {

constexpr int towers = 2, steps = 4;
constexpr float sixteenth = 1.0F / 16;  // rate and weight decay

// The values that the original's tests of variable updates expect of two towers: y = x A B with A =
// 1, B = 2, loss = mean(y), inputs -1 ... 14 in four steps, image i to tower i mod 2.
struct TowersRow {
  std::string_view rule;
  bool sums;  // replicated; else parameter_server, which has the mean
  std::vector<double> total, base;
  double a = 0, b = 0;  // after the last step
};
const std::vector<TowersRow>& towers_rows() {
  static const std::vector<TowersRow> rows{
      {"sgd",
       false,
       {1.15625, 8.38563776, 5.53226187, -9.58548351},
       {1, 8.23823547, 5.43845897, -9.66270669},
       -1.67783423,
       1.88447646},
      {"sgd",
       true,
       {1.15625, 7.63874245, -2.59694984, -35.2715042},
       {1, 7.49981689, -2.66140094, -35.448971},
       -4.27945828,
       4.32751525},
      {"momentum",
       true,
       {1.15625, 6.35409754, -10.9491107, -171.103948},
       {1, 6.22949524, -11.0349579, -171.99231},
       -15.5113876,
       16.5198307},
      {"rmsprop",
       true,
       {1.15625, 8.14094232, 9.53503587, 4.02779885},
       {1, 7.99658842, 9.42946943, 3.96777733},
       -0.282190337,
       0.967797835},
      {"adam",
       true,
       {1.15625, 8.31860367, 14.3401155, 19.1731442},
       {1, 8.17382827, 14.2044708, 19.0467461},
       0.776228929,
       1.77429892},
  };
  return rows;
}

// The barrier and the buffers through which the towers exchange gradients.
struct Meeting {
  std::barrier<> all{towers};
  std::vector<std::vector<float>> gradients{towers};
};

class TowerCommunicator final : public Communicator {
 public:
  TowerCommunicator(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return towers; }
  void all_reduce(std::size_t /*bucket*/, std::span<const std::span<float>> pieces,
                  float factor) override {
    std::vector<float>& mine = meeting_.gradients[static_cast<std::size_t>(rank_)];
    mine.clear();
    for (const std::span<float>& piece : pieces) {
      mine.insert(mine.end(), piece.begin(), piece.end());
    }
    meeting_.all.arrive_and_wait();
    std::size_t at = 0;
    for (const std::span<float>& piece : pieces) {
      for (float& value : piece) {
        value = (meeting_.gradients[0][at] + meeting_.gradients[1][at]) * factor;
        ++at;
      }
    }
    meeting_.all.arrive_and_wait();
  }

 private:
  Meeting& meeting_;
  int rank_;
};

// One tower: two images a step.
class Tower {
 public:
  Tower(const TowersRow& row, Meeting& meeting, int rank)
      : rank_(rank), communicator_(meeting, rank) {
    build(row);
    add_reference(table_);
    cpu::add_exchange(table_, communicator_);
  }

  // Base losses and halves of squared norms.
  void train(std::vector<double>& base, std::vector<double>& l2) {
    StepPlan plan = make_plan(graph_, table_);
    Variables variables(*graph_);
    const Buffer storage = device_.allocate(variables.bytes());
    variables.attach(storage.data());
    for (const Variable& variable : variables.all()) {
      std::ranges::fill(variables.view(variable).as<float>(),
                        static_cast<float>(variable.info.initializer.mean));
    }
    const Buffer arena = device_.allocate(plan.memory.device_bytes);
    Executor executor(make_program(std::move(plan), table_), device_, variables,
                      {arena.data(), arena.bytes()});
    for (int step = 0; step < steps; ++step) {
      executor.run(inputs(step));
      base.push_back(executor.results()[0].as<float>()[0]);
      l2.push_back(executor.results()[1].as<float>()[0]);
    }
    for (const Variable& variable : variables.all()) {
      weights[variable.info.name] = variables.view(variable).as<float>()[0];
    }
  }

  std::map<std::string, double, std::less<>> weights;  // after the last step

 private:
  void build(const TowersRow& row) {
    const TensorDesc desc = described({1, 1}, DataType::f32);
    const auto parameter = [&](const char* name, double value) {
      return graph_->parameter(name, desc,
                               {.initializer = {Initializer::Kind::constant, value, 0}});
    };
    const std::vector<Value> parameters{parameter("A", 1), parameter("B", 2)};
    const Value x = graph_->input("x", described({1, 1, 1, 2}, DataType::f32));
    const Value y = emit(Dense({.bias = false}), {spatial_mean(x), parameters[0]});
    const Value loss = emit(Dense({.bias = false}), {y, parameters[1]});
    std::vector<Value> gradients;
    for (const std::optional<Value>& gradient :
         layers::gradients(loss, parameters, graph_->input("seed", desc))) {
      gradients.push_back(gradient.value());
    }
    append_exchange(gradients, {}, row.sums ? 1 : 1.0F / towers);
    OptimizerOptions options;
    options.update.rule = find_rule(row.rule).rule;
    options.update.weight_decay = row.sums ? towers * sixteenth : sixteenth;
    graph_->output("base_loss", loss);
    graph_->output("l2", append_update(*graph_, parameters, gradients, options));
  }

  std::vector<TensorView> inputs(int step) {
    values_["x"] = {static_cast<float>(4 * step + rank_ - 1),
                    static_cast<float>(4 * step + rank_ + 1)};
    values_["seed"] = {1};
    values_["learning_rate"] = {sixteenth};
    std::vector<TensorView> views;
    for (const TensorId id : graph_->inputs()) {
      const TensorInfo& info = graph_->info(id);
      views.push_back({info.desc, reinterpret_cast<std::byte*>(values_.at(info.name).data())});
    }
    return views;
  }

  int rank_;
  TowerCommunicator communicator_;
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  KernelTable table_;
  CpuDevice device_;
  std::map<std::string, std::vector<float>, std::less<>> values_;
};

void expect_close(double is, double right) { EXPECT_NEAR(is, right, 1e-5 * std::abs(right)); }

TEST(TowersTraining, FollowsTheOriginalForFourSteps) {
  for (const TowersRow& row : towers_rows()) {
    SCOPED_TRACE(row.rule);
    Meeting meeting;
    Tower first(row, meeting, 0), second(row, meeting, 1);
    std::vector<double> base_0, base_1, l2_0, l2_1;
    std::thread other([&] { second.train(base_1, l2_1); });
    first.train(base_0, l2_0);
    other.join();
    for (std::size_t step = 0; step < steps; ++step) {
      const double base = (base_0[step] + base_1[step]) / 2;
      expect_close(base, row.base[step]);
      expect_close(base + sixteenth * l2_0[step], row.total[step]);
      EXPECT_EQ(l2_0[step], l2_1[step]);
    }
    expect_close(first.weights.at("A"), row.a);
    expect_close(first.weights.at("B"), row.b);
    EXPECT_EQ(first.weights, second.weights);
  }
}

}  // namespace
}  // namespace cnn::layers
