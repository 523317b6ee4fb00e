#include "train/run/named_step.h"

#include <fmt/format.h>

namespace megalith::train {

std::string why_not_from(const checkpoint::Lineage& lineage, const std::string& reason) {
  if (lineage.begins_anew()) return fmt::format("generation {} cannot begin anew: {}", lineage.generation(), reason);
  return fmt::format("generation {} cannot go on from step {}: {}", lineage.generation(), lineage.from_step(), reason);
}

}  // namespace megalith::train
