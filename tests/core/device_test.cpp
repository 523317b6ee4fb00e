#include "core/device.h"

#include <gtest/gtest.h>

#include "core/stream.h"

namespace megalith {
namespace {

TEST(RunsOn, ItsOwnArchitectureOrALowerMinorWithoutALetter) {
  EXPECT_TRUE(runs_on("90a", 9, 0));
  EXPECT_TRUE(runs_on("80;90a", 8, 6));
  EXPECT_TRUE(runs_on("80;90a", 9, 0));
  EXPECT_FALSE(runs_on("90a", 8, 0));
  EXPECT_FALSE(runs_on("86", 8, 0));
  EXPECT_FALSE(runs_on("90a", 10, 0));
  EXPECT_TRUE(runs_on("100", 10, 3));
  EXPECT_FALSE(runs_on("", 9, 0));
}

TEST(MultipliesFp8, FromComputeCapability89On) {
  EXPECT_TRUE(multiplies_fp8("sm_89"));
  EXPECT_TRUE(multiplies_fp8("sm_90"));
  EXPECT_TRUE(multiplies_fp8("sm_120"));
  EXPECT_FALSE(multiplies_fp8("sm_80"));
  EXPECT_FALSE(multiplies_fp8("sm_86"));
  EXPECT_FALSE(multiplies_fp8(""));
}

TEST(Stream, OnTheCpuEverythingIsDoneWhenItReturns) {
  ThreadPool pool(1);
  Stream stream(pool);
  float from = 3.0F;
  float to = 0.0F;
  copy(stream, Tensor(&from, DType::f32, {1}), Tensor(&to, DType::f32, {1}));
  EXPECT_EQ(to, 3.0F);
  RecordedWork work;
  for (int i = 0; i < 3; ++i) {
    Recording recording(&work, stream);
    EXPECT_TRUE(recording.is_needed());
    recording.finish();
  }
  StreamMark begin;
  StreamMark end;
  begin.record(stream);
  end.record(stream);
  end.wait();
  EXPECT_GE(StreamMark::seconds_between(begin, end), 0.0);
}

TEST(Stream, CopiesMany) {
  ThreadPool pool(1);
  Stream stream(pool);
  std::vector<float> from = {1.0F, 2.0F, 3.0F};
  std::vector<float> to(3);
  copy(stream, std::vector<TensorCopy>{
                   {.from = Tensor(from.data(), DType::f32, {2}), .to = Tensor(to.data() + 1, DType::f32, {2})},
                   {.from = Tensor(from.data() + 2, DType::f32, {1}), .to = Tensor(to.data(), DType::f32, {1})},
                   {.from = Tensor(from.data(), DType::f32, {0}), .to = Tensor(to.data(), DType::f32, {0})}});
  EXPECT_EQ(to, (std::vector<float>{3.0F, 1.0F, 2.0F}));
}

TEST(StagingMemory, OfTheCpuIsPlainMemory) {
  const StagingMemory memory(Device::cpu, 100, "test");
  memory.data()[99] = std::byte{7};
  EXPECT_EQ(memory.data()[99], std::byte{7});
}

}  // namespace
}  // namespace megalith
