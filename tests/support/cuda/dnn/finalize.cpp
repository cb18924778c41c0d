#include "tests/support/cuda/dnn/finalize.h"

#include <algorithm>
#include <span>

#include "tests/support/cuda/dnn/engines.h"
#include "tests/support/cuda/dnn/graph.h"
#include "tests/support/cuda/dnn/schema.h"

namespace cnn::tests::emulated::dnn {
namespace {

template <class T>
void set(Object& object, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
         const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  object.attributes[name] = {.type = type,
                             .count = static_cast<std::int64_t>(values.size()),
                             .bytes = {bytes.begin(), bytes.end()}};
}

std::shared_ptr<Object> graph_of(const Object& object, cudnnBackendAttributeName_t name) {
  return Reader(object).object(name, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
}

void finalize_device(Object& device) {
  const Reader reader(device);
  if (reader.has(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION)) {
    const auto text = reader.all<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
    const std::string json(text.begin(), text.end());
    require(json.find("\"deviceVer\"") != std::string::npos &&
                std::ranges::count(json, '{') == std::ranges::count(json, '}'),
            "the description of a device is no JSON that has deviceVer");
    return;
  }
  require(reader.has(CUDNN_ATTR_DEVICEPROP_DEVICE_ID), "a device is described by nothing");
  const std::string json =
      R"({"cudaDeviceId": 0, "deviceVer": 900, "deviceName": "NVIDIA H100 80GB HBM3", )"
      R"("multiProcessorCount": 132, "totalGlobalMem": 85029158912})";
  std::vector<char> text(json.begin(), json.end());
  text.push_back('\0');
  set(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, text);
}

void finalize_engine(Object& object) {
  const Engine& engine =
      engine_at(Reader(object).one<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  const std::string why =
      why_unsupported(engine, read_graph(*graph_of(object, CUDNN_ATTR_ENGINE_OPERATION_GRAPH)));
  require(why.empty(), why, CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN);
  set(object, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, engine.numerical);
  set(object, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, engine.behaviour);
}

// Adds a finalized engine that the heuristics propose.
cudnnBackendDescriptor_t add_engine(cudnnBackendDescriptor_t graph, std::int64_t index) {
  cudnnBackendDescriptor_t const handle = add_object(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  Object& engine = *object_at(handle);
  set(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::vector{graph});
  set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, std::vector{index});
  finalize(engine);
  return handle;
}

void finalize_heuristics(Object& object) {
  const Reader reader(object);
  const auto mode = reader.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE);
  const auto graph = reader.one<cudnnBackendDescriptor_t>(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  std::vector<cudnnBackendDescriptor_t> results;
  for (const std::int64_t index :
       propose(read_graph(*graph_of(object, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)), mode)) {
    cudnnBackendDescriptor_t const knob = add_object(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    set(*object_at(knob), CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE,
        std::vector{CUDNN_KNOB_TYPE_TILE_SIZE});
    set(*object_at(knob), CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64,
        std::vector<std::int64_t>{index + 1});
    finalize(*object_at(knob));
    results.push_back(add_object(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    Object& config = *object_at(results.back());
    set(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
        std::vector{add_engine(graph, index)});
    set(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
        std::vector{knob});
    finalize(config);
  }
  require(!results.empty(), "the heuristics know of no engine for the graph",
          CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN);
  set(object, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, results);
}

void finalize_plan(Object& object) {
  const Reader reader(object);
  require(reader.has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) !=
              reader.has(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP),
          "a plan is for a handle or for the description of a device");
  const auto config =
      reader.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  const auto engine =
      Reader(*config).object(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  const auto index = Reader(*engine).one<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  set(object, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
      std::vector{engine_at(index).workspace});
}

void check_pack(const Object& object) {
  const Reader reader(object);
  const auto ids = reader.all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  require(ids.size() == reader.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size(),
          "a variant pack has not as many pointers as identifiers");
}

void finalize_by_type(Object& object) {
  switch (object.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      read_tensor(object);
      return;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR: {
      std::map<Id, Tensor> tensors;
      read_operation(object, tensors);
      return;
    }
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      read_graph(object);
      return;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return finalize_engine(object);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return finalize_heuristics(object);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return finalize_plan(object);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return check_pack(object);
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
      return finalize_device(object);
    default:
      return;  // this type needs no further checks
  }
}

}  // namespace

void finalize(Object& object) {
  require(!object.final, name_of(object.type) + " is final already");
  for (const AttributeRule& rule : attribute_rules()) {
    require(rule.descriptor_type != object.type || !rule.required ||
                object.attributes.contains(rule.name),
            name_of(object.type) + " lacks attribute " + std::to_string(rule.name));
  }
  finalize_by_type(object);
  object.final = true;
}

void read(const Object& object, const Request& request) {
  require(object.final, name_of(object.type) + " is read before it is final",
          CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  const auto found = object.attributes.find(request.name);
  if (found == object.attributes.end() && find_rule(object.type, request.name) != nullptr) {
    *request.got = 0;  // an optional attribute that is not set
    return;
  }
  require(found != object.attributes.end(),
          name_of(object.type) + " has no attribute " + std::to_string(request.name));
  const Attribute& attribute = found->second;
  require(attribute.type == request.type,
          "attribute " + std::to_string(request.name) + " is read as another type than it has",
          CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  if (request.values == nullptr || request.capacity == 0) {
    *request.got = attribute.count;
    return;
  }
  *request.got = std::min(attribute.count, request.capacity);
  const auto count = static_cast<std::size_t>(*request.got);
  if (attribute.type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    // An empty list has no bytes, and std::memcpy must not get a null pointer.
    std::copy_n(attribute.bytes.data(), count * bytes_of(attribute.type),
                static_cast<std::byte*>(request.values));
    return;
  }
  const auto handles = Reader(object).all<cudnnBackendDescriptor_t>(request.name);
  for (std::size_t i = 0; i < count; ++i) {
    Object& to = *object_at(static_cast<cudnnBackendDescriptor_t*>(request.values)[i]);
    const Object& from = *object_at(handles[i]);
    require(to.type == from.type && !to.final,
            "attribute " + std::to_string(request.name) + " is read into " + name_of(to.type),
            CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
    to = from;
  }
}

}  // namespace cnn::tests::emulated::dnn
