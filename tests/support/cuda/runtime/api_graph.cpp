#include <algorithm>
#include <memory>
#include <utility>

#include "tests/support/cuda/runtime/calls.h"
#include "tests/support/cuda/runtime/violation.h"

// Implements the instantiation and replay of captured graphs.

namespace cnn::tests::emulated {
namespace {

// Returns whether the memory of the captured work still exists.
bool has_its_memory(const CUgraphExec_st& executable) {
  const Memory& memory = driver().memory;
  for (const Node& node : executable.nodes) {
    for (const void* at : node.work.uses) {
      if (memory.find(at) == nullptr) {
        violate("a graph is replayed of which " + node.work.name + " uses " + memory.name_of(at));
        return false;
      }
    }
  }
  return true;
}

// Queues every node on the lane that captured it. The stream's last piece of work ends after all of
// them. Replays of one graph never overlap.
void replay(CUgraphExec_st& executable, CUstream_st& stream) {
  const EventState begin = std::make_shared<Moment>();
  Work first{.name = "the start of a graph", .done = begin};
  if (executable.last != nullptr) {
    first.waits = {executable.last};
  }
  stream.queue->push(std::move(first));
  std::vector<EventState> ends;
  for (const Node& node : executable.nodes) {
    Work work = node.work;
    work.waits = {begin};
    for (const std::size_t before : node.after) {
      work.waits.push_back(ends[before]);
    }
    work.done = ends.emplace_back(std::make_shared<Moment>());
    executable.lanes[node.lane]->push(std::move(work));
  }
  executable.last = std::make_shared<Moment>();
  stream.queue->push(
      {.name = "the end of a graph", .waits = std::move(ends), .done = executable.last});
}

}  // namespace
}  // namespace cnn::tests::emulated

using cnn::tests::emulated::Call;
using cnn::tests::emulated::driver;
using cnn::tests::emulated::is_alive;
using cnn::tests::emulated::returned;

extern "C" {

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Call call("cudaGraphDestroy");
  if (!is_alive(graph, "cudaGraphDestroy")) {
    return returned(cudaErrorInvalidValue);
  }
  graph->destroyed = true;
  graph->nodes.clear();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long /*flags*/) {
  const Call call("cudaGraphInstantiateWithFlags");
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  if (!is_alive(graph, "cudaGraphInstantiateWithFlags")) {
    return returned(cudaErrorInvalidValue);
  }
  auto made = std::make_unique<CUgraphExec_st>();
  made->device = cnn::tests::emulated::current_device();
  made->nodes = graph->nodes;
  for (std::size_t lane = 0; lane < graph->lanes; ++lane) {
    made->lanes.push_back(driver().make_queue(made->device));
  }
  *executable = driver().executables.emplace_back(std::move(made)).get();
  return cudaSuccess;
}

// The real call does not wait for a replay in progress, whose host work may use what the caller
// frees next; so this is a violation.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  std::vector<std::unique_ptr<cnn::tests::emulated::Queue>> lanes;
  {
    const Call call("cudaGraphExecDestroy");
    if (!is_alive(executable, "cudaGraphExecDestroy")) {
      return returned(cudaErrorInvalidValue);
    }
    if (executable->last != nullptr && !executable->last->reached) {
      cnn::tests::emulated::violate("an executable graph was destroyed while it was replayed");
    }
    executable->destroyed = true;
    executable->nodes.clear();
    lanes = std::move(executable->lanes);
  }
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const Call call("cudaGraphLaunch");
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  if (!is_alive(executable, "cudaGraphLaunch") || !is_alive(stream, "cudaGraphLaunch")) {
    return returned(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture != nullptr) {
    cnn::tests::emulated::violate("the emulation has no graph within a graph");
    return returned(cudaErrorStreamCaptureUnsupported);
  }
  if (stream->device != executable->device) {
    cnn::tests::emulated::violate("a graph of device " + std::to_string(executable->device) +
                                  " is replayed on a stream of device " +
                                  std::to_string(stream->device));
    return returned(cudaErrorInvalidValue);
  }
  if (!cnn::tests::emulated::has_its_memory(*executable)) {
    return returned(cudaErrorInvalidValue);
  }
  ++driver().replays;
  cnn::tests::emulated::replay(*executable, *stream);
  return cudaSuccess;
}

}  // extern "C"
