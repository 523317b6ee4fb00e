#pragma once

#include <vector>

#include "core/arena.h"
#include "ops/gemm.h"

namespace megalith::model {

// Products that make weight gradients, put off until the stages before have what they wait for (zero-bubble schedules).
// What they read stays in an arena of its own until then.
class DeferredProducts {
 public:
  explicit DeferredProducts(Arena& arena) : arena_(&arena), mark_(arena.used()) {}

  void add(const ops::Gemm& product) { products_.push_back(product); }
  void run(Stream& stream) {
    for (const ops::Gemm& product : products_) ops::gemm(stream, product);
    products_.clear();
    arena_->release_to(mark_);
  }
  Arena& arena() const { return *arena_; }

 private:
  Arena* arena_;
  int64_t mark_;
  std::vector<ops::Gemm> products_;
};

}  // namespace megalith::model
