#include "models/catalog.h"

#include <algorithm>
#include <array>

#include "models/networks.h"
#include "runtime/error.h"
#include "runtime/spelling.h"

namespace cnn::models {
namespace {

using enum ResnetVersion;

constexpr DefaultRate constant{0.005, RateRule::constant};
constexpr DefaultRate resnet_rate{0.128, RateRule::resnet};
constexpr DefaultRate cifar_resnet_rate{0.1, RateRule::cifar_resnet};
constexpr DefaultRate cifar_alexnet_rate{0.1, RateRule::cifar_alexnet};
constexpr DefaultRate densenet_rate{0.1, RateRule::densenet};

template <ResnetVersion version, int... blocks>
Value resnet_of(Value images) {
  return resnet(images, version, {blocks...});
}
template <int... convolutions>
Value vgg_of(Value images) {
  return vgg(images, {convolutions...});
}
template <ResnetVersion version, int blocks>
Value resnet_cifar_of(Value images) {
  return resnet_cifar(images, version, blocks);
}
template <int layers, int growth>
Value densenet_of(Value images) {
  return densenet(images, layers, growth);
}

Model row(std::string_view name, int image_size, int batch_size, DefaultRate rate,
          Value (*build)(Value)) {
  return {.name = name,
          .printed_name = name,
          .image_size = image_size,
          .batch_size = batch_size,
          .rate = rate,
          .build = build};
}

Model printed_as(std::string_view printed, Model model) {
  model.printed_name = printed;
  return model;
}

// Classes include the background class 0 of imagenet and the unused class 10 of cifar10.
std::vector<Model> on(std::string_view data_set, std::int64_t channels, std::int64_t classes,
                      std::vector<Model> models) {
  for (Model& model : models) {
    model.data_set = data_set;
    model.channels = channels;
    model.classes = classes;
  }
  return models;
}

std::vector<Model> imagenet() {
  return on("imagenet", 3, 1001,
            {
                row("trivial", 227, 32, constant, trivial),
                printed_as("lenet5", row("lenet", 28, 32, constant, lenet)),
                row("alexnet", 227, 512, constant, alexnet),
                row("overfeat", 231, 32, constant, overfeat),
                row("vgg11", 224, 64, constant, vgg_of<1, 1, 2, 2, 2>),
                row("vgg16", 224, 64, constant, vgg_of<2, 2, 3, 3, 3>),
                row("vgg19", 224, 64, constant, vgg_of<2, 2, 4, 4, 4>),
                row("googlenet", 224, 32, constant, googlenet),
                row("inception3", 299, 32, constant, inception3),
                row("inception4", 299, 32, constant, inception4),
                row("resnet50", 224, 64, resnet_rate, resnet_of<v1, 3, 4, 6, 3>),
                row("resnet50_v1.5", 224, 64, resnet_rate, resnet_of<v1_5, 3, 4, 6, 3>),
                row("resnet50_v2", 224, 64, resnet_rate, resnet_of<v2, 3, 4, 6, 3>),
                row("resnet101", 224, 32, resnet_rate, resnet_of<v1, 3, 4, 23, 3>),
                row("resnet101_v2", 224, 32, resnet_rate, resnet_of<v2, 3, 4, 23, 3>),
                row("resnet152", 224, 32, resnet_rate, resnet_of<v1, 3, 8, 36, 3>),
                row("resnet152_v2", 224, 32, resnet_rate, resnet_of<v2, 3, 8, 36, 3>),
                row("mobilenet", 224, 32, constant, mobilenet),
            });
}

std::vector<Model> cifar10() {
  Model full = row("cifar10_full", 32, 100, {0.001, RateRule::constant}, cifar10_full);
  full.head_stddev = 0.01;
  return on("cifar10", 3, 11,
            {
                row("trivial", 32, 32, constant, trivial),
                row("alexnet", 32, 128, cifar_alexnet_rate, alexnet_cifar),
                full,
                row("resnet20", 32, 128, cifar_resnet_rate, resnet_cifar_of<v1, 3>),
                row("resnet20_v2", 32, 128, cifar_resnet_rate, resnet_cifar_of<v2, 3>),
                row("resnet32", 32, 128, cifar_resnet_rate, resnet_cifar_of<v1, 5>),
                row("resnet32_v2", 32, 128, cifar_resnet_rate, resnet_cifar_of<v2, 5>),
                row("resnet44", 32, 128, cifar_resnet_rate, resnet_cifar_of<v1, 7>),
                row("resnet44_v2", 32, 128, cifar_resnet_rate, resnet_cifar_of<v2, 7>),
                row("resnet56", 32, 128, cifar_resnet_rate, resnet_cifar_of<v1, 9>),
                row("resnet56_v2", 32, 128, cifar_resnet_rate, resnet_cifar_of<v2, 9>),
                row("resnet110", 32, 128, cifar_resnet_rate, resnet_cifar_of<v1, 18>),
                row("resnet110_v2", 32, 128, cifar_resnet_rate, resnet_cifar_of<v2, 18>),
                row("densenet40_k12", 32, 64, densenet_rate, densenet_of<12, 12>),
                row("densenet100_k12", 32, 64, densenet_rate, densenet_of<32, 12>),
                row("densenet100_k24", 32, 64, densenet_rate, densenet_of<32, 24>),
            });
}

std::vector<Model> mnist() {
  Model deep = row("mnist_deep", 28, 50, {0.1, RateRule::constant}, mnist_deep);
  deep.head_stddev = 0.1;
  deep.head_bias = 0.1;
  return on("mnist", 1, 10,
            {
                deep,
                printed_as("lenet5", row("lenet", 28, 32, constant, lenet)),
                row("trivial", 28, 32, constant, trivial),
            });
}

// Names of tf_cnn_benchmarks that have no network here.
bool left_out(std::string_view name) {
  constexpr std::array<std::string_view, 5> others{"nasnet", "nasnetlarge", "ssd300", "ncf",
                                                   "deepspeech2"};
  return name.starts_with("official_resnet") ||
         std::find(others.begin(), others.end(), name) != others.end();
}

}  // namespace

const std::vector<Model>& all() {
  static const std::vector<Model> table = [] {
    std::vector<Model> models = imagenet();
    for (const auto& more : {cifar10(), mnist()}) {
      models.insert(models.end(), more.begin(), more.end());
    }
    return models;
  }();
  return table;
}

std::string names(std::string_view data_set) {
  std::string list;
  for (const Model& model : all()) {
    if (model.data_set == data_set) {
      list += (list.empty() ? "" : ", ") + std::string(model.name);
    }
  }
  return list;
}

const Model& find(std::string_view data_set, std::string_view name) {
  std::vector<std::string> candidates;
  std::string elsewhere;
  for (const Model& model : all()) {
    if (model.data_set == data_set && model.name == name) {
      return model;
    }
    if (model.data_set == data_set) {
      candidates.emplace_back(model.name);
    } else if (model.name == name) {
      elsewhere += (elsewhere.empty() ? "--data_name=" : " or --data_name=");
      elsewhere += model.data_set;
    }
  }
  const std::string known = names(data_set);
  check(!known.empty(), "No models for dataset '" + std::string(data_set) +
                            "'; there are some for imagenet, cifar10 and mnist");
  if (left_out(name)) {
    throw Error("Model '" + std::string(name) +
                "' of tf_cnn_benchmarks is not built here; choose one of " + known);
  }
  const std::string told =
      "--model=" + std::string(name) + ": no such model for the data set " + std::string(data_set);
  check(elsewhere.empty(), told + "; it needs " + elsewhere);
  const std::string hint = did_you_mean(name, candidates);
  throw Error(told + (hint.empty() ? "; choose one of " + known : hint));
}

}  // namespace cnn::models
