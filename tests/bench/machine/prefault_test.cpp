#include "bench/machine/prefault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/machine/cpu_backend.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/pages.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::size_t mebibyte = std::size_t{1} << 20U;

// Not touched before.
Buffer pages(std::size_t bytes) {
  HostBytes memory = allocate_pages(bytes);
  return {memory.data, bytes, std::move(memory.release)};
}

TEST(SecureMemory, TakesWhatIsThere) {
  const Buffer memory = pages(3 * mebibyte + 64);
  int looks = 0;
  prefault({memory.data(), memory.bytes()}, [&] {
    ++looks;
    return std::size_t{4} << 30U;
  });
  EXPECT_EQ(looks, 2) << "a small run is not kept waiting";
  prefault({}, [&] { return std::size_t{0}; });
}

TEST(SecureMemory, IsRefusedWhereOthersHaveTakenItSince) {
  const Buffer memory = pages(300 * mebibyte);
  std::size_t left = std::size_t{8} << 30U;
  const auto secure = [&] {
    prefault({memory.data(), memory.bytes()},
             [&] { return std::exchange(left, std::size_t{100} * mebibyte); });
  };
  EXPECT_THAT(secure, ThrowsMessage<DoesNotFit>(HasSubstr(
                          "300.00 MiB were free when this run was planned, but others have taken "
                          "memory since: of the last 300.00 MiB only 100.00 MiB are left")));
}

TEST(SecureMemory, LeavesATenthFreeWhereThatIsLessThanHalfAGibibyte) {
  EXPECT_EQ(kept_free(std::size_t{64} << 30U), 512 * mebibyte);
  EXPECT_EQ(kept_free(500 * mebibyte), 50 * mebibyte);
  EXPECT_EQ(kept_free(0), 0U);
  const Buffer memory = pages(mebibyte);  // a small container has room for it
  EXPECT_NO_THROW(prefault({memory.data(), memory.bytes()}, [] { return 100 * mebibyte; }));
}

TEST(SecureMemory, LeavesMemoryFreeOnACpu) {
  const Backend backend = cpu_backend().make({});
  EXPECT_LE(backend.memory.device, available_memory() + 256 * mebibyte);
  EXPECT_THAT(backend.memory.text, HasSubstr(" MiB that stay free"));
  EXPECT_TRUE(backend.prefault);
}

}  // namespace
}  // namespace cnn::bench
