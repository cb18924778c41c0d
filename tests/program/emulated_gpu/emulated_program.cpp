#include "tests/program/emulated_gpu/emulated_program.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/files.h"

namespace cnn::tests {

Words with(Words flags, const Words& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

double Training::number(const std::string& place) const {
  const nlohmann::json parsed = nlohmann::json::parse(result);
  const nlohmann::json::json_pointer pointer(place);
  return parsed.contains(pointer) && parsed.at(pointer).is_number()
             ? parsed.at(pointer).get<double>()
             : std::numeric_limits<double>::quiet_NaN();
}

Training train(const std::string& device, const Words& flags) {
  const TemporaryFolder folder;
  const std::string result = folder / "result.json", counts = folder / "counts";
  const Environment driver("LD_LIBRARY_PATH", CNN_EMULATED_FOLDER);
  const Environment counted("CNN_EMULATED_COUNTS", counts.c_str());
  const Words common{"--device=" + device,      "--notune",
                     "--num_warmup_batches=0",  "--display_every=1",
                     "--tf_random_seed=7",      "--nomeasure_ceilings",
                     "--precision=fp32_strict", "--result_json=" + result};
  Training training{.run = run_program(with(common, flags))};
  EXPECT_EQ(training.run.status, 0) << training.run.err << training.run.out;
  if (training.run.status == 0) {
    training.result = read_file(result);
    const nlohmann::json written = nlohmann::json::parse(training.result);
    for (const auto& step : written.at("steps")) {
      const auto& loss = step.at("base_loss");
      training.base.push_back(loss.is_null() ? std::numeric_limits<double>::infinity()
                                             : loss.get<double>());
    }
    std::string name;
    std::istringstream(read_file(counts)) >> name >> training.launches >> name >>
        training.executions >> name >> training.replays >> name >> training.peak_bytes;
  }
  return training;
}

Finished run_on_gpu(const Words& flags) {
  const Environment driver("LD_LIBRARY_PATH", CNN_EMULATED_FOLDER);
  return run_program(with({"--device=gpu", "--notune", "--nomeasure_ceilings"}, flags));
}

void expect_losses_of_the_cpu(const Words& flags, double tolerance, const Words& more) {
  const Training cpu = train("cpu", flags), gpu = train("gpu", with(flags, more));
  ASSERT_FALSE(cpu.base.empty());
  ASSERT_EQ(gpu.base.size(), cpu.base.size());
  for (std::size_t step = 0; step < cpu.base.size(); ++step) {
    EXPECT_NEAR(gpu.base[step], cpu.base[step], tolerance * std::abs(cpu.base[step]))
        << "step " << step;
  }
}

Words small_resnet(const Words& more) {
  return with({"--data_name=cifar10", "--model=resnet20", "--image_size=16", "--batch_size=2",
               "--optimizer=momentum", "--init_learning_rate=0.01"},
              more);
}

}  // namespace cnn::tests
