#include "parallel/placement/placement.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "parallel/placement_bytes.h"
#include "parallel/recipe_layouts.h"

namespace megalith::parallel::testing {
namespace {

using Boxes = std::vector<Box>;

void expect_intervals_tile(std::vector<Interval> intervals, int64_t size, const std::string& what) {
  std::sort(intervals.begin(), intervals.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  int64_t next = 0;
  for (const Interval& interval : intervals) {
    ASSERT_EQ(interval.begin, next) << what;
    next = interval.end;
  }
  ASSERT_EQ(next, size) << what;
}

// The boxes hold every element of the parameter once. No parameter is cut along both dimensions.
void expect_boxes_tile(const ParameterSpec& spec, const Boxes& boxes) {
  std::map<int64_t, std::vector<Interval>> rows_of_column;
  std::map<int64_t, Interval> columns;
  for (const Box& box : boxes) {
    rows_of_column[box.columns.begin].push_back(box.rows);
    const auto known = columns.emplace(box.columns.begin, box.columns).first;
    ASSERT_EQ(known->second, box.columns) << spec.name;
  }
  std::vector<Interval> all_columns;
  for (const auto& [begin, interval] : columns) {
    all_columns.push_back(interval);
    expect_intervals_tile(rows_of_column[begin], spec.shape[0], spec.name);
  }
  expect_intervals_tile(all_columns, spec.shape.rank() == 1 ? 1 : spec.shape[1], spec.name);
}

class OwnedBoxes {
 public:
  void add(const PlacedParameter& parameter, const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      if (parameter.is_owner && piece.is_owner()) boxes_[parameter.spec->name].push_back(piece.box);
    }
  }

  void expect_all_of(const ParameterTable& table) {
    for (const ParameterSpec& spec : table.specs()) expect_boxes_tile(spec, boxes_[spec.name]);
  }

 private:
  std::map<std::string, Boxes> boxes_;
};

// Local rows of each parameter in all shards together.
void expect_shards_tile(const Placement& placement, int64_t shards) {
  std::vector<std::vector<Interval>> rows(placement.parameters().size());
  for (int64_t shard = 0; shard < shards; ++shard) {
    for (const ShardPiece& piece : placement.optimizer_shard(shard)) rows[piece.parameter].push_back(piece.local_rows);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const PlacedParameter& parameter = placement.parameters()[i];
    expect_intervals_tile(rows[i], parameter.rows(), parameter.spec->name);
  }
}

void expect_every_element_owned_once(const Transformer& model, const Layout& layout, int64_t bucket_elements) {
  const ParameterTable table = table_of(model);
  const PlacementRequest request{.table = table,
                                 .layout = layout,
                                 .layers = model.layers,
                                 .tied_embeddings = model.has_tied_embeddings,
                                 .bucket_elements = bucket_elements};
  OwnedBoxes weights;
  OwnedBoxes optimizer_state;
  for (int64_t stage = 0; stage < layout.pipeline; ++stage) {
    for (int64_t tensor = 0; tensor < layout.tensor; ++tensor) {
      const Placement placement(request, stage, tensor);
      for (const PlacedParameter& parameter : placement.parameters()) weights.add(parameter, parameter.pieces);
      for (int64_t shard = 0; shard < placement.shards(); ++shard) {
        for (const ShardPiece& piece : placement.optimizer_shard(shard))
          optimizer_state.add(placement.parameters()[piece.parameter], piece.pieces);
      }
      expect_shards_tile(placement, placement.shards());
    }
  }
  weights.expect_all_of(table);
  optimizer_state.expect_all_of(table);
}

TEST(Placement, RecipesOwnEveryElementOnce) {
  for (const RecipeLayout& recipe : recipe_layouts()) {
    SCOPED_TRACE(recipe.name);
    expect_every_element_owned_once(recipe.model, recipe.layout, int64_t{40} << 20);
  }
}

TEST(Placement, RandomLayoutsOwnEveryElementOnce) {
  std::mt19937 random(7);
  const auto one_of = [&](std::initializer_list<int64_t> choices) {
    return choices.begin()[random() % choices.size()];
  };
  for (int trial = 0; trial < 200; ++trial) {
    const Layout layout{.tensor = one_of({1, 2, 4, 8}),
                        .pipeline = one_of({1, 2, 3, 4}),
                        .chunks = one_of({1, 2, 3}),
                        .context = one_of({1, 2}),
                        .data = one_of({1, 2, 3, 5}),
                        .sequence_parallel = one_of({0, 1}) == 1,
                        .shards_optimizer = one_of({0, 1}) == 1};
    const bool gated = one_of({0, 1}) == 1;
    const Transformer model{.layers = layout.virtual_stages() * one_of({1, 2}),
                            .hidden = one_of({16, 24}),
                            .ffn = one_of({32, 40}),
                            .heads = 8,
                            .kv_heads = one_of({1, 2, 4, 8}),
                            .head_dim = one_of({2, 3}),
                            .vocabulary = one_of({64, 72}),
                            .positions = one_of({0, 10}),
                            .is_gated = gated,
                            .has_bias = !gated,
                            .has_tied_embeddings = one_of({0, 1}) == 1};
    SCOPED_TRACE(to_string(layout));
    expect_every_element_owned_once(model, layout, one_of({1, 500, 100000}));
  }
}

TEST(Placement, HeadsThatSeveralRanksHoldHaveOneOwner) {
  const Transformer model{.layers = 1, .hidden = 16, .heads = 8, .kv_heads = 2, .head_dim = 2};
  const ParameterTable table = table_of(model);
  const ParameterSpec& qkv = table.specs()[table.index_of("layers.0.attention.qkv.weight")];
  const std::vector<Piece> pieces = pieces_of(qkv, {.ranks = 8, .rank = 5});
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[0].box.rows, (Interval{10, 12}));  // query head 5
  EXPECT_EQ(pieces[0].replicas, 1);
  EXPECT_EQ(pieces[1].box.rows, (Interval{18, 20}));  // key head 1 of 2, behind 16 rows of queries
  EXPECT_EQ(pieces[1].local_row, 2);
  EXPECT_EQ(pieces[1].replicas, 4);
  EXPECT_EQ(pieces[1].replica, 1);
  EXPECT_TRUE(pieces[1].gradient_is_partial);
  EXPECT_EQ(pieces[2].box.rows, (Interval{22, 24}));
  EXPECT_TRUE(pieces_of(qkv, {.ranks = 8, .rank = 4})[1].is_owner());
  EXPECT_EQ(local_shape(qkv, 8), (Shape{6, 16}));
}

TEST(Placement, SequenceParallelRanksSumWhatTheyAllHold) {
  const ParameterTable table = table_of({.layers = 1, .positions = 10});
  for (const bool sequence_parallel : {false, true}) {
    for (const ParameterSpec& spec : table.specs()) {
      const Piece piece = pieces_of(spec, {.ranks = 4, .rank = 1, .sequence_parallel = sequence_parallel}).front();
      EXPECT_EQ(piece.replicas, spec.cuts.empty() ? 4 : 1) << spec.name;
      EXPECT_EQ(piece.gradient_is_partial, sequence_parallel && spec.cuts.empty()) << spec.name;
    }
  }
}

TEST(Placement, TiedEmbeddingsAreCutAlikeOnBothStages) {
  const Transformer model{.layers = 4, .hidden = 16, .vocabulary = 80};
  const ParameterTable table = table_of(model);
  const PlacementRequest request{.table = table,
                                 .layout = {.tensor = 2, .pipeline = 2, .data = 3, .shards_optimizer = true},
                                 .layers = 4,
                                 .tied_embeddings = true};
  const auto rows_of_embedding = [&](const Placement& placement, int64_t shard) {
    std::vector<Interval> rows;
    for (const ShardPiece& piece : placement.optimizer_shard(shard)) {
      if (placement.parameters()[piece.parameter].is_shared) rows.push_back(piece.local_rows);
    }
    return rows;
  };
  const Placement first(request, 0, 1);
  const Placement last(request, 1, 1);
  EXPECT_TRUE(first.parameters().front().is_owner);
  EXPECT_FALSE(last.parameters().back().is_owner);
  EXPECT_EQ(last.parameters().back().spec->name, "embedding.tokens.weight");
  // Backward of the head comes first, that of the embedding last.
  EXPECT_EQ(last.buckets().front().slabs.front().entries.front().parameter, last.parameters().size() - 1);
  EXPECT_EQ(first.buckets().back().slabs.front().entries.front().parameter, 0U);
  for (int64_t shard = 0; shard < 3; ++shard)
    EXPECT_EQ(rows_of_embedding(first, shard), rows_of_embedding(last, shard));
}

TEST(Placement, BucketsFollowBackwardAndKeepTheirBound) {
  const Transformer model{.layers = 8, .hidden = 64, .ffn = 256, .has_tied_embeddings = false};
  const ParameterTable table = table_of(model);
  constexpr int64_t kBound = 20000;
  const Placement placement(
      {.table = table,
       .layout =
           {.tensor = 2, .pipeline = 2, .chunks = 2, .data = 4, .sequence_parallel = true, .shards_optimizer = true},
       .layers = 8,
       .bucket_elements = kBound},
      0, 0);
  std::set<size_t> finished;
  for (const Bucket& bucket : placement.buckets()) {
    std::set<size_t> members;
    int64_t elements = 0;
    for (const Slab& slab : bucket.slabs) {
      EXPECT_EQ(slab.rows % 4, 0);
      for (const Slab::Entry& entry : slab.entries) {
        const PlacedParameter& parameter = placement.parameters()[entry.parameter];
        EXPECT_EQ(parameter.chunk, bucket.chunk);
        EXPECT_EQ(parameter.columns(), slab.width);
        EXPECT_EQ(parameter.spec->gradient_by_product, slab.gradient_by_product);
        EXPECT_EQ(parameter.sums_over_tensor(), slab.sums_over_tensor);
        EXPECT_EQ(entry.first_row * slab.width % kParameterAlignment, 0);
        members.insert(entry.parameter);
        elements += parameter.shape.elements();
      }
    }
    EXPECT_TRUE(members.size() == 1 || elements <= kBound);
    // Everything behind these parameters in the order of forward is finished already.
    for (size_t later = *members.rbegin() + 1; later < placement.parameters().size(); ++later)
      EXPECT_TRUE(finished.contains(later));
    finished.merge(members);
  }
  EXPECT_EQ(finished.size(), placement.parameters().size());
  EXPECT_GT(placement.buckets().size(), 2U);
}

TEST(Placement, ShardsAreOfEqualSizeInMemory) {
  const ParameterTable table = table_of({.layers = 1, .hidden = 10, .vocabulary = 7});
  const Placement placement({.table = table,
                             .layout = {.context = 2, .data = 3, .shards_optimizer = true},
                             .layers = 1,
                             .tied_embeddings = true},
                            0, 0);
  EXPECT_EQ(placement.shards(), 6);
  for (const Bucket& bucket : placement.buckets()) {
    for (const Slab& slab : bucket.slabs) EXPECT_EQ(slab.rows % 6, 0);
  }
}

// bf16 weights, fp32 gradients; remainders of masters and two moments where they are updated.
TEST(PlacementBytes, FollowTheFormula) {
  const Transformer model{.layers = 4,
                          .hidden = 1024,
                          .ffn = 4096,
                          .heads = 16,
                          .kv_heads = 16,
                          .head_dim = 64,
                          .vocabulary = 8192,
                          .has_tied_embeddings = false};
  const ParameterTable table = table_of(model);
  const auto parameters = static_cast<double>(table.elements());
  for (const int64_t shards : {1, 4, 6}) {
    for (const bool shards_weights : {false, true}) {
      const Placement placement({.table = table,
                                 .layout = {.data = shards, .shards_optimizer = true, .shards_weights = shards_weights},
                                 .layers = model.layers},
                                0, 0);
      const PlacementBytes bytes = bytes_of(placement, DType::bf16, shards - 1);
      const auto updated = static_cast<double>(shards);
      const bool has_shards = shards_weights && shards > 1;  // beside the chunk in use
      EXPECT_NEAR(static_cast<double>(bytes.weights) / parameters, 2 + (has_shards ? 2 / updated : 0), 0.01);
      EXPECT_NEAR(static_cast<double>(bytes.gradients) / parameters, 4 + (has_shards ? 4 / updated : 0), 0.01);
      EXPECT_NEAR(static_cast<double>(bytes.remainders + bytes.moments) / parameters, 10 / updated, 0.01);
    }
  }
}

}  // namespace
}  // namespace megalith::parallel::testing
