#include "data/document_bounds.h"

#include <gtest/gtest.h>

namespace megalith::data {
namespace {

using Ints = std::vector<int32_t>;

TEST(DocumentBounds, DocumentsEndAtEodAndAtTheSample) {
  const Ints tokens = {1, 9, 2, 3, 9, 4,  //
                       9, 9, 5, 6, 7, 9};
  const Ints starts = document_starts(tokens, 6, 9);
  EXPECT_EQ(starts, (Ints{0, 0, 2, 2, 2, 5, 0, 1, 2, 2, 2, 2}));
  EXPECT_EQ(document_positions(starts, 6), (Ints{0, 1, 0, 1, 2, 0, 0, 0, 0, 1, 2, 3}));
  EXPECT_EQ(cu_seqlens(starts, 6), (Ints{0, 2, 5, 6, 7, 8, 12}));
}

TEST(DocumentBounds, WithoutEodASampleIsOneDocument) {
  const Ints starts = document_starts(Ints{1, 2, 3, 4}, 2, -1);
  EXPECT_EQ(starts, (Ints{0, 0, 0, 0}));
  EXPECT_EQ(cu_seqlens(starts, 2), (Ints{0, 2, 4}));
  EXPECT_EQ(cu_seqlens(Ints{}, 2), (Ints{0}));
}

}  // namespace
}  // namespace megalith::data
