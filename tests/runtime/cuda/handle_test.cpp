#include "runtime/cuda/handle.h"

#include <gtest/gtest.h>
#include <utility>

namespace cnn::cuda {
namespace {

// A miniature C library: a handle is a pointer, and its destroy function returns a status.
struct Thing {
  int destroyed = 0;
};
int destroy_thing(Thing* thing) {
  ++thing->destroyed;
  return 7;
}
using ThingHandle = Handle<Thing*, destroy_thing>;

TEST(CudaHandle, DestroysWhatItOwnsOnce) {
  Thing thing;
  {
    ThingHandle first(&thing);
    const ThingHandle second = std::move(first);
    EXPECT_EQ(first.get(), nullptr);
    EXPECT_EQ(second.get(), &thing);
    EXPECT_EQ(thing.destroyed, 0);
  }
  EXPECT_EQ(thing.destroyed, 1);
}

TEST(CudaHandle, IsAsLargeAsThePointer) { EXPECT_EQ(sizeof(ThingHandle), sizeof(void*)); }

TEST(CudaHandle, DestroysNothingWhenEmpty) {
  const ThingHandle empty;
  EXPECT_EQ(empty, nullptr);
}

}  // namespace
}  // namespace cnn::cuda
