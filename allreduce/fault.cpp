#include "allreduce/fault.h"

#include <csignal>
#include <cstdlib>
#include <thread>
#include <unistd.h>

namespace cnn::allreduce {

void FaultyTransport::begin(std::size_t bucket) {
  due_ = bucket == fault_.bucket && ++times_ == fault_.step;
  posted_ = 0;
  if (due_ && fault_.after == 0) {
    inject();
  }
}

void FaultyTransport::end(std::span<const std::span<float>> pieces) {
  if (!due_) {
    return;
  }
  inject();
  due_ = false;
  for (const std::span<float>& piece : pieces) {
    if (fault_.kind == Fault::Kind::corrupt && !piece.empty()) {
      piece.front() += 1;
      return;
    }
  }
}

void FaultyTransport::send(int to, std::size_t channel, std::span<const Bytes> pieces) {
  ForwardingTransport::send(to, channel, pieces);
  count();
}

void FaultyTransport::receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
                              std::span<const Bytes> to) {
  ForwardingTransport::receive(from, channel, at_sender, to);
  count();
}

void FaultyTransport::arrive(std::span<const int> group, std::size_t channel) {
  ForwardingTransport::arrive(group, channel);
  count();
}

void FaultyTransport::count() {
  if (due_ && ++posted_ == fault_.after) {
    inject();
  }
}

void FaultyTransport::inject() {
  switch (fault_.kind) {
    case Fault::Kind::exit:
      std::_Exit(EXIT_FAILURE);
    case Fault::Kind::kill:
      ::kill(::getpid(), SIGKILL);
      break;
    case Fault::Kind::stop:
      ::kill(::getpid(), SIGSTOP);
      break;
    case Fault::Kind::delay:
      std::this_thread::sleep_for(fault_.delay);
      break;
    case Fault::Kind::corrupt:  // end() changes the result
      return;
  }
  due_ = false;
}

}  // namespace cnn::allreduce
