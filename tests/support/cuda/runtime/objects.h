#pragma once

#include <cuda_runtime_api.h>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/cuda/runtime/queue.h"
#include "tests/support/cuda/runtime/work.h"

// The objects behind the runtime's handles, whose type names come from CUDA's headers. A destroyed
// object stays as an empty shell, so the use of its handle is recognised.

namespace cnn::tests::emulated {

// A node of a captured graph.
struct Node {
  Work work;                       // without its waits
  std::vector<std::size_t> after;  // the nodes before it
  std::size_t lane = 0;            // index of the stream that captured it
};

// A capture in progress.
struct Capture {
  CUstream_st* origin = nullptr;
  std::thread::id thread;
  std::vector<Node> nodes;
  std::vector<CUstream_st*> streams;  // participating streams, the origin first
  std::string why_invalid;            // empty if it is valid
};

}  // namespace cnn::tests::emulated

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
struct CUstream_st {
  int device = 0;
  int priority = 0;
  bool destroyed = false;
  // Null once the stream is destroyed and empty.
  std::unique_ptr<cnn::tests::emulated::Queue> queue;
  // The capture in which the stream participates, and the nodes that its next node follows.
  std::shared_ptr<cnn::tests::emulated::Capture> capture;
  std::vector<std::size_t> tail;
};

struct CUevent_st {
  int device = 0;
  bool timing = false;
  bool destroyed = false;
  cnn::tests::emulated::EventState state;  // of the last record; null if never recorded
  // The capture and nodes of the last record, if a capturing stream made it.
  std::shared_ptr<cnn::tests::emulated::Capture> capture;
  std::vector<std::size_t> nodes;
};

struct CUgraph_st {
  bool destroyed = false;
  std::vector<cnn::tests::emulated::Node> nodes;
  std::size_t lanes = 0;
};

struct CUgraphExec_st {
  bool destroyed = false;
  int device = 0;
  std::vector<cnn::tests::emulated::Node> nodes;
  std::vector<std::unique_ptr<cnn::tests::emulated::Queue>> lanes;
  cnn::tests::emulated::EventState last;  // end of the last replay
};
// NOLINTEND(readability-identifier-naming)
