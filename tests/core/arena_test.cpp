#include "core/arena.h"

#include <gtest/gtest.h>

#include "core/stream.h"

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

TEST(Arena, AShadowHasAddressesAndNoMemory) {
  Arena first("first", Device::cuda, Shadow{});
  Arena second("second", Device::cuda, Shadow{});
  constexpr int64_t kHuge = int64_t{1} << 42;
  const Tensor huge = first.allocate("huge", DType::f32, {kHuge});
  EXPECT_NE(huge.data, nullptr);
  EXPECT_EQ(huge.device, Device::cuda);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(huge.data) % Arena::kAlignment, 0u);
  EXPECT_NE(huge.data, second.allocate("other", DType::f32, {1}).data);
  EXPECT_EQ(first.peak(), 4 * kHuge);
  first.release_to(0);
  first.allocate("small", DType::f32, {1});
  EXPECT_EQ(first.peak(), 4 * kHuge);
  EXPECT_TRUE(first.beside("third", 7).is_shadow());
}

TEST(Stream, AShadowRunsNothing) {
  Stream shadow(Device::cuda, Shadow{.threads = 3});
  EXPECT_TRUE(shadow.is_shadow());
  EXPECT_EQ(shadow.threads(), 3);
  EXPECT_TRUE(shadow.beside().is_shadow());
  Arena arena("arena", Device::cuda, Shadow{});
  const Tensor tensor = arena.allocate("tensor", DType::f32, {4});
  std::vector<float> values(4, 1.0F);
  copy(shadow, Tensor(values.data(), DType::f32, {4}), tensor);
  EXPECT_THROW(copy(shadow, Tensor(values.data(), DType::f32, {3}), tensor), Error) << "checked all the same";
  StreamMark mark;
  mark.record(shadow);
  mark.hold(shadow);
  mark.wait();
  RecordedWork work;
  Recording(&work, shadow).finish();
  EXPECT_TRUE(Recording(&work, shadow).is_needed()) << "so that its operations are observed";
  shadow.wait();
}

}  // namespace
}  // namespace megalith
