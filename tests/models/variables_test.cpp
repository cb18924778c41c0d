#include <algorithm>
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

// Returns the variables that tf_cnn_benchmarks writes into its checkpoints, in the order of their
// creation. The columns are data set, model, variable, shape, and 1 if it is trainable.
std::map<Network, std::vector<Variable>> original() {
  std::ifstream file(CNN_SOURCE_DIR "/tests/models/variables.tsv");
  std::map<Network, std::vector<Variable>> networks;
  std::string line;
  std::getline(file, line);  // the table's header
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
  ASSERT_EQ(networks.size(), 44u);
  for (const auto& [network, variables] : networks) {
    EXPECT_EQ(ours(find(network.first, network.second), {}), variables) << network.second;
  }
}

TEST(Variables, AreTheSameInAnEvaluationGraph) {
  for (const char* name : {"resnet50", "resnet50_v2", "inception3", "mobilenet", "nasnet",
                           "official_resnet18", "official_resnet50_v2"}) {
    const Model& model = find("imagenet", name);
    EXPECT_EQ(ours(model, {.training = false}), ours(model, {})) << name;
  }
}

// The auxiliary head adds its own variables; no other variable changes its name or position.
TEST(Variables, IncludeThoseOfAnAuxiliaryHead) {
  struct Head {
    const char *data_set, *model, *prefix, *last;
    std::size_t count;
  };
  for (const Head& head : {Head{"imagenet", "nasnet", "v/cg/aux_7/aux_logits/",
                                "v/cg/aux_7/aux_logits/Conv/weights", 10},
                           Head{"imagenet", "nasnetlarge", "v/cg/aux_11/aux_logits/",
                                "v/cg/aux_11/aux_logits/aux_bn1/moving_variance", 10},
                           Head{"cifar10", "nasnet", "v/cg/aux_11/aux_logits/",
                                "v/cg/aux_11/aux_logits/proj/biases", 10}}) {
    const Model& model = find(head.data_set, head.model);
    const std::vector<Variable> alone = ours(model, {});
    Graph graph;
    const Shape shape{1, model.channels, model.image_size, model.image_size};
    logits_of_two_heads(model, graph.input("images", {.shape = shape}));
    std::vector<std::string> others, added;
    for (const TensorInfo& info : graph.tensors()) {
      if (info.saved) {
        const bool is_of_head =
            info.name.starts_with(head.prefix) || info.name.starts_with("v/cg/affine1/");
        (is_of_head ? added : others).push_back(info.name);
      }
    }
    ASSERT_EQ(others.size(), alone.size()) << head.model;
    for (std::size_t i = 0; i < others.size(); ++i) {
      EXPECT_EQ(others[i], alone[i].name);
    }
    EXPECT_EQ(added.size(), head.count + 2) << head.model;
    EXPECT_NE(std::ranges::find(added, head.last), added.end()) << head.model;
  }
}

TEST(Variables, KeepTheChannelsOfDepthwiseKernelsThirdInMobilenet) {
  const std::vector<Variable> variables = ours(find("imagenet", "mobilenet"), {});
  EXPECT_EQ(variables[5], (Variable{"v/cg/conv1/conv2d/kernel", "3x3x32x1", true}));
}

}  // namespace
}  // namespace cnn::models
