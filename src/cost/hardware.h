#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::cost {

// Shares of its peaks that an accelerator reaches where nothing was measured on it.
struct AssumedRates {
  double gemm_share = 0.0;      // 16-bit GEMMs, before tile and wave losses
  double fp8_gemm_share = 0.0;  // 0: no fp8
};

struct Accelerator {
  std::string name;
  // Dense peaks as the maker states them, in TFLOPS (docs/design.md, section 6).
  double bf16_tflops = 0.0;
  std::optional<double> fp8_tflops = {};
  double memory_gib = 0.0;  // that programs can use
  double memory_tb_s = 0.0;
  int64_t multiprocessors = 0;  // 0: unknown, and no losses of the last wave
  double link_gb_s = 0.0;       // scale-up, per direction
  int64_t domain = 1;           // accelerators that the scale-up links join
  int64_t per_node = 8;
  double host_gb_s = 0.0;  // to the memory of the host
  std::string network;     // the usual one between nodes
  bool hopper_or_later = false;
  bool compiled = false;  // programs run as one: no host launches kernel after kernel
  // Of the 16-bit peak: the fastest GEMM that searches over shapes have found. 0: nobody published one.
  double best_gemm_share = 0.0;
  // Relative to others of its generation, for slower variants of a card.
  double gemm_factor = 1.0;
  // Absent: the rates were fitted on runs of this generation.
  std::optional<AssumedRates> assumed = {};
};

// Between nodes.
struct Network {
  std::string name;
  double gbit_per_gpu = 0.0;
  bool checked = false;  // runs over it were among those that the model was fitted on
};

// Accelerators and networks by name: those that ship, and what a user adds or changes.
class Hardware {
 public:
  Hardware();

  // A user error that lists the names that there are.
  const Accelerator& accelerator(std::string_view name) const;
  const Network& network(std::string_view name) const;

  const std::vector<Accelerator>& accelerators() const { return accelerators_; }
  const std::vector<Network>& networks() const { return networks_; }

  // Replaces the entry of this name, or adds one.
  void set(Accelerator accelerator);
  void set(Network network);

 private:
  std::vector<Accelerator> accelerators_;
  std::vector<Network> networks_;
};

// By our name ("h200") or by the driver's ("NVIDIA H200"). nullptr for any other card, also for slower variants that
// share a name (PCIe, NVL): a wrong peak would make a wrong MFU.
const Accelerator* find_accelerator(std::string_view name);

}  // namespace megalith::cost
