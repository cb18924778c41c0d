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
    strike();
  }
}

void FaultyTransport::end(std::span<const std::span<float>> pieces) {
  if (!due_) {
    return;
  }
  strike();
  due_ = false;
  for (const std::span<float>& piece : pieces) {
    if (fault_.what == Fault::What::corrupt && !piece.empty()) {
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

void FaultyTransport::come(std::span<const int> group, std::size_t channel) {
  ForwardingTransport::come(group, channel);
  count();
}

void FaultyTransport::count() {
  if (due_ && ++posted_ == fault_.after) {
    strike();
  }
}

void FaultyTransport::strike() {
  switch (fault_.what) {
    case Fault::What::exit:
      std::_Exit(EXIT_FAILURE);
    case Fault::What::kill:
      ::kill(::getpid(), SIGKILL);
      break;
    case Fault::What::stop:
      ::kill(::getpid(), SIGSTOP);
      break;
    case Fault::What::delay:
      std::this_thread::sleep_for(fault_.delay);
      break;
    case Fault::What::corrupt:  // waits for the result
      return;
  }
  due_ = false;
}

}  // namespace cnn::allreduce
