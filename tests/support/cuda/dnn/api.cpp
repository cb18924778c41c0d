#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "tests/support/cuda/dnn/engines.h"
#include "tests/support/cuda/dnn/finalize.h"
#include "tests/support/cuda/dnn/graph.h"
#include "tests/support/cuda/dnn/loops.h"
#include "tests/support/cuda/dnn/object.h"
#include "tests/support/cuda/dnn/schema.h"
#include "tests/support/cuda/runtime/library_work.h"

// Implements the functions of cuDNN's backend interface.

struct cudnnContext {  // NOLINT(readability-identifier-naming): the name of the headers
  cudaStream_t stream = nullptr;
};

namespace cnn::tests::emulated::dnn {
namespace {

// The text that cudnnGetLastErrorString() returns.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): per thread, as in cuDNN
thread_local std::string last_error;

constexpr std::size_t workspace_alignment = 256;

// Calls the function and converts its exception into the library's status and error text.
template <class Function>
cudnnStatus_t guarded(const Function& function) {
  try {
    function();
    return CUDNN_STATUS_SUCCESS;
  } catch (const DnnError& error) {
    last_error = error.what();
    return error.status();
  } catch (const std::exception& error) {
    last_error = error.what();
    return CUDNN_STATUS_INTERNAL_ERROR;
  }
}

void set(Object& object, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
         std::int64_t count, const void* values) {
  const AttributeRule* rule = find_rule(object.type, name);
  require(rule != nullptr, name_of(object.type) + " has no attribute " + std::to_string(name));
  require(!object.final, name_of(object.type) + " is final: attribute " + std::to_string(name) +
                             " cannot be set any more");
  require(rule->type == type, "attribute " + std::to_string(name) + " has another type",
          CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  require(count > 0 && count <= rule->most, "attribute " + std::to_string(name) + " takes 1 to " +
                                                std::to_string(rule->most) + " values, not " +
                                                std::to_string(count));
  const auto* first = static_cast<const std::byte*>(values);
  object.attributes[name] = {
      .type = type,
      .count = count,
      .bytes = {first, first + static_cast<std::size_t>(count) * bytes_of(type)}};
}

// A plan and its operands, read back from their descriptors.
struct Execution {
  Graph graph;
  const Engine* engine = nullptr;
  std::map<Id, void*> addresses;
  void* workspace = nullptr;
};

Execution read_execution(const Object& plan, const Object& pack) {
  Execution e;
  const auto config = Reader(plan).object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                          CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  const auto engine =
      Reader(*config).object(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  e.engine = &engine_at(Reader(*engine).one<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  e.graph = read_graph(*Reader(*engine).object(CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
                                               CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
  const auto ids = Reader(pack).all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = Reader(pack).all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto tensor = e.graph.tensors.find(ids[i]);
    require(tensor != e.graph.tensors.end() && !tensor->second.is_virtual,
            "the variant pack has a pointer for " + std::to_string(ids[i]) +
                ", which is no tensor of the graph in memory");
    require(e.addresses.try_emplace(ids[i], pointers[i]).second,
            "the variant pack names a tensor twice", CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES);
  }
  for (const auto& [id, tensor] : e.graph.tensors) {
    require(tensor.is_virtual || e.addresses.contains(id),
            "the variant pack has no pointer for tensor " + std::to_string(id));
  }
  e.workspace = Reader(pack).one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  return e;
}

std::vector<Operand> operands_of(const Execution& e) {
  std::vector<Operand> operands;
  for (const auto& [id, address] : e.addresses) {
    const Tensor& tensor = e.graph.tensors.at(id);
    operands.push_back({"tensor " + std::to_string(id), address, tensor.extent(),
                        static_cast<std::size_t>(tensor.alignment)});
  }
  operands.push_back({"the workspace", e.workspace, static_cast<std::size_t>(e.engine->workspace),
                      workspace_alignment});
  return operands;
}

void execute(cudnnContext& context, const Object& plan, const Object& pack) {
  require(plan.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && plan.final &&
              pack.type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR && pack.final,
          "what is run is not a final plan with a final variant pack",
          CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  require(Reader(plan).has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE),
          "the plan is for a device that is only described");
  require(Reader(plan).one<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) == &context,
          "the plan was made for another handle");
  require(context.stream != nullptr, "the emulation has no default stream");
  const auto e = std::make_shared<const Execution>(read_execution(plan, pack));
  const std::string refused = why_refused(*e->engine);
  require(refused.empty(), refused, CUDNN_STATUS_EXECUTION_FAILED);
  require(!engines_wait() || cudaStreamSynchronize(context.stream) == cudaSuccess,
          "the engine cannot wait for its stream", CUDNN_STATUS_EXECUTION_FAILED);
  const std::vector<Operand> operands = operands_of(*e);
  const std::string why = why_unusable(operands, context.stream);
  require(why.empty(), why);
  const cudaError_t status = enqueue(context.stream, "a plan of cuDNN", operands, [e] {
    if (e->engine->workspace > 0) {
      std::memset(e->workspace, 0xFF, static_cast<std::size_t>(e->engine->workspace));
    }
    compute(e->graph, e->addresses, e->engine->tensor_cores);
  });
  require(status == cudaSuccess,
          std::string("the plan cannot be queued: ") + cudaGetErrorString(status),
          CUDNN_STATUS_EXECUTION_FAILED);
}

}  // namespace
}  // namespace cnn::tests::emulated::dnn

namespace emulated = cnn::tests::emulated;

extern "C" {

std::size_t cudnnGetVersion() { return CUDNN_VERSION; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) {
    return "CUDNN_STATUS_SUCCESS";
  }
  const bool unsupported = status >= CUDNN_STATUS_NOT_SUPPORTED && status < 4000;
  return unsupported ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_BAD_PARAM";
}

void cudnnGetLastErrorString(char* message, std::size_t size) {
  const std::string text = std::exchange(emulated::dnn::last_error, {});
  const std::size_t count = std::min(text.size(), size - 1);
  std::copy_n(text.begin(), count, message);
  message[count] = '\0';
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = std::make_unique<cudnnContext>().release();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  const std::unique_ptr<cudnnContext> owned(handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  *descriptor = emulated::add_object(type);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return emulated::dnn::guarded([&] { emulated::remove_object(descriptor); });
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return emulated::dnn::guarded([&] { emulated::dnn::finalize(*emulated::object_at(descriptor)); });
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* values) {
  return emulated::dnn::guarded(
      [&] { emulated::dnn::set(*emulated::object_at(descriptor), name, type, count, values); });
}
// NOLINTNEXTLINE(readability-function-size): the parameters are the library's
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t capacity,
                                       std::int64_t* got, void* values) {
  return emulated::dnn::guarded([&] {
    std::int64_t ignored = 0;
    emulated::dnn::read(*emulated::object_at(descriptor),
                        {name, type, capacity, got == nullptr ? &ignored : got, values});
  });
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  return emulated::dnn::guarded([&] {
    emulated::dnn::execute(*handle, *emulated::object_at(plan), *emulated::object_at(pack));
  });
}

}  // extern "C"
