#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <ucontext.h>

namespace cnn::tests::grid {

bool address_sanitizer_is_on();

// A coroutine: a function with a stack of its own that can pause. A fiber and its resumer share one
// operating-system thread. It can be neither copied nor moved.
class Fiber {
 public:
  Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() = default;

  // Starts `body`; call it only if no body has run or the last one has ended. `body` must not throw
  // and must outlive its use.
  void start(const std::function<void()>& body) { body_ = &body; }
  void resume();  // returns when the body pauses or ends
  void pause();   // call it from the body
  bool has_on_stack(const std::byte* at) const {
    return at >= stack_.get() && at < stack_.get() + stack_bytes;
  }

 private:
  // A point at which a stack resumes, in the format of __builtin_setjmp.
  using Place = std::array<void*, 5>;

  // Halves of a pointer, because makecontext() takes ints.
  static void enter(unsigned low, unsigned high);
  [[noreturn]] static void jump(Place& to);
  void loop();
  void await_start();
  void leave(bool for_good);
  void leave_announced(bool for_good);
  void arrive(void* fake_stack);

  static constexpr std::size_t stack_bytes = std::size_t{128}
                                             << 10;  // sanitizers clear the stack each time

  std::unique_ptr<std::byte[]> stack_;
  // For the first switch, and for all switches under AddressSanitizer.
  ucontext_t own_{}, resumer_{};
  Place own_place_{}, resumer_place_{};  // for all other switches
  const std::function<void()>* body_ = nullptr;
  void* fake_stack_ = nullptr;  // owned by AddressSanitizer
  const void* resumer_stack_ = nullptr;
  std::size_t resumer_stack_bytes_ = 0;
};

}  // namespace cnn::tests::grid
