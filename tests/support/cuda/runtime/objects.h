#pragma once

#include <cuda_runtime_api.h>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/cuda/runtime/queue.h"
#include "tests/support/cuda/runtime/work.h"

// The objects behind the runtime's handles, whose names CUDA's headers give. A destroyed object
// stays as an empty shell, so that a use of its handle is known as one.

namespace cnn::tests::emulated {

// A step of a captured graph.
struct Node {
  Work work;                       // without waits
  std::vector<std::size_t> after;  // nodes that it follows
  std::size_t lane = 0;            // number of the stream that it was captured from
};

// A capture under way.
struct Capture {
  CUstream_st* origin = nullptr;
  std::thread::id thread;
  std::vector<Node> nodes;
  std::vector<CUstream_st*> streams;  // those that take part, the origin first
  std::string why_invalid;            // empty: it is valid
};

}  // namespace cnn::tests::emulated

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
struct CUstream_st {
  int device = 0;
  int priority = 0;
  bool destroyed = false;
  std::unique_ptr<cnn::tests::emulated::Queue> queue;  // null once destroyed and empty
  // While it takes part in a capture: the capture, and the nodes that the next one follows.
  std::shared_ptr<cnn::tests::emulated::Capture> capture;
  std::vector<std::size_t> tail;
};

struct CUevent_st {
  int device = 0;
  bool timing = false;
  bool destroyed = false;
  cnn::tests::emulated::EventState state;  // of the last record; null: never recorded
  // Of the last record, if a stream in capture made it.
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
