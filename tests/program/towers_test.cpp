#include <csignal>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using Words = std::vector<std::string>;

std::string idx(const std::vector<std::uint32_t>& shape, const std::string& bytes) {
  std::string file{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const std::uint32_t size : shape) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
      file += static_cast<char>(size >> shift & 0xffU);
    }
  }
  return file + bytes;
}

// Writes 256 random images of ten classes for training and evaluation.
void write_images(const TemporaryFolder& folder) {
  constexpr std::uint32_t count = 256;
  std::mt19937 random(7);
  std::string images, labels;
  for (std::uint32_t i = 0; i < count; ++i) {
    labels += static_cast<char>(random() % 10);
    for (int pixel = 0; pixel < 28 * 28; ++pixel) {
      images += static_cast<char>(random() % 256);
    }
  }
  for (const std::string kind : {"train", "t10k"}) {
    folder.write(kind + "-images-idx3-ubyte", idx({count, 28, 28}, images));
    folder.write(kind + "-labels-idx1-ubyte", idx({count}, labels));
  }
}

Words on_images(const TemporaryFolder& folder, const Words& more) {
  Words flags{"--device=cpu",           "--data_name=mnist", "--data_dir=" + folder.path().string(),
              "--model=mnist_deep",     "--nodropout",       "--optimizer=momentum",
              "--num_warmup_batches=0", "--display_every=1", "--nomeasure_ceilings"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

std::vector<double> losses(const Finished& run) {
  EXPECT_EQ(run.status, 0) << run.err;
  std::vector<double> result;
  for (const std::string& line : run.step_lines()) {
    result.push_back(std::stod(words_of(line).back()));
  }
  return result;
}

void expect_near(const std::vector<double>& is, const std::vector<double>& right) {
  ASSERT_EQ(is.size(), right.size());
  for (std::size_t i = 0; i < is.size(); ++i) {
    EXPECT_NEAR(is[i], right[i], 0.002 + 1e-3 * right[i]) << "step " << i + 1;
  }
}

TEST(Towers, TrainAsOneProcessWithTheWholeBatch) {
  const TemporaryFolder folder;
  write_images(folder);
  const auto trained = [&](const Words& more) {
    Words flags = on_images(folder, {"--num_batches=8"});
    flags.insert(flags.end(), more.begin(), more.end());
    return losses(run_program(flags));
  };
  const std::vector<double> whole =
      trained({"--batch_size=24", "--init_learning_rate=0.012", "--weight_decay=0.001"});
  for (const std::string ranks : {"2", "3", "4"}) {
    const int n = std::stoi(ranks);
    const std::string batch = "--batch_size=" + std::to_string(24 / n);
    expect_near(trained({batch, "--num_gpus=" + ranks, "--init_learning_rate=0.012",
                         "--weight_decay=0.001"}),
                whole);
    // A sum equals a mean if the learning rate is smaller by the number of towers.
    expect_near(
        trained({batch, "--num_gpus=" + ranks, "--variable_update=replicated",
                 "--init_learning_rate=" + std::to_string(0.012 / n), "--weight_decay=0.001"}),
        whole);
  }
}

TEST(Towers, AreCopiesOfTheSingleRunIfIndependent) {
  const TemporaryFolder folder;
  write_images(folder);
  const Words flags = on_images(folder, {"--batch_size=8", "--num_batches=6", "--weight_decay=0.01",
                                         "--init_learning_rate=0.05", "--num_intra_threads=1"});
  Words apart = flags;
  apart.insert(apart.end(), {"--num_gpus=2", "--variable_update=independent"});
  const Finished run = run_program(apart);
  EXPECT_EQ(losses(run), losses(run_program(flags)));
  EXPECT_NE(run.err.find("nothing is exchanged"), std::string::npos) << run.err;
}

TEST(Towers, ArePrintedAsTheOriginalDoes) {
  const Finished run = run_program({"--device=cpu", "--model=trivial", "--batch_size=4",
                                    "--num_batches=2", "--num_gpus=2", "--nomeasure_ceilings"});
  EXPECT_EQ(run.status, 0) << run.err;
  for (const char* line : {"Batch size:  8 global\n             4 per device\n",
                           "Devices:     ['/cpu:0', '/cpu:1']\n", "total images/sec: "}) {
    EXPECT_NE(run.out.find(line), std::string::npos) << run.out;
  }
  EXPECT_NE(run.err.find("2 ranks on threads of this process: gradients are averaged"),
            std::string::npos)
      << run.err;
}

TEST(Towers, GoOnWithAnotherNumberOfThemAndShareAnEvaluation) {
  const TemporaryFolder folder;
  write_images(folder);
  const std::string train_dir = "--train_dir=" + (folder / "t");
  const auto run = [&](const Words& more) {
    Words flags = on_images(folder, {train_dir, "--init_learning_rate=0.01"});
    flags.insert(flags.end(), more.begin(), more.end());
    return run_program(flags);
  };
  EXPECT_EQ(losses(run({"--batch_size=8", "--num_gpus=2", "--num_batches=4"})).size(), 4U);
  const Finished second = run({"--batch_size=16", "--num_batches=7"});
  EXPECT_EQ(losses(second).size(), 3U);
  EXPECT_NE(second.err.find("at global step 4"), std::string::npos) << second.err;
  const auto accuracy = [&](const Words& more) {
    Words flags{"--eval", "--num_eval_batches=4"};
    flags.insert(flags.end(), more.begin(), more.end());
    for (const std::string& line : run(flags).lines()) {
      if (line.starts_with("Accuracy @ 1")) {
        return line;
      }
    }
    return std::string();
  };
  const std::string one = accuracy({"--batch_size=16"});
  EXPECT_TRUE(one.ends_with("[64 examples]")) << one;
  EXPECT_EQ(accuracy({"--batch_size=8", "--num_gpus=2"}), one);
}

TEST(Towers, StopTogether) {
  const auto has_started = [](const Finished& run) {
    return run.out.find("\n1\timages/sec") != std::string::npos;
  };
  const Finished run =
      run_and_signal({"--device=cpu", "--model=trivial", "--batch_size=2", "--num_batches=1000000",
                      "--num_gpus=3", "--display_every=1", "--nomeasure_ceilings"},
                     has_started, {SIGTERM});
  EXPECT_EQ(run.status, 128 + SIGTERM) << run.err;
  EXPECT_NE(run.out.find("total images/sec"), std::string::npos);
}

}  // namespace
}  // namespace cnn::tests
