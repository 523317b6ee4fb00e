#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/tensor.h"

namespace megalith::parallel {

// The mesh's named axes, fastest-varying first.
enum class Axis { tp, cp, dp, pp };

// A dimension that is divided among the ranks along `axes`.
struct Cut {
  int dimension = 0;
  std::vector<Axis> axes;
};

enum class Initial { zeros, ones, normal };

// A parameter as the model knows it, whole, on no particular layout. Checkpoints, initialisation and parameter counts
// speak of these.
struct ParameterSpec {
  std::string name;  // "layers.12.attention.qkv.weight"
  Shape shape;
  std::vector<Cut> cuts = {};
  // Rows of the matrices fused along dimension 0 (q, k, v; gate, up). Each is cut on its own, so that a rank's piece is
  // again a fused matrix. Empty: one matrix.
  std::vector<int64_t> blocks = {};
  // Rows of a block that no cut divides (those of a head). Where a block has fewer such units than there are ranks,
  // each is held by several.
  int64_t cut_unit = 1;
  Initial initial = Initial::zeros;
  double std = 0.0;
  bool weight_decay = false;
  // A product overwrites its gradient in the first micro batch of a step, so that nobody need zero it.
  bool gradient_by_product = false;
};

// Each logical parameter once, in the order in which a forward pass meets them.
class ParameterTable {
 public:
  void add(ParameterSpec spec);

  const std::vector<ParameterSpec>& specs() const { return specs_; }
  size_t size() const { return specs_.size(); }
  // The position of a parameter; an unknown name is an internal error.
  size_t index_of(std::string_view name) const;
  bool contains(std::string_view name) const { return index_.contains(std::string(name)); }
  int64_t elements() const;

 private:
  std::vector<ParameterSpec> specs_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace megalith::parallel
