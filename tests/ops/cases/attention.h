#pragma once

#include <algorithm>
#include <cmath>

#include "ops/attention.h"
#include "ops/cases/op_case.h"

namespace megalith::ops::testing {

struct AttentionCase {
  int64_t batch, queries, keys, heads, kv_heads, dim;
  double dropout = 0.0;
  int64_t document = 0;  // the length of documents in a sample; 0: a sample is one document
  int64_t room = 0;      // for documents in their bounds; 0: there are no bounds
  int64_t unseen = 0;    // keys after the last query
  int64_t head_offset = 0;
  int64_t dropout_keys = 0;
  bool packed = false;  // q, k, v and their gradients are columns of one matrix

  int64_t offset() const { return keys - queries - unseen; }
  bool is_square() const { return queries == keys; }
  int64_t q_rows() const { return batch * queries; }
  int64_t k_rows() const { return batch * keys; }
  int64_t q_cols() const { return heads * dim; }
  int64_t kv_cols() const { return kv_heads * dim; }
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(dim)); }
  // Documents are cut elsewhere in each sample.
  int64_t start_of(int64_t sample, int64_t position) const {
    return document == 0 ? 0 : std::max<int64_t>(0, (position + sample) / document * document - sample);
  }
};

std::string describe(const AttentionCase& c);
Named inputs_of(const AttentionCase& c);
std::vector<int64_t> sample_ids_of(const AttentionCase& c);
std::vector<int32_t> starts_of(const AttentionCase& c);
// The rows at which documents begin, then the number of rows as often as there is room.
std::vector<int32_t> bounds_of(const AttentionCase& c);
AttentionShape shape_of(const AttentionCase& c, DType dtype);

Runner run_forward(const AttentionCase& c);
Runner run_backward(const AttentionCase& c);
Reference naive_forward(const AttentionCase& c);

}  // namespace megalith::ops::testing
