#include "cost/hardware.h"

#include <gtest/gtest.h>

namespace megalith::cost {
namespace {

TEST(Hardware, DensePeaks) {
  EXPECT_EQ(find_accelerator("h100")->bf16_tflops, 989);
  EXPECT_EQ(find_accelerator("h100")->fp8_tflops, 1979);
  EXPECT_EQ(find_accelerator("h200")->bf16_tflops, 989);
  EXPECT_EQ(find_accelerator("h200")->fp8_tflops, 1979);
  EXPECT_EQ(find_accelerator("b200")->bf16_tflops, 2250);
  EXPECT_EQ(find_accelerator("b200")->fp8_tflops, 4500);
  EXPECT_EQ(find_accelerator("a100")->bf16_tflops, 312);
  EXPECT_FALSE(find_accelerator("a100")->fp8_tflops);
}

TEST(Hardware, DriverNames) {
  EXPECT_EQ(find_accelerator("NVIDIA H200")->name, "h200");
  EXPECT_EQ(find_accelerator("NVIDIA H100 80GB HBM3")->name, "h100");
  EXPECT_EQ(find_accelerator("NVIDIA A100-SXM4-80GB")->name, "a100");
  EXPECT_EQ(find_accelerator("NVIDIA A100 80GB PCIe")->name, "a100");
  EXPECT_EQ(find_accelerator("NVIDIA H100 PCIe"), nullptr);
  EXPECT_EQ(find_accelerator("NVIDIA H100 NVL"), nullptr);
  EXPECT_EQ(find_accelerator("NVIDIA GeForce RTX 4090"), nullptr);
  EXPECT_EQ(find_accelerator(""), nullptr);
}

}  // namespace
}  // namespace megalith::cost
