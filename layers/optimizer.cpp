#include "layers/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "layers/elementwise.h"
#include "layers/operands.h"
#include "runtime/error.h"

namespace cnn::layers {

namespace {

// One parameter with its gradient and slots; slots that the rule lacks are empty.
struct Operand {
  std::span<float> w;
  std::span<const float> gradient;
  std::span<float> slot0, slot1;
  double decay = 0;
};

void update(const UpdateAttributes& attributes, const Update::Scalars& scalars, const Operand& p) {
  const RuleRow& rule = row_of(attributes.rule);
  const RuleFactors factors = rule.factors(attributes);
  const std::optional<double>& clip = attributes.clip;
  for (std::size_t i = 0; i < p.w.size(); ++i) {
    const double whole = p.gradient[i] * scalars.unscale + p.decay * p.w[i];
    const Weight weight{.value = p.w[i],
                        .gradient = clip ? std::clamp(whole, -*clip, *clip) : whole,
                        .slot0 = p.slot0.empty() ? nullptr : &p.slot0[i],
                        .slot1 = p.slot1.empty() ? nullptr : &p.slot1[i]};
    p.w[i] = static_cast<float>(rule.step(factors, scalars.rate, weight));
  }
}

double sum_of_squares(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) {
    sum += static_cast<double>(value) * value;
  }
  return sum;
}

bool is_scalar(const TensorDesc& desc, DataType type) {
  return desc.shape.rank() == 0 && desc.type == type;
}

}  // namespace

std::size_t Update::first_parameter() const {
  return 1u + (attributes.automatic_loss_scale ? 2 : 0) +
         (row_of(attributes.rule).has_powers ? 2 : 0);
}

std::size_t Update::slots() const { return row_of(attributes.rule).slots.size(); }

std::optional<std::size_t> Update::copy_of(std::size_t parameter) const {
  const auto found = std::ranges::find(attributes.copied, parameter);
  return found == attributes.copied.end()
             ? std::nullopt
             : std::optional(first_copy() +
                             static_cast<std::size_t>(found - attributes.copied.begin()));
}

bool Update::mutates(std::size_t input) const {
  const bool parameter = input >= first_parameter() && input < first_gradient();
  return parameter || input >= first_slot();
}

std::vector<TensorDesc> Update::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, first_copy() + attributes.copied.size());
  require(attributes.decay.size() == parameters, *this, in, "decay has an entry per parameter");
  for (std::size_t i = 0; i < first_parameter(); ++i) {
    const bool found_inf = attributes.automatic_loss_scale && i == 2;
    require(is_scalar(in[i], found_inf ? DataType::i32 : DataType::f32), *this, in,
            "rates, scales and powers are f32 [], found_inf is i32 []");
  }
  for (std::size_t i = first_parameter(); i < first_copy(); ++i) {
    const TensorDesc& own = in[first_parameter() + (i - first_parameter()) % parameters];
    require(in[i].shape == own.shape && in[i].type == DataType::f32, *this, in,
            "a parameter, its gradient and its slots are f32 of one shape");
  }
  for (std::size_t i = 0; i < attributes.copied.size(); ++i) {
    const TensorDesc& copy = in[first_copy() + i];
    require(attributes.copied[i] < parameters &&
                copy.shape == in[first_parameter() + attributes.copied[i]].shape &&
                size_of(copy.type) == 2,
            *this, in, "a copy has 16 bits and the shape of its parameter");
  }
  return {described({static_cast<std::int64_t>(parameters)}, DataType::f32)};
}

Update::Scalars Update::scalars(std::span<const TensorView> in) const {
  const auto scalar = [&](std::size_t i) -> double { return in[i].as<float>()[0]; };
  const bool automatic = attributes.automatic_loss_scale;
  Scalars result{.rate = scalar(0),
                 .unscale = 1 / (automatic ? scalar(1) : attributes.loss_scale),
                 .skip = automatic && in[2].as<std::int32_t>()[0] != 0};
  if (row_of(attributes.rule).has_powers) {
    const double beta1_power = scalar(first_parameter() - 2);
    const double beta2_power = scalar(first_parameter() - 1);
    result.rate *= std::sqrt(1 - beta2_power) / (1 - beta1_power);
  }
  return result;
}

void Update::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const UpdateAttributes& u = attributes;
  const Scalars step = scalars(in);
  for (std::size_t p = 0; p < parameters; ++p) {
    const auto slot = [&](std::size_t s) {
      return s < slots() ? in[first_slot() + s * parameters + p].as<float>() : std::span<float>();
    };
    const Operand operand{.w = in[first_parameter() + p].as<float>(),
                          .gradient = in[first_gradient() + p].as<float>(),
                          .slot0 = slot(0),
                          .slot1 = slot(1),
                          .decay = u.decay[p] ? u.weight_decay : 0};
    const double squares = operand.decay != 0 ? sum_of_squares(operand.w) : 0;
    out[0].as<float>()[p] = static_cast<float>(squares / 2);
    if (!step.skip) {
      update(u, step, operand);
    }
  }
  for (std::size_t i = 0; i < u.copied.size() && !step.skip; ++i) {
    std::ranges::copy(in[first_parameter() + u.copied[i]].as<float>(),
                      in[first_copy() + i].as<float>().begin());
  }
}

std::vector<TensorDesc> SumInOrder::infer(std::span<const TensorDesc> in) const {
  for (const TensorDesc& desc : in) {
    require(desc.type == DataType::f32 && desc.shape.rank() == 1, *this, in, "takes f32 [n] each");
  }
  return {described({}, DataType::f32)};
}

void SumInOrder::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  double sum = 0;
  for (const TensorView& view : in) {
    for (const float value : view.as<float>()) {
      sum += value;
    }
  }
  out[0].as<float>()[0] = static_cast<float>(sum);
}

std::vector<TensorDesc> FoundInf::infer(std::span<const TensorDesc> in) const {
  for (const TensorDesc& desc : in) {
    require(is_real(desc.type), *this, in, "takes real tensors");
  }
  return {described({}, DataType::i32)};
}

void FoundInf::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const bool finite = std::ranges::all_of(in, [](const TensorView& view) {
    return std::ranges::all_of(view.as<float>(), [](float x) { return std::isfinite(x); });
  });
  out[0].as<std::int32_t>()[0] = finite ? 0 : 1;
}

std::vector<TensorDesc> AdvanceLossScale::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 3);
  require(is_scalar(in[0], DataType::f32) && is_scalar(in[1], DataType::f32) &&
              is_scalar(in[2], DataType::i32),
          *this, in, "takes f32 [], f32 [] and i32 []");
  return {};
}

void AdvanceLossScale::reference(std::span<const TensorView> in,
                                 std::span<const TensorView> /*out*/) const {
  float& loss_scale = in[0].as<float>()[0];
  float& count = in[1].as<float>()[0];
  if (in[2].as<std::int32_t>()[0] != 0) {
    loss_scale /= 2;
    count = 0;
  } else if (count < every_n) {
    count += 1;
  } else {
    loss_scale *= 2;
    count = 0;
  }
}

std::vector<TensorDesc> AdvanceAdam::infer(std::span<const TensorDesc> in) const {
  require(in.size() == 2 || in.size() == 3, *this, in, "takes two powers and perhaps found_inf");
  require(is_scalar(in[0], DataType::f32) && is_scalar(in[1], DataType::f32) &&
              (in.size() == 2 || is_scalar(in[2], DataType::i32)),
          *this, in, "takes f32 [], f32 [] and i32 []");
  return {};
}

void AdvanceAdam::reference(std::span<const TensorView> in,
                            std::span<const TensorView> /*out*/) const {
  if (in.size() == 3 && in[2].as<std::int32_t>()[0] != 0) {
    return;
  }
  in[0].as<float>()[0] = static_cast<float>(in[0].as<float>()[0] * beta1);
  in[1].as<float>()[0] = static_cast<float>(in[1].as<float>()[0] * beta2);
}

namespace {

TensorDesc scalar_desc(DataType type) { return described({}, type); }

Value scalar_state(Graph& graph, std::string name, double start) {
  return graph.state(std::move(name), scalar_desc(DataType::f32),
                     {Initializer::Kind::constant, start, 0}, true);
}

// Saves a slot with the axes of its parameter, which Graph::state does not set.
Value add_slot(Graph& graph, Value parameter, const RuleRow::Slot& slot) {
  const TensorInfo& own = graph.info(parameter.id);
  TensorInfo info{.name = own.name + "/" + std::string(slot.suffix),
                  .desc = own.desc,
                  .role = Role::state,
                  .initializer = {Initializer::Kind::constant, slot.start, 0},
                  .saved_as = own.saved_as,
                  .saved = true};
  return {&graph, graph.add_tensor(std::move(info))};
}

struct Trained {
  Value parameter, gradient;
};

// Groups at most `bytes` of parameters (or one larger parameter), in the order in which the graph
// computes the gradients. Gradients that ranks exchanged together form one group.
std::vector<std::vector<Trained>> buckets(const Graph& graph, std::vector<Trained> trained,
                                          std::size_t bytes) {
  std::ranges::stable_sort(trained, {}, [&](const Trained& t) {
    const std::optional<NodeId> producer = graph.producer(t.gradient.id);
    return producer ? index_of(*producer) + 1 : 0;
  });
  // Returns the exchange node that outputs a gradient, if any.
  const auto exchange = [&](const Trained& t) {
    const std::optional<NodeId> producer = graph.producer(t.gradient.id);
    const bool exchanged =
        producer && graph.nodes()[index_of(*producer)].op->lane() == Lane::communicate;
    return exchanged ? producer : std::nullopt;
  };
  std::vector<std::vector<Trained>> result;
  std::size_t filled = 0;
  for (const Trained& t : trained) {
    const std::size_t size = t.parameter.desc().bytes();
    const std::optional<NodeId> here = exchange(t);
    const bool full =
        result.empty() || (here ? here != exchange(result.back().back()) : filled + size > bytes);
    if (full) {
      result.emplace_back();
      filled = 0;
    }
    result.back().push_back(t);
    filled += size;
  }
  return result;
}

// Appends the values that every Update node of a graph takes first.
std::vector<Value> append_head(Graph& graph, std::span<const Value> gradients,
                               const OptimizerOptions& options) {
  std::vector<Value> head{graph.input("learning_rate", scalar_desc(DataType::f32))};
  if (options.update.automatic_loss_scale) {
    const std::optional<TensorId> loss_scale = graph.find("loss_scale");
    check(loss_scale.has_value(), "optimizer: gradients must start from loss_seed()");
    head.push_back({&graph, *loss_scale});
    head.push_back(emit_all(FoundInf(), gradients).front());
  }
  if (row_of(options.update.rule).has_powers) {
    head.push_back(scalar_state(graph, "beta1_power", options.update.adam_beta1));
    head.push_back(scalar_state(graph, "beta2_power", options.update.adam_beta2));
  }
  return head;
}

Value append_bucket(Graph& graph, std::span<const Value> head, std::span<const Trained> bucket,
                    const UpdateAttributes& common) {
  UpdateAttributes attributes = common;
  attributes.decay.clear();
  std::vector<Value> in(head.begin(), head.end());
  for (const Trained& t : bucket) {
    in.push_back(t.parameter);
    attributes.decay.push_back(graph.info(t.parameter.id).decay);
  }
  for (const Trained& t : bucket) {
    in.push_back(t.gradient);
  }
  for (const RuleRow::Slot& slot : row_of(attributes.rule).slots) {
    for (const Trained& t : bucket) {
      in.push_back(add_slot(graph, t.parameter, slot));
    }
  }
  return emit_all(Update(std::move(attributes), bucket.size()), in).front();
}

// Scale and powers advance after every update has read them.
void append_advances(Graph& graph, std::span<const Value> head, const OptimizerOptions& options) {
  const UpdateAttributes& u = options.update;
  if (u.automatic_loss_scale) {
    const Value count = scalar_state(graph, "loss_scale_normal_steps", 0);
    emit_all(AdvanceLossScale(options.loss_scale_every_n),
             std::vector<Value>{head[1], count, head[2]});
  }
  if (row_of(u.rule).has_powers) {
    std::vector<Value> in{head[head.size() - 2], head.back()};
    if (u.automatic_loss_scale) {
      in.push_back(head[2]);
    }
    emit_all(AdvanceAdam(u.adam_beta1, u.adam_beta2), in);
  }
}

}  // namespace

Value loss_seed(Graph& graph, const OptimizerOptions& options) {
  if (options.update.automatic_loss_scale) {
    return scalar_state(graph, "loss_scale", options.update.loss_scale);
  }
  return fill(graph, {}, static_cast<float>(options.update.loss_scale));
}

Value append_update(Graph& graph, std::span<const Value> parameters,
                    std::span<const Value> gradients, const OptimizerOptions& options) {
  check(parameters.size() == gradients.size() && !parameters.empty(),
        "optimizer: takes a gradient for each of one or more parameters");
  const std::vector<Value> head = append_head(graph, gradients, options);
  std::vector<Trained> trained;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    trained.push_back({parameters[i], gradients[i]});
  }
  std::vector<Value> sums;
  for (const auto& bucket : buckets(graph, std::move(trained), options.bucket_bytes)) {
    sums.push_back(append_bucket(graph, head, bucket, options.update));
  }
  append_advances(graph, head, options);
  return emit_all(SumInOrder(), sums).front();
}

}  // namespace cnn::layers
