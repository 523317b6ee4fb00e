#include "cost/hardware_file.h"

#include <gtest/gtest.h>

#include "expect_error.h"

namespace megalith::cost {
namespace {

Hardware with(const std::string& text) {
  Hardware hardware;
  add_hardware(hardware, text, "mine.yaml");
  return hardware;
}

TEST(HardwareFile, AddsAndChanges) {
  const Hardware hardware = with(
      "accelerators:\n"
      "  - {name: h100-pcie, like: h100, bf16_tflops: 756, memory_tb_s: 2.0, network: ours}\n"
      "  - {name: a100, link_gb_s: 250}\n"
      "networks:\n"
      "  - {name: ours, gbit_per_gpu: 200}\n");
  EXPECT_EQ(hardware.accelerator("h100-pcie").bf16_tflops, 756);
  EXPECT_EQ(hardware.accelerator("h100-pcie").multiprocessors, 132);
  EXPECT_TRUE(hardware.accelerator("h100-pcie").assumed.has_value());
  EXPECT_EQ(hardware.accelerator("a100").link_gb_s, 250);
  EXPECT_EQ(hardware.accelerator("a100").bf16_tflops, 312);
  EXPECT_FALSE(hardware.accelerator("a100").assumed.has_value());
  EXPECT_EQ(hardware.network("ours").gbit_per_gpu, 200);
  EXPECT_FALSE(hardware.network("ours").checked);
}

TEST(HardwareFile, WrongFiles) {
  const auto expect = [](const std::string& text, const std::string& message) {
    expect_error(ErrorKind::user, {message}, [&] { with(text); });
  };
  expect("accelerators:\n  - {name: x, like: y}\n", "there is no accelerator 'y': it is one of a100");
  expect("accelerators:\n  - {name: x, like: h100, memory_tb_s: 0}\n", "mine.yaml:2: memory_tb_s must be a number");
  expect("accelerators:\n  - {name: x, like: h100, flops: 1}\n", "an accelerator has no 'flops'");
  expect("accelerators:\n  - {name: x, bf16_tflops: 1}\n", "x has no memory_gib");
  expect("accelerators:\n  - {like: h100}\n", "an entry needs a name");
  expect("gpus: []\n", "'gpus' is neither accelerators nor networks");
  expect("networks:\n  - {name: x}\n", "x has no gbit_per_gpu");
  expect("- 1\n", "expected lists named accelerators and networks");
}

}  // namespace
}  // namespace megalith::cost
