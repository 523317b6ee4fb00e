#include "comm/world.h"

#include <gtest/gtest.h>

#include <array>

#include "comm/collective_cases.h"

namespace megalith::comm {
namespace {

Tensor vector_of(std::array<float, 3>& values) {
  return Tensor(values.data(), DType::f32, {std::ssize(values)});
}

TEST(LoneGroup, SendsNothingAndCopiesWhatIsAskedForElsewhere) {
  CpuStream stream;
  Communicator& group = lone_group();
  EXPECT_EQ(group.size(), 1);
  EXPECT_EQ(group.rank(), 0);
  EXPECT_TRUE(group.is_alone());
  std::array<float, 3> in{1, 2, 3};
  std::array<float, 3> out{};
  group.all_reduce(stream, vector_of(in)).wait(stream);
  EXPECT_EQ(in, (std::array<float, 3>{1, 2, 3}));
  group.all_gather(stream, vector_of(in), vector_of(out)).wait(stream);
  EXPECT_EQ(out, in);
  group.barrier(stream).wait(stream);
}

// Code that has no world may compute on a GPU as well.
TEST(LoneGroup, IsOfAnyDevice) {
  Stream stream(Device::cuda, Shadow{});
  std::array<float, 3> values{};
  const Tensor there(values.data(), DType::f32, {3}, Device::cuda);
  EXPECT_NO_THROW(lone_group().all_reduce(stream, there).wait(stream));
}

}  // namespace
}  // namespace megalith::comm
