#include "core/arena.h"

#include <gtest/gtest.h>

#include "expect_error.h"

namespace megalith {
namespace {

TEST(Arena, HandsOutAlignedZeroedMemory) {
  Arena arena("weights", Device::cpu, 1024);
  const Tensor first = arena.allocate("a", DType::f32, {3});
  const Tensor second = arena.allocate("b", DType::f64, {2, 2});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second.data) % Arena::kAlignment, 0U);
  EXPECT_EQ(first.as<float>()[2], 0.0F);
  EXPECT_EQ(arena.used(), 2 * Arena::kAlignment);
}

TEST(Arena, NamesItselfAndTheTensorWhenFull) {
  Arena arena("scratch", Device::cpu, Arena::kAlignment);
  expect_error(ErrorKind::internal, {"'scratch'", "'logits'"}, [&] { arena.allocate("logits", DType::f32, {100}); });
}

TEST(Arena, ScopesGiveBackAndThePeakIsKept) {
  Arena arena("scratch", Device::cpu, 256);
  {
    const ArenaScope scope(arena);
    arena.allocate("x", DType::f32, {32});
  }
  EXPECT_EQ(arena.used(), 0);
  EXPECT_EQ(arena.peak(), Arena::kAlignment);
}

}  // namespace
}  // namespace megalith
