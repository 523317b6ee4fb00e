#include "parallel/placement/parameter_store.h"

#include <gtest/gtest.h>

#include "parallel/layout_rank.h"

namespace megalith::parallel::testing {
namespace {

constexpr uint64_t kSeed = 42;

double initial_value(const ParameterSpec& spec, int64_t element) {
  if (spec.initial == Initial::zeros) return 0.0;
  if (spec.initial == Initial::ones) return 1.0;
  return spec.std * normal_at(named_key(kSeed, spec.name), static_cast<uint64_t>(element));
}

// Every rank of the layout, one after the other: initialisation needs no other rank.
void expect_initialised_alike(const Setting& setting) {
  SCOPED_TRACE(to_string(setting.layout));
  const ParameterTable table = table_of(setting.model);
  const PlacementRequest request{.table = table,
                                 .layout = setting.layout,
                                 .layers = setting.model.layers,
                                 .tied_embeddings = setting.model.has_tied_embeddings,
                                 .bucket_elements = setting.bucket_elements};
  ThreadPool pool(1);
  Stream stream(pool);
  for (int rank = 0; rank < setting.layout.world(); ++rank) {
    const Mesh mesh(setting.layout);
    const Coordinates place = mesh.coordinates_of(rank);
    const Placement placement(request, place.pp, place.tp);
    const int64_t replica = mesh.replica_of(rank);
    const PlacementBytes bytes = bytes_of(placement, setting.compute, replica);
    Arena weights("weights", Device::cpu, bytes.weights);
    const ParameterStore store({.placement = placement, .compute = setting.compute, .replica = replica}, weights,
                               nullptr);
    EXPECT_EQ(weights.used(), bytes.weights);
    store.initialise(stream, kSeed);
    for (const Parameter& parameter : store.all()) {
      ASSERT_TRUE(parameter.weight.contiguous());
      ASSERT_EQ(parameter.weight.shape, parameter.placed->shape);
      for_each_element(*parameter.placed, [&](const Piece&, int64_t local, int64_t whole) {
        ASSERT_EQ(value_at(parameter.weight, local), static_cast<float>(initial_value(*parameter.spec, whole)))
            << parameter.spec->name << " element " << whole;
      });
    }
    for (size_t b = 0; b < placement.buckets().size(); ++b) {
      for (size_t s = 0; s < placement.buckets()[b].slabs.size(); ++s) {
        for_each_padding(placement, placement.buckets()[b].slabs[s],
                         [&](int64_t element) { ASSERT_EQ(value_at(store.slab(b, s).weights, element), 0.0); });
      }
    }
  }
}

TEST(ParameterStore, EveryLayoutBeginsWithTheSameWeights) {
  const Transformer gpt{.layers = 4, .hidden = 24, .positions = 10};
  const Transformer llama{
      .layers = 4, .hidden = 24, .kv_heads = 2, .is_gated = true, .has_bias = false, .has_tied_embeddings = false};
  for (const Transformer& model : {gpt, llama}) {
    for (const int64_t tensor : {1, 2, 4}) {
      expect_initialised_alike({.model = model, .layout = {.tensor = tensor}});
      expect_initialised_alike(
          {.model = model,
           .layout = {.tensor = tensor, .pipeline = 2, .chunks = 2, .data = 3, .shards_optimizer = true}});
    }
    expect_initialised_alike({.model = model, .layout = {.pipeline = 4, .context = 2, .sequence_parallel = true}});
  }
}

TEST(ParameterStore, FindsWhatTheRankHolds) {
  const ParameterTable table = table_of({.layers = 2});
  const Placement placement({.table = table, .layout = {.pipeline = 2}, .layers = 2, .tied_embeddings = true}, 1, 0);
  Arena weights("weights", Device::cpu, bytes_of(placement, DType::f32, 0).weights);
  const ParameterStore store({.placement = placement}, weights, nullptr);
  EXPECT_TRUE(store.contains("layers.1.attention.qkv.weight"));
  EXPECT_TRUE(store.contains("embedding.tokens.weight"));
  EXPECT_FALSE(store.contains("layers.0.attention.qkv.weight"));
  EXPECT_EQ(store["layers.1.mlp.down.bias"].spec->name, "layers.1.mlp.down.bias");
  EXPECT_THROW(store["layers.0.mlp.down.bias"], Error);
}

// What is summed from zero is cleared and nothing else: a tied embedding on the first of two stages as well.
TEST(ParameterStore, ClearsTheGradientsThatNoProductWrites) {
  const ParameterTable table = table_of({.layers = 4});
  for (const int64_t stage : {0, 1}) {
    const Placement placement(
        {.table = table, .layout = {.pipeline = 2, .chunks = 2}, .layers = 4, .tied_embeddings = true}, stage, 0);
    const PlacementBytes bytes = bytes_of(placement, DType::f32, 0);
    Arena weights("weights", Device::cpu, bytes.weights);
    Arena gradients("gradients", Device::cpu, bytes.gradients);
    const ParameterStore store({.placement = placement}, weights, &gradients);
    EXPECT_EQ(gradients.used(), bytes.gradients);
    ThreadPool pool(1);
    Stream stream(pool);
    for (const int64_t chunk : {0, 1}) {
      for (const Parameter& parameter : store.all())
        std::fill_n(parameter.gradient.as<float>(), parameter.gradient.elements(), 1.0F);
      store.zero_summed_gradients(stream, chunk);
      for (const Parameter& parameter : store.all()) {
        const bool is_tied_input = parameter.spec->name == "embedding.tokens.weight" && stage == 0;
        const bool by_product = parameter.spec->gradient_by_product && !is_tied_input;
        EXPECT_EQ(parameter.placed->gradient_by_product, by_product) << parameter.spec->name;
        const float expected = by_product || parameter.placed->chunk != chunk ? 1.0F : 0.0F;
        for (int64_t i = 0; i < parameter.gradient.elements(); ++i)
          ASSERT_EQ(parameter.gradient.as<float>()[i], expected) << parameter.spec->name;
      }
    }
  }
}

}  // namespace
}  // namespace megalith::parallel::testing
