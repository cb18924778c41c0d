// Gives the grid all memory accesses of a running launch. -fsanitize=thread makes the compiler call
// a function before each load and store of the emulated kernels. These functions replace those of
// the sanitizer's run-time library, which is not linked. The compiler fixes their names and types.

#include <cstddef>
#include <cstdint>

#include "tests/support/grid/grid.h"

namespace {

void read(const void* address, std::size_t bytes) {
  cnn::tests::grid::observe(address, bytes, cnn::tests::grid::Access::read);
}
void write(const void* address, std::size_t bytes) {
  cnn::tests::grid::observe(address, bytes, cnn::tests::grid::Access::write);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)
extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void* /*caller*/) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** /*pointer*/, void* /*value*/) {}
void __tsan_vptr_read(void** /*pointer*/) {}

void __tsan_read1(void* address) { read(address, 1); }
void __tsan_read2(void* address) { read(address, 2); }
void __tsan_read4(void* address) { read(address, 4); }
void __tsan_read8(void* address) { read(address, 8); }
void __tsan_read16(void* address) { read(address, 16); }
void __tsan_read_range(void* address, std::size_t bytes) { read(address, bytes); }
void __tsan_unaligned_read2(void* address) { read(address, 2); }
void __tsan_unaligned_read4(void* address) { read(address, 4); }
void __tsan_unaligned_read8(void* address) { read(address, 8); }
void __tsan_unaligned_read16(void* address) { read(address, 16); }

void __tsan_write1(void* address) { write(address, 1); }
void __tsan_write2(void* address) { write(address, 2); }
void __tsan_write4(void* address) { write(address, 4); }
void __tsan_write8(void* address) { write(address, 8); }
void __tsan_write16(void* address) { write(address, 16); }
void __tsan_write_range(void* address, std::size_t bytes) { write(address, bytes); }
void __tsan_unaligned_write2(void* address) { write(address, 2); }
void __tsan_unaligned_write4(void* address) { write(address, 4); }
void __tsan_unaligned_write8(void* address) { write(address, 8); }
void __tsan_unaligned_write16(void* address) { write(address, 16); }

// Host code next to the kernels makes these accesses, for shared pointers and guards of static
// variables.
std::uint8_t __tsan_atomic8_load(const volatile std::uint8_t* address, int /*order*/) {
  return __atomic_load_n(address, __ATOMIC_SEQ_CST);
}
std::uint32_t __tsan_atomic32_load(const volatile std::uint32_t* address, int /*order*/) {
  return __atomic_load_n(address, __ATOMIC_SEQ_CST);
}
std::uint32_t __tsan_atomic32_fetch_add(volatile std::uint32_t* address, std::uint32_t value,
                                        int /*order*/) {
  return __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);
}
std::uint32_t __tsan_atomic32_fetch_sub(volatile std::uint32_t* address, std::uint32_t value,
                                        int /*order*/) {
  return __atomic_fetch_sub(address, value, __ATOMIC_SEQ_CST);
}
std::uint64_t __tsan_atomic64_load(const volatile std::uint64_t* address, int /*order*/) {
  return __atomic_load_n(address, __ATOMIC_SEQ_CST);
}
std::uint64_t __tsan_atomic64_fetch_add(volatile std::uint64_t* address, std::uint64_t value,
                                        int /*order*/) {
  return __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);
}
std::uint64_t __tsan_atomic64_fetch_sub(volatile std::uint64_t* address, std::uint64_t value,
                                        int /*order*/) {
  return __atomic_fetch_sub(address, value, __ATOMIC_SEQ_CST);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
