#include "bench/machine/secure_memory.h"

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
  secure_memory({memory.data(), memory.bytes()}, [&] {
    ++looks;
    return 8 * kept_free;
  });
  EXPECT_EQ(looks, 1) << "a small run is not kept waiting";
  secure_memory({}, [&] { return std::size_t{0}; });
}

TEST(SecureMemory, IsRefusedWhereOthersHaveTakenItSince) {
  const Buffer memory = pages(300 * mebibyte);
  std::size_t left = kept_free + 300 * mebibyte;
  const auto secure = [&] {
    secure_memory({memory.data(), memory.bytes()},
                  [&] { return std::exchange(left, std::size_t{100} * mebibyte); });
  };
  EXPECT_THAT(secure, ThrowsMessage<DoesNotFit>(HasSubstr(
                          "0.29 GiB were free when this run was planned, but others have taken "
                          "memory since: of the last 0.04 GiB only 0.10 are left")));
}

TEST(SecureMemory, OfACpuIsThereButForWhatStaysFree) {
  const Backend backend = cpu_backend().make({});
  EXPECT_LE(backend.memory_limit, available_memory() - kept_free + 256 * mebibyte);
  EXPECT_THAT(backend.memory_text, HasSubstr("less 512 MiB that stay free"));
  EXPECT_TRUE(backend.secure);
}

}  // namespace
}  // namespace cnn::bench
