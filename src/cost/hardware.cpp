#include "cost/hardware.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"

namespace megalith::cost {
namespace {

constexpr AssumedRates kBlackwellRates{.gemm_share = 0.66, .fp8_gemm_share = 0.62};

// Makers' data sheets; usable memory as MLPerf's system files print it.
std::vector<Accelerator> accelerators_that_ship() {
  Accelerator a100{.name = "a100",
                   .bf16_tflops = 312,
                   .memory_gib = 79.3,
                   .memory_tb_s = 2.0,
                   .multiprocessors = 108,
                   .link_gb_s = 300,
                   .domain = 8,
                   .per_node = 8,
                   .host_gb_s = 31,
                   .network = "hdr-8x200",
                   .best_gemm_share = 0.869};
  Accelerator a100_40 = a100;
  a100_40.name = "a100-40";
  a100_40.memory_gib = 39.4;
  a100_40.memory_tb_s = 1.56;
  Accelerator h100{.name = "h100",
                   .bf16_tflops = 989,
                   .fp8_tflops = 1979,
                   .memory_gib = 79.6,
                   .memory_tb_s = 3.35,
                   .multiprocessors = 132,
                   .link_gb_s = 450,
                   .domain = 8,
                   .per_node = 8,
                   .host_gb_s = 63,
                   .network = "ndr-8x400",
                   .hopper_or_later = true,
                   .best_gemm_share = 0.803};
  Accelerator h100_96 = h100;
  h100_96.name = "h100-96-500w";
  h100_96.memory_gib = 94.6;
  h100_96.memory_tb_s = 2.4;
  h100_96.gemm_factor = 0.8;
  h100_96.best_gemm_share = 0.8 * h100.best_gemm_share;
  Accelerator h200 = h100;
  h200.name = "h200";
  h200.memory_gib = 140.4;
  h200.memory_tb_s = 4.8;
  Accelerator b200{.name = "b200",
                   .bf16_tflops = 2250,
                   .fp8_tflops = 4500,
                   .memory_gib = 179,
                   .memory_tb_s = 8.0,
                   .multiprocessors = 148,
                   .link_gb_s = 900,
                   .domain = 8,
                   .per_node = 8,
                   .host_gb_s = 63,
                   .network = "ndr-8x400",
                   .hopper_or_later = true,
                   .best_gemm_share = 0.776,
                   .assumed = kBlackwellRates};
  Accelerator gb200 = b200;
  gb200.name = "gb200";
  gb200.bf16_tflops = 2500;
  gb200.fp8_tflops = 5000;
  gb200.best_gemm_share = 0.729;
  gb200.memory_gib = 185;
  gb200.multiprocessors = 152;
  gb200.domain = 72;
  gb200.per_node = 4;
  gb200.host_gb_s = 450;
  gb200.network = "nvl72-4x400";
  Accelerator gb300 = gb200;
  gb300.name = "gb300";
  gb300.best_gemm_share = 0.708;
  gb300.memory_gib = 279;
  gb300.multiprocessors = 160;
  return {a100,
          a100_40,
          h100,
          h100_96,
          h200,
          b200,
          gb200,
          gb300,
          {.name = "trn1",
           .bf16_tflops = 95,
           .fp8_tflops = 95,
           .memory_gib = 16,
           .memory_tb_s = 0.41,
           .link_gb_s = 192,
           .domain = 32,
           .per_node = 32,
           .host_gb_s = 16,
           .network = "efa-trn1",
           .compiled = true,
           .assumed = AssumedRates{.gemm_share = 0.5, .fp8_gemm_share = 0.5}},
          {.name = "trn2",
           .bf16_tflops = 667,
           .fp8_tflops = 1299,
           .memory_gib = 96,
           .memory_tb_s = 2.9,
           .link_gb_s = 640,
           .domain = 16,
           .per_node = 16,
           .host_gb_s = 63,
           .network = "efa-trn2",
           .compiled = true,
           .assumed = AssumedRates{.gemm_share = 0.5, .fp8_gemm_share = 0.5}}};
}

std::vector<Network> networks_that_ship() {
  return {
      {"ndr-8x400", 400, true},    {"roce-8x400", 400, false}, {"xdr-8x800", 800, false}, {"hdr-8x200", 200, true},
      {"roce-8x200", 200, false},  {"hdr-4x200", 100, true},   {"opa-4x100", 50, true},   {"tcpxo-8x200", 200, false},
      {"tcpx-4x200", 100, false},  {"efa-p4d", 50, false},     {"efa-p5", 400, false},    {"efa-p5en", 400, false},
      {"efa-p6", 400, false},      {"efa-trn1", 25, false},    {"efa-trn1n", 50, false},  {"efa-trn2", 200, false},
      {"nvl72-4x400", 400, false}, {"eth-400", 50, false},     {"eth-800", 100, false}};
}

template <class Entry>
const Entry& named(const std::vector<Entry>& entries, std::string_view name, const char* what) {
  for (const Entry& entry : entries) {
    if (entry.name == name) return entry;
  }
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  user_error("there is no {} '{}': it is one of {}, or one that --hardware FILE adds", what, name,
             fmt::join(names, ", "));
}

template <class Entry>
void replace_or_add(std::vector<Entry>& entries, Entry entry) {
  const auto same = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.name == entry.name; });
  if (same != entries.end())
    *same = std::move(entry);
  else
    entries.push_back(std::move(entry));
}

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// "h100" is a word of "nvidia h100 80gb hbm3", not of "gh1000".
bool has_word(const std::string& text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_word_char(text[at - 1])) && (end == text.size() || !is_word_char(text[end]))) return true;
  }
  return false;
}

}  // namespace

Hardware::Hardware() : accelerators_(accelerators_that_ship()), networks_(networks_that_ship()) {}

const Accelerator& Hardware::accelerator(std::string_view name) const {
  return named(accelerators_, name, "accelerator");
}

const Network& Hardware::network(std::string_view name) const {
  return named(networks_, name, "network");
}

void Hardware::set(Accelerator accelerator) {
  replace_or_add(accelerators_, std::move(accelerator));
}

void Hardware::set(Network network) {
  replace_or_add(networks_, std::move(network));
}

const Accelerator* find_accelerator(std::string_view name) {
  static const Hardware hardware;
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const Accelerator& accelerator : hardware.accelerators()) {
    if (lower == accelerator.name) return &accelerator;
  }
  // The PCIe A100 has the full peak; the PCIe and NVL variants of later cards do not.
  const bool slower = has_word(lower, "nvl") || (has_word(lower, "pcie") && !has_word(lower, "a100"));
  if (slower) return nullptr;
  for (const Accelerator& accelerator : hardware.accelerators()) {
    if (has_word(lower, accelerator.name)) return &accelerator;
  }
  return nullptr;
}

}  // namespace megalith::cost
