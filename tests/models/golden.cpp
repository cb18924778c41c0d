#include "tests/models/golden.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/error.h"

namespace cnn::tests {

Golden read_golden(std::string_view name) {
  const std::string path = CNN_SOURCE_DIR "/tests/golden/" + std::string(name) + ".json";
  std::ifstream file(path);
  check(file.good(), "cannot read " + path);
  const nlohmann::json json = nlohmann::json::parse(file);
  Golden golden;
  json.at("model").get_to(golden.model);
  json.at("data_set").get_to(golden.data_set);
  json.at("optimizer").get_to(golden.optimizer);
  golden.training = json.at("phase") == "train";
  json.at("batch_size").get_to(golden.batch_size);
  json.at("image_size").get_to(golden.image_size);
  json.at("seed").get_to(golden.seed);
  json.at("weight_decay").get_to(golden.weight_decay);
  json.at("learning_rate").get_to(golden.learning_rate);
  json.at("labels").get_to(golden.labels);
  json.at("logits_head").get_to(golden.logits_head);
  json.at("logits_norm").get_to(golden.logits_norm);
  json.at("total_loss").get_to(golden.total_loss);
  json.at("base_loss").get_to(golden.base_loss);
  json.at("tolerance").get_to(golden.tolerance);
  if (!golden.training) {
    json.at("argmax").get_to(golden.argmax);
    return golden;
  }
  json.at("gradient_tolerance").get_to(golden.gradient_tolerance);
  json.at("after").get_to(golden.after);
  for (const auto& [variable, gradient] : json.at("gradients").items()) {
    golden.gradients[variable] = {gradient.at("norm"), gradient.at("head")};
  }
  return golden;
}

}  // namespace cnn::tests
