#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

// Only nvcc knows this attribute.
#define __launch_bounds__(...)  // NOLINT(bugprone-reserved-identifier)
// These headers define CUDA's keywords (__global__ and the like) as nothing for a host compiler.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector_functions.h>
#include <vector_types.h>

#include "tests/support/grid/grid.h"

// Lets a host compiler compile our kernels for the emulated grid. It defines the part of CUDA's
// language that they use: shared memory, barriers, shuffles, votes, atomics and nvcc's built-in
// functions. Only this file has macros and CUDA's own names.
// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier,cppcoreguidelines-macro-usage)
// Assignments to an element go through a temporary.
// NOLINTBEGIN(readability-function-size,bugprone-sizeof-expression,misc-unconventional-assign-operator)
namespace cnn::cuda {

// The type of &shared[i], which atomics accept.
template <class T>
struct SharedAddress {
  tests::grid::SharedArray array;
  std::int64_t index = 0;
};

template <class T>
class Shared {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  // Refers to an element and checks every read and write. Do not store it; read it into a T.
  class Element {
   public:
    Element(const tests::grid::SharedArray& array, std::int64_t index)
        : array_(array), index_(index) {}
    Element(const Element&) = delete;

    operator T() const&& { return get(); }  // NOLINT(google-explicit-constructor)
    T operator=(T value) const&& { return set(value); }
    T operator=(const Element& other) const&& { return set(other.get()); }
    T operator+=(T value) const&& { return set(get() + value); }
    T operator-=(T value) const&& { return set(get() - value); }
    T operator*=(T value) const&& { return set(get() * value); }
    T operator|=(T value) const&& { return set(get() | value); }
    SharedAddress<T> operator&() const&& { return {array_, index_}; }

   private:
    T get() const {
      T value;
      std::memcpy(&value, tests::grid::shared_bytes(array_, index_, tests::grid::Access::read),
                  sizeof(T));
      return value;
    }
    T set(T value) const {
      std::memcpy(tests::grid::shared_bytes(array_, index_, tests::grid::Access::write), &value,
                  sizeof(T));
      return value;
    }

    const tests::grid::SharedArray& array_;
    std::int64_t index_;
  };

  Shared(std::size_t offset_bytes, int count,
         std::source_location where = std::source_location::current())
      : array_{offset_bytes, count, sizeof(T), where} {
    tests::grid::check_array(array_, alignof(T));
  }
  Element operator[](int index) const { return {array_, index}; }

 private:
  tests::grid::SharedArray array_;
};

}  // namespace cnn::cuda

inline void __syncthreads(std::source_location where = std::source_location::current()) {
  cnn::tests::grid::block_barrier(where);
}
inline void __threadfence() {}  // a no-op, because blocks run one after another

inline void __syncwarp(unsigned mask = 0xFFFFFFFFU,
                       std::source_location where = std::source_location::current()) {
  cnn::tests::grid::warp_exchange(
      {.call = cnn::tests::grid::WarpCall::barrier, .mask = mask, .at = where});
}

namespace cnn::cuda {

// Returns the value that lane `source` of the warp contributes.
template <class T>
T shuffled(unsigned mask, T value, unsigned source, std::source_location where) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(tests::grid::LaneValue));
  tests::grid::WarpRequest request{
      .call = tests::grid::WarpCall::shuffle, .mask = mask, .source = source, .at = where};
  std::memcpy(request.value.data(), &value, sizeof(T));
  const tests::grid::WarpAnswer answer = tests::grid::warp_exchange(request);
  T result;
  std::memcpy(&result, answer.value.data(), sizeof(T));
  return result;
}

inline unsigned ballot(unsigned mask, bool predicate, std::source_location where) {
  return tests::grid::warp_exchange({.call = tests::grid::WarpCall::vote,
                                     .mask = mask,
                                     .predicate = predicate,
                                     .at = where})
      .ballot;
}

}  // namespace cnn::cuda

// A lane outside the sub-warp of `width` lanes gets its own value back.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              std::source_location where = std::source_location::current()) {
  const unsigned last = static_cast<unsigned>(width) - 1;
  const unsigned lane = cnn::tests::grid::lane_index();
  return cnn::cuda::shuffled(mask, value, (lane & ~last) | (static_cast<unsigned>(source) & last),
                             where);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                  std::source_location where = std::source_location::current()) {
  const unsigned lane = cnn::tests::grid::lane_index();
  const unsigned source = lane ^ static_cast<unsigned>(lanes);
  const unsigned last = lane | (static_cast<unsigned>(width) - 1);
  return cnn::cuda::shuffled(mask, value, source > last ? lane : source, where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                   std::source_location where = std::source_location::current()) {
  const unsigned lane = cnn::tests::grid::lane_index();
  const unsigned last = lane | (static_cast<unsigned>(width) - 1);
  return cnn::cuda::shuffled(mask, value, lane + lanes > last ? lane : lane + lanes, where);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                 std::source_location where = std::source_location::current()) {
  const unsigned lane = cnn::tests::grid::lane_index();
  const unsigned within = lane & (static_cast<unsigned>(width) - 1);
  return cnn::cuda::shuffled(mask, value, within < lanes ? lane : lane - lanes, where);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              std::source_location where = std::source_location::current()) {
  return cnn::cuda::ballot(mask, predicate != 0, where);
}
inline int __any_sync(unsigned mask, int predicate,
                      std::source_location where = std::source_location::current()) {
  return cnn::cuda::ballot(mask, predicate != 0, where) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      std::source_location where = std::source_location::current()) {
  return cnn::cuda::ballot(mask, predicate == 0, where) == 0 ? 1 : 0;
}

namespace cnn::cuda {

// A plain update is atomic here, because blocks and threads never run in parallel. Returns the
// value before.
template <std::integral T, class Change>
[[gnu::noinline, gnu::no_sanitize_thread]] T changed(T* address, Change change) {
  tests::grid::observe(address, sizeof(T), tests::grid::Access::atomic);
  const T before = *address;
  *address = change(before);
  return before;
}
template <std::integral T, class Change>
T changed(const SharedAddress<T>& address, Change change) {
  std::byte* const bytes =
      tests::grid::shared_bytes(address.array, address.index, tests::grid::Access::atomic);
  return changed(reinterpret_cast<T*>(bytes), change);
}

// The kinds of addresses on which atomics may act, and their element types.
template <class Address>
struct AtomicTarget {};
template <std::integral T>
struct AtomicTarget<T*> {
  using Type = T;
};
template <std::integral T>
struct AtomicTarget<SharedAddress<T>> {
  using Type = T;
};
template <class Address>
using AtomicType = typename AtomicTarget<Address>::Type;

}  // namespace cnn::cuda

// Only integers, because float sums would depend on the order of threads.
template <class Address, class T = cnn::cuda::AtomicType<Address>>
T atomicAdd(Address address, std::type_identity_t<T> value) {
  return cnn::cuda::changed(address, [=](T before) { return static_cast<T>(before + value); });
}
template <class Address, class T = cnn::cuda::AtomicType<Address>>
T atomicMax(Address address, std::type_identity_t<T> value) {
  return cnn::cuda::changed(address, [=](T before) { return before < value ? value : before; });
}
template <class Address, class T = cnn::cuda::AtomicType<Address>>
T atomicMin(Address address, std::type_identity_t<T> value) {
  return cnn::cuda::changed(address, [=](T before) { return value < before ? value : before; });
}
template <class Address, class T = cnn::cuda::AtomicType<Address>>
T atomicOr(Address address, std::type_identity_t<T> value) {
  return cnn::cuda::changed(address, [=](T before) { return static_cast<T>(before | value); });
}
template <class Address, class T = cnn::cuda::AtomicType<Address>>
T atomicAnd(Address address, std::type_identity_t<T> value) {
  return cnn::cuda::changed(address, [=](T before) { return static_cast<T>(before & value); });
}
template <class Address, class T = cnn::cuda::AtomicType<Address>>
T atomicExch(Address address, std::type_identity_t<T> value) {
  return cnn::cuda::changed(address, [=](T /*before*/) { return value; });
}

// The built-in functions of nvcc.
template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
void __stcs(T* address, T value) {
  *address = value;
}
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
// Counts clock cycles at the rate of an H100, whatever the processor's rate is.
inline long long clock64() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<long long>(std::chrono::duration<double>(now).count() * 1.98e9);
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((std::uint64_t{a} * b) >> 32U);
}
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }

template <class A, class B>
requires std::is_arithmetic_v<A> && std::is_arithmetic_v<B>
auto min(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}
template <class A, class B>
requires std::is_arithmetic_v<A> && std::is_arithmetic_v<B>
auto max(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}
// NOLINTEND(readability-function-size,bugprone-sizeof-expression,misc-unconventional-assign-operator)
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier,cppcoreguidelines-macro-usage)
