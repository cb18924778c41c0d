#include "models/catalog.h"

#include <utility>

#include "models/networks.h"
#include "runtime/error.h"
#include "runtime/spelling.h"

namespace cnn::models {
namespace {

using enum ResnetVersion;

constexpr DefaultRate constant{0.005, RateRule::constant};
constexpr DefaultRate resnet_rate{0.128, RateRule::resnet};
constexpr DefaultRate official_rate{0.0125, RateRule::official_resnet};
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
template <NasnetSize size>
Value nasnet_of(Value images) {
  return nasnet(images, size);
}
template <NasnetSize size>
TwoHeads two_heads_of(Value images) {
  return nasnet_with_auxiliary_head(images, size);
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

Model with_auxiliary_head(TwoHeads (*build)(Value), Model model) {
  model.build_two_heads = build;
  return model;
}

template <bool bottleneck, ResnetVersion version, int... blocks>
Model official(std::string_view name, std::string_view printed, int batch_size = 32) {
  Model model = row(name, 224, batch_size, official_rate, [](Value images) {
    return official_resnet(images, {bottleneck, version, {blocks...}});
  });
  model.ends_in_logits = true;
  return printed_as(printed, model);
}

std::vector<Model> official_resnets() {
  return {
      official<false, v1, 2, 2, 2, 2>("official_resnet18", "official_resnet_18_v1"),
      official<false, v1, 3, 4, 6, 3>("official_resnet34", "official_resnet_34_v1"),
      official<true, v1, 3, 4, 6, 3>("official_resnet50", "official_resnet_50_v1", 128),
      official<true, v1, 3, 4, 23, 3>("official_resnet101", "official_resnet_101_v1"),
      official<true, v1, 3, 8, 36, 3>("official_resnet152", "official_resnet_152_v1"),
      official<true, v1, 3, 24, 36, 3>("official_resnet200", "official_resnet_200_v1"),
      official<false, v2, 2, 2, 2, 2>("official_resnet18_v2", "official_resnet_18_v2"),
      official<false, v2, 3, 4, 6, 3>("official_resnet34_v2", "official_resnet_34_v2"),
      official<true, v2, 3, 4, 6, 3>("official_resnet50_v2", "official_resnet_50_v2", 128),
      official<true, v2, 3, 4, 23, 3>("official_resnet101_v2", "official_resnet_101_v2"),
      official<true, v2, 3, 8, 36, 3>("official_resnet152_v2", "official_resnet_152_v2"),
      official<true, v2, 3, 24, 36, 3>("official_resnet200_v2", "official_resnet_200_v2"),
  };
}

std::vector<Model> imagenet() {
  std::vector<Model> models = {
      row("trivial", 227, 32, constant, trivial),
      printed_as("lenet5", row("lenet", 28, 32, constant, lenet)),
      row("alexnet", 227, 512, constant, alexnet),
      row("overfeat", 231, 32, constant, overfeat),
      row("vgg11", 224, 64, constant, vgg_of<1, 1, 2, 2, 2>),
      row("vgg16", 224, 64, constant, vgg_of<2, 2, 3, 3, 3>),
      row("vgg19", 224, 64, constant, vgg_of<2, 2, 4, 4, 4>),
      row("googlenet", 224, 32, constant, googlenet),
      with_auxiliary_head(inception3_with_auxiliary_head,
                          row("inception3", 299, 32, constant, inception3)),
      row("inception4", 299, 32, constant, inception4),
      row("resnet50", 224, 64, resnet_rate, resnet_of<v1, 3, 4, 6, 3>),
      row("resnet50_v1.5", 224, 64, resnet_rate, resnet_of<v1_5, 3, 4, 6, 3>),
      row("resnet50_v2", 224, 64, resnet_rate, resnet_of<v2, 3, 4, 6, 3>),
      row("resnet101", 224, 32, resnet_rate, resnet_of<v1, 3, 4, 23, 3>),
      row("resnet101_v2", 224, 32, resnet_rate, resnet_of<v2, 3, 4, 23, 3>),
      row("resnet152", 224, 32, resnet_rate, resnet_of<v1, 3, 8, 36, 3>),
      row("resnet152_v2", 224, 32, resnet_rate, resnet_of<v2, 3, 8, 36, 3>),
      row("mobilenet", 224, 32, constant, mobilenet),
      with_auxiliary_head(two_heads_of<NasnetSize::mobile>,
                          row("nasnet", 224, 32, constant, nasnet_of<NasnetSize::mobile>)),
      with_auxiliary_head(two_heads_of<NasnetSize::large>,
                          printed_as("nasnet", row("nasnetlarge", 331, 16, constant,
                                                   nasnet_of<NasnetSize::large>))),
  };
  for (const Model& model : official_resnets()) {
    models.push_back(model);
  }
  return on("imagenet", 3, 1001, std::move(models));
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
                with_auxiliary_head(two_heads_of<NasnetSize::cifar>,
                                    row("nasnet", 32, 32, {0.025, RateRule::constant},
                                        nasnet_of<NasnetSize::cifar>)),
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

// Returns the task of a tf_cnn_benchmarks network that does not classify images; empty for other
// names.
std::string_view other_task(std::string_view name) {
  return name == "ssd300"        ? "object detection"
         : name == "ncf"         ? "recommendation"
         : name == "deepspeech2" ? "speech recognition"
                                 : "";
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
  if (const std::string_view task = other_task(name); !task.empty()) {
    throw Error("--model=" + std::string(name) + ": this program trains image classifiers, and " +
                std::string(name) + " is a network for " + std::string(task) + "; choose one of " +
                known);
  }
  const std::string told =
      "--model=" + std::string(name) + ": no such model for the data set " + std::string(data_set);
  check(elsewhere.empty(), told + "; it needs " + elsewhere);
  const std::string hint = did_you_mean(name, candidates);
  throw Error(told + (hint.empty() ? "; choose one of " + known : hint));
}

}  // namespace cnn::models
