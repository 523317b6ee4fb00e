#include "cost/hardware_file.h"

#include <array>

#include "config/scalar.h"
#include "config/yaml_tree.h"
#include "core/error.h"
#include "core/file.h"

namespace megalith::cost {
namespace {

using config::YamlTree;

struct Number {
  std::string_view key;
  double Accelerator::*value;
};
constexpr std::array kNumbers{
    Number{"bf16_tflops", &Accelerator::bf16_tflops}, Number{"memory_gib", &Accelerator::memory_gib},
    Number{"memory_tb_s", &Accelerator::memory_tb_s}, Number{"link_gb_s", &Accelerator::link_gb_s},
    Number{"host_gb_s", &Accelerator::host_gb_s}};
struct Count {
  std::string_view key;
  int64_t Accelerator::*value;
};
constexpr std::array kCounts{Count{"multiprocessors", &Accelerator::multiprocessors},
                             Count{"domain", &Accelerator::domain}, Count{"per_node", &Accelerator::per_node}};

double number_of(const YamlTree::Member& member) {
  const auto value = config::read_double(member.value.text);
  if (member.value.kind != YamlTree::Kind::scalar || !value || *value <= 0)
    user_error("{}: {} must be a number above 0, not '{}'", member.value.origin, member.name, member.value.text);
  return *value;
}

int64_t count_of(const YamlTree::Member& member) {
  const auto value = config::read_int(member.value.text);
  if (member.value.kind != YamlTree::Kind::scalar || !value || *value < 1)
    user_error("{}: {} must be a whole number from 1, not '{}'", member.value.origin, member.name, member.value.text);
  return *value;
}

const YamlTree* member_of(const YamlTree& entry, std::string_view name) {
  for (const YamlTree::Member& member : entry.members) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

std::string required_name(const YamlTree& entry) {
  const YamlTree* name = member_of(entry, "name");
  if (name == nullptr || name->text.empty()) user_error("{}: an entry needs a name", entry.origin);
  return name->text;
}

bool set_number(Accelerator& accelerator, const YamlTree::Member& member) {
  for (const Number& number : kNumbers) {
    if (number.key == member.name) accelerator.*number.value = number_of(member);
    if (number.key == member.name) return true;
  }
  for (const Count& count : kCounts) {
    if (count.key == member.name) accelerator.*count.value = count_of(member);
    if (count.key == member.name) return true;
  }
  return false;
}

void require_complete(const Accelerator& accelerator, const std::string& origin) {
  for (const Number& number : kNumbers) {
    if (accelerator.*number.value <= 0)
      user_error("{}: {} has no {}: give it, or `like: NAME` of one that has", origin, accelerator.name, number.key);
  }
}

AssumedRates& assumed_rates(Accelerator& accelerator) {
  if (!accelerator.assumed) accelerator.assumed = AssumedRates{.gemm_share = 0.66, .fp8_gemm_share = 0.6};
  return *accelerator.assumed;
}

Accelerator accelerator_of(const Hardware& hardware, const YamlTree& entry) {
  Accelerator accelerator;
  const std::string name = required_name(entry);
  const YamlTree* like = member_of(entry, "like");
  // An entry that changes one that there is begins as that one.
  for (const Accelerator& known : hardware.accelerators()) {
    if (like == nullptr && known.name == name) accelerator = known;
  }
  if (like != nullptr) accelerator = hardware.accelerator(like->text);
  // What runs of another card were fitted on says little of this one.
  if (accelerator.name != name) assumed_rates(accelerator);
  accelerator.name = name;
  for (const YamlTree::Member& member : entry.members) {
    if (member.name == "name" || member.name == "like" || set_number(accelerator, member)) continue;
    if (member.name == "fp8_tflops") {
      accelerator.fp8_tflops = number_of(member);
    } else if (member.name == "gemm_share") {
      assumed_rates(accelerator).gemm_share = number_of(member);
    } else if (member.name == "fp8_gemm_share") {
      assumed_rates(accelerator).fp8_gemm_share = number_of(member);
    } else if (member.name == "network") {
      accelerator.network = hardware.network(member.value.text).name;
    } else {
      user_error(
          "{}: an accelerator has no '{}': its keys are name, like, {}, {}, fp8_tflops, gemm_share, fp8_gemm_share and "
          "network",
          member.value.origin, member.name, "bf16_tflops, memory_gib, memory_tb_s, link_gb_s, host_gb_s",
          "multiprocessors, domain, per_node");
    }
  }
  require_complete(accelerator, entry.origin);
  if (accelerator.network.empty()) user_error("{}: {} has no network", entry.origin, name);
  return accelerator;
}

Network network_of(const YamlTree& entry) {
  Network network{.name = required_name(entry)};
  for (const YamlTree::Member& member : entry.members) {
    if (member.name == "name") continue;
    if (member.name != "gbit_per_gpu")
      user_error("{}: a network has no '{}': its keys are name and gbit_per_gpu", member.value.origin, member.name);
    network.gbit_per_gpu = number_of(member);
  }
  if (network.gbit_per_gpu <= 0) user_error("{}: {} has no gbit_per_gpu", entry.origin, network.name);
  return network;
}

}  // namespace

void add_hardware(Hardware& hardware, const std::string& text, const std::string& file) {
  const YamlTree tree = config::read_yaml_tree(text, file);
  if (tree.kind != YamlTree::Kind::map) user_error("{}: expected lists named accelerators and networks", file);
  // Networks first: accelerators name theirs.
  for (const bool networks : {true, false}) {
    for (const YamlTree::Member& list : tree.members) {
      if (list.name != "networks" && list.name != "accelerators")
        user_error("{}: '{}' is neither accelerators nor networks", list.value.origin, list.name);
      if (list.value.kind != YamlTree::Kind::list) user_error("{}: {} is not a list", list.value.origin, list.name);
      if ((list.name == "networks") != networks) continue;
      for (const YamlTree& entry : list.value.items) {
        if (entry.kind != YamlTree::Kind::map) user_error("{}: an entry is not a map of keys", entry.origin);
        if (networks)
          hardware.set(network_of(entry));
        else
          hardware.set(accelerator_of(hardware, entry));
      }
    }
  }
}

Hardware hardware_with(const std::filesystem::path& file) {
  Hardware hardware;
  add_hardware(hardware, read_text(file), file.string());
  return hardware;
}

}  // namespace megalith::cost
