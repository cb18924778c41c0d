// Checks that losses and weights with --lms equal those without, bit for bit. The slow suite covers
// the product of networks, policies, budgets and sync modes; here every policy runs with every sync
// mode. Budgets range from the floor to just below the need, copies are delayed at random and free
// bytes are filled with NaN.

#include <algorithm>
#include <array>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <optional>

#include "bench/session/session.h"
#include "lms/catalog.h"
#include "models/catalog.h"
#include "runtime/error.h"
#include "tests/bench/session/device_run.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using tests::DeviceRun;
using tests::with;
using tests::Words;

struct Network {
  std::string data_set, name;
  int image_size = 0;
  int batch_size = 2;
  Words more = {};  // flags of all runs of this network
};

// Returns the network with images about as small as its layers allow.
Network toy(const models::Model& model) {
  Network toy{std::string(model.data_set), std::string(model.name), model.image_size};
  if (model.image_size > 64) {
    const bool is_inception = toy.name.starts_with("inception");
    const bool has_wide_kernels = toy.name == "overfeat" || toy.name == "alexnet";
    toy.image_size = is_inception ? 107 : has_wide_kernels ? 71 : 64;
  }
  return toy;
}

constexpr std::size_t more_than_any_toy_needs = std::size_t{6} << 30U;
constexpr int steps = 2;

struct Trained {
  std::vector<double> losses;
  std::string weights;  // content of the checkpoint file
  bool moved = false, had_to_move = false;
};

// need: the memory of a step without swapping, with updates in the small parts that a short memory
// causes. With less memory, the step must move tensors.
struct Budgets {
  std::size_t need = 0, floor = 0;
  // Level 0 is the floor, level 2 is two thirds of the way to the need.
  std::size_t at(int level) const {
    const std::size_t between = need - floor;
    return floor + std::array{std::size_t{0}, between / 3, between / 3 * 2}.at(level);
  }
};

// A network with its results under unlimited memory and its least memory.
class BitsOfNetwork {
 public:
  explicit BitsOfNetwork(Network network) : network_(std::move(network)) {
    DeviceRun run(flags(), more_than_any_toy_needs);
    budgets_ = budgets_below(run.session().memory().total());
    unlimited_ = train({}, more_than_any_toy_needs, {}).value();
  }

  const Budgets& budgets() const { return budgets_; }

  // Returns whether the network trained by a plan of the policy. Such a plan must move tensors and
  // change no bit. There is none if the policy has no plan for this budget, or if updates in small
  // parts already fit it.
  bool check(const lms::PolicyRow& policy, int level, int sync_mode, unsigned seed) {
    SCOPED_TRACE(network_.name + " " + std::string(policy.name) + " budget " +
                 std::to_string(level) + " sync " + std::to_string(sync_mode));
    const Words words{"--lms", "--lms_verify", "--lms_size_threshold=1",
                      "--lms_policy=" + std::string(policy.name),
                      "--lms_sync_mode=" + std::to_string(sync_mode)};
    const CopyJitter jitter{.longest = std::chrono::microseconds(200), .seed = seed};
    const std::optional<Trained> trained = train(words, budgets_.at(level), jitter);
    if (!trained) {
      EXPECT_NE(policy.name, "planned") << "every budget of at least the floor has a plan";
      return false;
    }
    EXPECT_EQ(trained->moved, trained->had_to_move);
    EXPECT_EQ(trained->losses, unlimited_.losses);
    EXPECT_TRUE(trained->weights == unlimited_.weights);
    return trained->moved;
  }

 private:
  Words flags() const {
    return with({"--data_name=" + network_.data_set, "--model=" + network_.name,
                 "--batch_size=" + std::to_string(network_.batch_size),
                 "--image_size=" + std::to_string(network_.image_size)},
                network_.more);
  }

  // A smaller limit makes updates smaller; this loop ends when that saves nothing more.
  Budgets budgets_below(std::size_t need) const {
    const Words plan_only = with(flags(), {"--lms", "--lms_size_threshold=1"});
    while (true) {
      try {
        DeviceRun run(plan_only, need - 64);
        const LmsReport& lms = *run.session().lms();
        if (lms.necessary) {
          return {need, lms.floor};
        }
        need = run.session().memory().total();
      } catch (const DoesNotFit&) {  // the operands of its largest node are the peak
        return {need, need};
      }
    }
  }

  // Returns nothing if the training does not fit.
  std::optional<Trained> train(const Words& more, std::size_t bytes, const CopyJitter& jitter) {
    const tests::TemporaryFolder folder;
    const Words words = with(with(flags(), more), {"--train_dir=" + folder.path().string()});
    std::optional<DeviceRun> run;
    try {
      run.emplace(words, bytes, jitter);
    } catch (const DoesNotFit&) {
      return std::nullopt;
    }
    Trained trained{.losses = run->train(steps), .weights = {}};
    if (const LmsReport* lms = run->session().lms()) {
      trained.moved = lms->summary.moves();
      trained.had_to_move = lms->necessary;
      EXPECT_EQ(run->session().measured_peak_bytes(), lms->peak);
    }
    EXPECT_LE(run->session().measured_peak_bytes(), bytes);
    trained.weights =
        tests::read_file(folder.path() / ("model.ckpt-" + std::to_string(steps) + ".safetensors"));
    EXPECT_FALSE(trained.weights.empty());
    return trained;
  }

  Network network_;
  Budgets budgets_;
  Trained unlimited_;
};

bool moves_something(const lms::PolicyRow& policy) { return policy.name != "none"; }

// Every policy runs with every sync mode; the networks and budgets alternate.
TEST(LongLmsBits, AreThoseOfTheUnlimitedRunInPairs) {
  std::vector<BitsOfNetwork> networks;
  networks.emplace_back(Network{"cifar10", "resnet20", 16});
  networks.emplace_back(Network{"cifar10", "resnet20_v2", 16});
  networks.emplace_back(Network{"mnist", "mnist_deep", 28, 64});
  networks.emplace_back(Network{"cifar10", "alexnet", 32, 32});
  std::map<std::string, int> cells;
  unsigned p = 0;
  for (const lms::PolicyRow& policy : lms::policies()) {
    for (unsigned sync = 0; sync < 4 && moves_something(policy); ++sync) {
      BitsOfNetwork& network = networks[(p + sync) % networks.size()];
      const int level = static_cast<int>((p + sync) % 3);
      cells[std::string(policy.name)] +=
          network.check(policy, level, static_cast<int>(sync), p) ? 1 : 0;
    }
    ++p;
  }
  for (const lms::PolicyRow& policy : lms::policies()) {
    EXPECT_EQ(cells[std::string(policy.name)] > 0, moves_something(policy)) << policy.name;
  }
}

// With and without a limit, a step in slices has the same nodes in the same order.
void expect_bits_in_slices(Network network, const std::string& slices) {
  network.more = {"--lms", slices};
  BitsOfNetwork sliced(network);
  ASSERT_LT(sliced.budgets().floor, sliced.budgets().need) << network.name;
  int cells = 0;
  unsigned seed = 0;
  for (const lms::PolicyRow& policy : lms::policies()) {
    for (int level = 0; level < 3 && moves_something(policy); ++level) {
      const int sync_mode = static_cast<int>(seed % 4);
      cells += sliced.check(policy, level, sync_mode, ++seed) ? 1 : 0;
    }
  }
  EXPECT_GT(cells, 5) << network.name;
}

TEST(LongLmsBits, EqualThoseOfTheUnlimitedRunInSlices) {
  const Network network{"cifar10", "alexnet", 32, 30};
  Network sliced = network;
  sliced.more = {"--lms", "--lms_slices=4"};
  EXPECT_LT(BitsOfNetwork(sliced).budgets().floor, BitsOfNetwork(network).budgets().floor);
  expect_bits_in_slices(network, "--lms_slices=4");
}

TEST(LongLmsBits, EqualThoseOfTheUnlimitedRunInSlicesOfRows) {
  expect_bits_in_slices({"mnist", "mnist_deep", 28, 64}, "--lms_row_slices=3");
}

class SlowLmsBits : public testing::TestWithParam<models::Model> {};

INSTANTIATE_TEST_SUITE_P(SlowAll, SlowLmsBits, testing::ValuesIn(models::all()),
                         [](const auto& info) {
                           std::string name = std::string(info.param.data_set) + "_" +
                                              std::string(info.param.name);
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST_P(SlowLmsBits, AreThoseOfTheUnlimitedRun) {
  std::optional<BitsOfNetwork> network;
  for (const int batch_size : {2, 64}) {  // small networks have too little to move with two images
    Network small = toy(GetParam());
    small.batch_size = batch_size;
    network.emplace(small);
    if (network->budgets().floor < network->budgets().need) {
      break;
    }
  }
  const auto [need, floor] = network->budgets();
  int cells = 0;
  unsigned seed = 0;
  for (const lms::PolicyRow& policy : lms::policies()) {
    for (int level = 0; level < 3 && floor < need && moves_something(policy); ++level) {
      for (int sync = 0; sync < 4; ++sync) {
        cells += network->check(policy, level, sync, ++seed) ? 1 : 0;
      }
    }
  }
  RecordProperty("cells", cells);
  std::cout << cells << " cells, of " << floor << " to " << need << " bytes\n";
  EXPECT_TRUE(cells > 0 || floor == need);
}

}  // namespace
}  // namespace cnn::bench
