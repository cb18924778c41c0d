#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "allreduce/forwarding_transport.h"

namespace cnn::allreduce {

// When a rank says that it waits.
struct StallWarning {
  std::chrono::milliseconds after{60'000};  // and again whenever as much time has passed
  // Gets "rank 0 has waited for rank 2 for 60 s, in bucket 4; rank 2 computes step 12". Empty:
  // nothing is said.
  std::function<void(const std::string&)> say = {};
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

// The way of a rank to all others, which tells when it waits for long.
class WarningTransport final : public ForwardingTransport {
 public:
  WarningTransport(Transport& transport, StallWarning warning);

  void begin(std::size_t bucket) { bucket_ = bucket; }  // of a reduction

  void idle(int waits_for) override;
  void busy() override;

 private:
  StallWarning warning_;
  std::size_t bucket_ = 0;
  unsigned idle_ = 0;  // calls in this wait
  int said_ = 0;       // in this wait
  std::chrono::steady_clock::time_point looked_;
  std::chrono::steady_clock::duration waited_{};
};

}  // namespace cnn::allreduce
