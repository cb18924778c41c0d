#include "tests/support/grid/fiber.h"

#include <cstdint>

// AddressSanitizer must be told when the stack changes. Without it these stay null.
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

// swapcontext() also saves the signal mask, a system call that took a third of a launch with
// barriers. So it starts the fiber's stack, and from then on stacks are switched by jumps: all but
// those that AddressSanitizer must be told of, whose hooks belong around swapcontext().
Fiber::Fiber() : stack_(std::make_unique_for_overwrite<std::byte[]>(stack_bytes)) {
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_.get();
  own_.uc_stack.ss_size = stack_bytes;
  own_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  // makecontext's type promises no arguments; POSIX has it take ints after the count.
  makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned>(self & 0xFFFFFFFFU), static_cast<unsigned>(self >> 32U));
  if (!address_sanitizer_is_on()) {
    swapcontext(&resumer_, &own_);  // returns when the fiber is at await_start()
  }
}

void Fiber::enter(unsigned low, unsigned high) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): see the constructor
  reinterpret_cast<Fiber*>((static_cast<std::uintptr_t>(high) << 32U) | low)->loop();
}

// A body that ends leaves the fiber here, ready for the next: no context is made twice.
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

// The compiler wants the jump in a function other than the one that it leads to.
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
