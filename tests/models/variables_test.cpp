#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "models/catalog.h"
#include "runtime/checkpoint_layout.h"
#include "runtime/graph.h"

namespace cnn::models {
namespace {

struct Variable {
  std::string name, shape;
  bool trainable = false;
  bool operator==(const Variable&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Variable& variable) {
  return out << variable.name << " " << variable.shape << (variable.trainable ? " trained" : "");
}

using Network = std::pair<std::string, std::string>;  // data set, model

// Returns the variables that tf_cnn_benchmarks puts into its checkpoints, in the order it makes it:
// data set, model, variable, shape, 1 if trained.
std::map<Network, std::vector<Variable>> original() {
  std::ifstream file(CNN_SOURCE_DIR "/tests/models/variables.tsv");
  std::map<Network, std::vector<Variable>> networks;
  std::string line;
  std::getline(file, line);  // the head of the table
  while (std::getline(file, line)) {
    std::istringstream columns(line);
    Network network;
    Variable variable;
    columns >> network.first >> network.second >> variable.name >> variable.shape >>
        variable.trainable;
    networks[network].push_back(variable);
  }
  return networks;
}

std::string text_of(const Shape& shape) {
  std::string text;
  for (const std::int64_t dim : shape) {
    text += text.empty() ? "" : "x";
    text += std::to_string(dim);
  }
  return text;
}

std::vector<Variable> ours(const Model& model, const Traits& traits) {
  Graph graph(traits);
  const Shape shape{1, model.channels, model.image_size, model.image_size};
  logits(model, graph.input("images", {.shape = shape}));
  std::vector<Variable> variables;
  for (const TensorInfo& info : graph.tensors()) {
    if (info.saved) {
      variables.push_back(
          {info.name, text_of(checkpoint_shape(info)), info.role == Role::parameter});
    }
  }
  return variables;
}

TEST(Variables, AreNamedAndOrderedAsInTheCheckpointsOfTheOriginal) {
  const auto networks = original();
  ASSERT_EQ(networks.size(), 29u);
  for (const auto& [network, variables] : networks) {
    EXPECT_EQ(ours(find(network.first, network.second), {}), variables) << network.second;
  }
}

TEST(Variables, AreTheSameInAnEvaluationGraph) {
  for (const char* name : {"resnet50", "resnet50_v2", "inception3", "mobilenet"}) {
    const Model& model = find("imagenet", name);
    EXPECT_EQ(ours(model, {.training = false}), ours(model, {})) << name;
  }
}

TEST(Variables, OfMobilenetKeepDepthwiseKernelsWithTheirChannelsThird) {
  const std::vector<Variable> variables = ours(find("imagenet", "mobilenet"), {});
  EXPECT_EQ(variables[5], (Variable{"v/cg/conv1/conv2d/kernel", "3x3x32x1", true}));
}

}  // namespace
}  // namespace cnn::models
