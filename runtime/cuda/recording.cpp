#include "runtime/cuda/recording.h"

#include <deque>
#include <utility>
#include <vector>

#include "runtime/cuda/error.h"
#include "runtime/cuda/handle.h"
#include "runtime/cuda/stream.h"

namespace cnn::cuda {
namespace {

using Graph = Handle<cudaGraph_t, cudaGraphDestroy>;
using ExecutableGraph = Handle<cudaGraphExec_t, cudaGraphExecDestroy>;

class CudaRecording final : public Recording {
 public:
  CudaRecording(const Graph& graph, std::deque<HostTask> tasks) : tasks_(std::move(tasks)) {
    cudaGraphExec_t executable = nullptr;
    // Nodes keep the priorities of the lanes that they were captured from.
    check(cudaGraphInstantiateWithFlags(&executable, graph.get(),
                                        cudaGraphInstantiateFlagUseNodePriority));
    executable_.reset(executable);
  }

  void replay(Stream& stream) override {
    check(cudaGraphLaunch(executable_.get(), native(stream)));
  }

 private:
  std::deque<HostTask> tasks_;  // the graph's host nodes point to them
  ExecutableGraph executable_;
};

// A running stream capture, from construction to end(), or to destruction without end().
class Capture {
 public:
  explicit Capture(std::span<Stream* const> streams) : streams_(streams.begin(), streams.end()) {
    check(!streams_.empty(), "there is no stream to record");
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      events_.push_back(std::make_unique<CudaEvent>());
    }
    // Other threads, such as data loaders, may continue to allocate pinned memory.
    check(cudaStreamBeginCapture(native(*streams_.front()), cudaStreamCaptureModeThreadLocal));
    open_ = true;
  }
  ~Capture() {
    if (open_) {
      cudaGraph_t unfinished = nullptr;
      static_cast<void>(cudaStreamEndCapture(native(*streams_.front()), &unfinished));
      const Graph dropped(unfinished);
      static_cast<void>(cudaGetLastError());
    }
    keep_host_work_in(nullptr);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Lets all other streams join the capture, by waiting for an event of the captured stream.
  void fork() {
    keep_host_work_in(&tasks_);
    streams_.front()->record(*events_.front());
    for (std::size_t s = 1; s < streams_.size(); ++s) {
      streams_[s]->wait(*events_.front());
    }
  }

  Graph end() {
    for (std::size_t s = 1; s < streams_.size(); ++s) {
      streams_[s]->record(*events_[s]);
      streams_.front()->wait(*events_[s]);
    }
    cudaGraph_t graph = nullptr;
    open_ = false;  // the capture ends in every case
    const cudaError_t status = cudaStreamEndCapture(native(*streams_.front()), &graph);
    if (status != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      throw Error("the step cannot be captured into a CUDA graph: " + text_of(status));
    }
    return Graph(graph);
  }

  std::deque<HostTask> take_tasks() { return std::move(tasks_); }

 private:
  void keep_host_work_in(std::deque<HostTask>* tasks) {
    for (Stream* stream : streams_) {
      dynamic_cast<CudaStream&>(*stream).keep_host_work_in(tasks);
    }
  }

  std::vector<Stream*> streams_;
  std::vector<std::unique_ptr<CudaEvent>>
      events_;  // the fork's, then one for the join of each stream
  std::deque<HostTask> tasks_;
  bool open_ = false;
};

}  // namespace

std::unique_ptr<Recording> capture(std::span<Stream* const> streams,
                                   const std::function<void()>& enqueue) {
  Capture capture(streams);
  capture.fork();
  enqueue();
  const Graph graph = capture.end();
  return std::make_unique<CudaRecording>(graph, capture.take_tasks());
}

}  // namespace cnn::cuda
