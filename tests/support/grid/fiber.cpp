#include "tests/support/grid/fiber.h"

#include <cstdint>

// Tells AddressSanitizer about changes of the stack. Without AddressSanitizer the functions are
// null.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" [[gnu::weak]] void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom,
                                                             std::size_t size);
extern "C" [[gnu::weak]] void __sanitizer_finish_switch_fiber(void* fake_stack,
                                                              const void** bottom_before,
                                                              std::size_t* size_before);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace cnn::tests::grid {

namespace {

void announce_switch(void** fake_stack, const void* bottom, std::size_t size) {
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(fake_stack, bottom, size);
  }
}

void complete_switch(void* fake_stack, const void** bottom_before, std::size_t* size_before) {
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(fake_stack, bottom_before, size_before);
  }
}

}  // namespace

bool address_sanitizer_is_on() { return __sanitizer_start_switch_fiber != nullptr; }

// swapcontext() also saves the signal mask by a system call, which took a third of the time of a
// launch with barriers. So it only starts the fiber's stack; later switches are jumps. Under
// AddressSanitizer all switches use swapcontext(), because its hooks belong around that call.
Fiber::Fiber() : stack_(std::make_unique_for_overwrite<std::byte[]>(stack_bytes)) {
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_.get();
  own_.uc_stack.ss_size = stack_bytes;
  own_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  // makecontext() declares a function without arguments, but by POSIX it takes ints after the
  // count.
  makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned>(self & 0xFFFFFFFFU), static_cast<unsigned>(self >> 32U));
  if (!address_sanitizer_is_on()) {
    swapcontext(&resumer_, &own_);  // returns when the fiber reaches await_start()
  }
}

void Fiber::enter(unsigned low, unsigned high) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): see the constructor
  reinterpret_cast<Fiber*>((static_cast<std::uintptr_t>(high) << 32U) | low)->loop();
}

// After a body ends, the fiber waits here for the next one, so each context is made only once.
void Fiber::loop() {
  if (address_sanitizer_is_on()) {
    arrive(nullptr);
  } else {
    await_start();
  }
  for (;;) {
    (*body_)();
    leave(true);
  }
}

void Fiber::await_start() {
  if (__builtin_setjmp(own_place_.data()) == 0) {
    setcontext(&resumer_);
  }
}

// The compiler requires the jump to be in another function than its target.
[[gnu::noinline]] void Fiber::jump(Place& to) { __builtin_longjmp(to.data(), 1); }

void Fiber::resume() {
  if (!address_sanitizer_is_on()) {
    if (__builtin_setjmp(resumer_place_.data()) == 0) {
      jump(own_place_);
    }
    return;
  }
  void* fake_stack = nullptr;
  announce_switch(&fake_stack, stack_.get(), stack_bytes);
  swapcontext(&resumer_, &own_);
  complete_switch(fake_stack, nullptr, nullptr);
}

void Fiber::pause() { leave(false); }

void Fiber::leave(bool for_good) {
  if (address_sanitizer_is_on()) {
    leave_announced(for_good);
  } else if (__builtin_setjmp(own_place_.data()) == 0) {
    jump(resumer_place_);
  }
}

void Fiber::leave_announced(bool for_good) {
  fake_stack_ = nullptr;
  announce_switch(for_good ? nullptr : &fake_stack_, resumer_stack_, resumer_stack_bytes_);
  swapcontext(&own_, &resumer_);
  arrive(fake_stack_);
}

void Fiber::arrive(void* fake_stack) {
  complete_switch(fake_stack, &resumer_stack_, &resumer_stack_bytes_);
}

}  // namespace cnn::tests::grid
