#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <ucontext.h>

namespace cnn::tests::grid {

bool address_sanitizer_is_on();

// A function with its own stack that can pause. Fibers and who resumes them share one thread of
// the operating system. Neither copied nor moved.
class Fiber {
 public:
  Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() = default;

  // Starts `body` afresh; only when it has never run or has come to its end. It must not throw,
  // and outlives the fiber's use.
  void start(const std::function<void()>& body) { body_ = &body; }
  void resume();  // returns when the body pauses or ends
  void pause();   // called by the body
  bool has_on_stack(const std::byte* at) const {
    return at >= stack_.get() && at < stack_.get() + stack_bytes;
  }

 private:
  // Where a stack goes on, as __builtin_setjmp keeps it.
  using Place = std::array<void*, 5>;

  static void enter(unsigned low, unsigned high);  // halves of a pointer: makecontext takes ints
  [[noreturn]] static void jump(Place& to);
  void loop();
  void await_start();
  void leave(bool for_good);
  void leave_announced(bool for_good);
  void arrive(void* fake_stack);

  static constexpr std::size_t stack_bytes = std::size_t{128}
                                             << 10;  // sanitizers clear it each time

  std::unique_ptr<std::byte[]> stack_;
  ucontext_t own_{}, resumer_{};  // of the first switch, and of all that AddressSanitizer sees
  Place own_place_{}, resumer_place_{};  // of all others
  const std::function<void()>* body_ = nullptr;
  void* fake_stack_ = nullptr;  // AddressSanitizer's
  const void* resumer_stack_ = nullptr;
  std::size_t resumer_stack_bytes_ = 0;
};

}  // namespace cnn::tests::grid
