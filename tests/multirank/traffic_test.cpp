#include <gtest/gtest.h>

#include <map>

#include "layout_run.h"

// What ranks put into their calls in one step, against what follows from the sizes of the model: t tokens of a micro
// batch on a rank, width h, V rows of vocabulary, T tensor-parallel ranks, e bytes an activation or weight, 4 a
// gradient.

namespace megalith::train::testing {
namespace {

using comm::Operation;
using parallel::Layout;

// By group and call: bytes that one rank puts in.
using Volumes = std::map<std::pair<std::string, Operation>, int64_t>;

// Widths are multiples of 128 also when two ranks divide them, so that no slab has padding.
model::ModelConfig gpt() {
  return {.layers = 4,
          .hidden = 256,
          .ffn = 512,
          .heads = 4,
          .kv_heads = 4,
          .head_dim = 64,
          .vocabulary = 500,
          .padded_vocabulary = 512,
          .max_positions = 128,
          .hidden_dropout = 0.1};
}

// Two tensor-parallel ranks share its one key and value head.
model::ModelConfig llama() {
  return {.layers = 4,
          .hidden = 256,
          .ffn = 512,
          .heads = 4,
          .kv_heads = 1,
          .head_dim = 128,
          .vocabulary = 500,
          .padded_vocabulary = 512,
          .max_positions = 128,
          .learned_positions = false,
          .norm = ops::NormKind::rms_norm,
          .swiglu = true,
          .bias = false,
          .tied_embeddings = false};
}

constexpr int64_t kGradient = 4;
constexpr int64_t kStatistic = 4;
constexpr int64_t kSum = 8;
// Over all ranks: norm, loss, weight of evaluation, requests to stop and to save, saturated fp8 operands.
constexpr int64_t kSummed = 6;
constexpr int64_t kCompared = 2;  // the slowest and the fastest rank

// The sizes of one rank's part.
class Sizes {
 public:
  Sizes(const LayoutCase& test, const parallel::Coordinates& place)
      : test_(test), model_(test.config), layout_(test.layout), place_(place) {}

  bool is_first() const { return place_.pp == 0; }
  bool is_last() const { return place_.pp == layout_.pipeline - 1; }
  int64_t ends() const { return (is_first() ? 1 : 0) + (is_last() ? 1 : 0); }
  int64_t layers() const { return model_.layers / layout_.pipeline; }
  // Layers that go forward twice: on a single stage backward finds the last one as forward has left it.
  int64_t remade_layers() const { return model_.recompute == model::Recompute::full ? layers() - 1 : 0; }
  int64_t micro_batches() const { return test_.global_batch / (test_.micro_batch * layout_.data); }
  int64_t tokens() const { return test_.micro_batch * test_.length / layout_.context; }
  int64_t rows() const { return layout_.sequence_parallel ? tokens() / layout_.tensor : tokens(); }
  int64_t element() const { return model_.compute == DType::bf16 ? 2 : 4; }
  // Of what travels between ranks that hold the same weights.
  int64_t gradient() const { return test_.reduces_in_bf16 ? 2 : kGradient; }
  // (t, h) and (t / T, h), in bytes.
  int64_t all_rows() const { return tokens() * model_.hidden * element(); }
  int64_t own_rows() const { return rows() * model_.hidden * element(); }

  bool shares_kv_heads() const { return layout_.tensor > model_.kv_heads; }
  int64_t kv_width() const { return std::max<int64_t>(1, model_.kv_heads / layout_.tensor) * model_.head_dim; }

  int64_t vocabulary_matrix() const { return model_.padded_vocabulary / layout_.tensor * model_.hidden; }
  // Whole on every tensor-parallel rank.
  int64_t undivided_per_layer() const { return 2 * norm() + (model_.bias ? 2 * model_.hidden : 0); }
  int64_t divided_per_layer() const {
    const int64_t q = model_.heads / layout_.tensor * model_.head_dim;
    const int64_t qkv = q + 2 * kv_width();
    const int64_t ffn = model_.ffn / layout_.tensor;
    const int64_t up = model_.swiglu ? 2 * ffn : ffn;
    return model_.hidden * (qkv + q + up + ffn) + (model_.bias ? qkv + up : 0);
  }
  int64_t undivided() const {
    const int64_t positions = model_.learned_positions ? model_.max_positions * model_.hidden : 0;
    return layers() * undivided_per_layer() + (is_first() ? positions : 0) + (is_last() ? norm() : 0);
  }
  int64_t parameters() const {
    const int64_t matrices = model_.tied_embeddings && layout_.pipeline == 1 ? 1 : ends();
    return layers() * divided_per_layer() + undivided() + matrices * vocabulary_matrix();
  }
  int64_t shared_kv_parameters() const { return layers() * 2 * kv_width() * (model_.hidden + (model_.bias ? 1 : 0)); }

 private:
  int64_t norm() const { return model_.has_norm_bias() ? 2 * model_.hidden : model_.hidden; }

  const LayoutCase& test_;
  const model::ModelConfig& model_;
  const Layout& layout_;
  parallel::Coordinates place_;
};

// Megatron's count: two sums a layer and direction, the embedding's, that of the gradient of what the head reads. Under
// sequence parallelism each sum becomes a reduce-scatter, and the way into a product an all-gather: once forward, and
// twice backward because what was gathered is not kept. The softmax's statistics (largest, sum, target) are gathered.
void add_tensor_parallel(Volumes& volumes, const LayoutCase& test, const Sizes& sizes) {
  const int64_t micro_batches = sizes.micro_batches();
  const int64_t sums =
      micro_batches * (4 * sizes.layers() + 2 * sizes.remade_layers() + sizes.ends()) * sizes.all_rows();
  int64_t& gathered = volumes[{"tensor", Operation::all_gather}];
  if (sizes.is_last()) gathered += micro_batches * 3 * sizes.tokens() * kStatistic;
  const int64_t reductions = test.layout.shards_weights ? micro_batches : 1;
  if (test.layout.sequence_parallel) {
    volumes[{"tensor", Operation::reduce_scatter}] += sums;
    gathered += micro_batches * (6 * sizes.layers() + 2 * sizes.remade_layers() + sizes.ends()) * sizes.own_rows();
    volumes[{"tensor", Operation::all_reduce}] += reductions * sizes.undivided() * kGradient;
  } else {
    volumes[{"tensor", Operation::all_reduce}] += sums;
  }
  if (sizes.shares_kv_heads())
    volumes[{"kv_heads", Operation::all_reduce}] += reductions * sizes.shared_kv_parameters() * kGradient;
}

// Activations go over every boundary but the one behind the last chunk, gradients but the one before the first.
void add_pipeline(Volumes& volumes, const LayoutCase& test, const Sizes& sizes) {
  const int64_t boundaries = 2 * test.layout.chunks - sizes.ends();
  volumes[{"pipeline", Operation::exchange}] += sizes.micro_batches() * boundaries * sizes.own_rows();
  if (!test.config.tied_embeddings || sizes.ends() == 0) return;
  volumes[{"embedding", Operation::all_reduce}] +=
      sizes.vocabulary_matrix() / test.layout.optimizer_shards() * kGradient;
}

// A chunk that is used twice in a row, or next but one, need not be gathered again: each micro batch brings all but the
// two that the one before has left, forward and backward.
int64_t gathered_parameters(const LayoutCase& test, const Sizes& sizes) {
  if (!test.layout.shards_weights) return sizes.parameters();
  const int64_t layer = sizes.divided_per_layer() + sizes.undivided_per_layer();
  const int64_t beside_layers = sizes.parameters() - sizes.layers() * layer;
  const int64_t with_embedding = layer + sizes.vocabulary_matrix();
  const int64_t with_head = layer + beside_layers - sizes.vocabulary_matrix();
  const int64_t micro_batches = sizes.micro_batches();
  const int64_t between = test.layout.chunks - 4;
  return (1 + micro_batches) * (with_embedding + layer) + 2 * micro_batches * between * layer +
         micro_batches * (layer + with_head);
}

// The weight of all targets; gradients; weights from those that have updated them.
void add_replicas(Volumes& volumes, const LayoutCase& test, const Sizes& sizes) {
  const Layout& layout = test.layout;
  volumes[{"replicas", Operation::all_reduce}] += kSum;
  if (layout.optimizer_shards() == 1) {
    volumes[{"replicas", Operation::all_reduce}] += sizes.parameters() * sizes.gradient();
    return;
  }
  const int64_t reductions = layout.shards_weights ? sizes.micro_batches() : 1;
  volumes[{"replicas", Operation::reduce_scatter}] += reductions * sizes.parameters() * sizes.gradient();
  volumes[{"replicas", Operation::all_gather}] +=
      gathered_parameters(test, sizes) / layout.replicas() * sizes.element();
}

// Keys and values of the own tokens forward and again backward; gradients of those of all tokens.
void add_context_parallel(Volumes& volumes, const LayoutCase& test, const Sizes& sizes) {
  const int64_t own = sizes.micro_batches() * sizes.tokens() * 2 * sizes.kv_width() * sizes.element();
  volumes[{"context", Operation::all_gather}] += (2 * sizes.layers() + sizes.remade_layers()) * own;
  volumes[{"context", Operation::reduce_scatter}] += test.layout.context * sizes.layers() * own;
}

Volumes expected_volumes(const LayoutCase& test, const parallel::Coordinates& place) {
  const Sizes sizes(test, place);
  Volumes volumes;
  if (test.layout.tensor > 1) add_tensor_parallel(volumes, test, sizes);
  if (test.layout.pipeline > 1) add_pipeline(volumes, test, sizes);
  if (test.layout.replicas() > 1) add_replicas(volumes, test, sizes);
  if (test.layout.context > 1) add_context_parallel(volumes, test, sizes);
  // Squares of the gradients, loss, wish to stop.
  if (test.layout.world() > 1) volumes[{"world", Operation::all_reduce}] += (kSummed + kCompared) * kSum;
  std::erase_if(volumes, [](const auto& entry) { return entry.second == 0; });
  return volumes;
}

Volumes counted_volumes(const parallel::Groups& groups) {
  Volumes volumes;
  for (const comm::Communicator* group :
       {groups.world.get(), groups.tensor.get(), groups.context.get(), groups.replicas.get(), groups.pipeline.get(),
        groups.embedding.get(), groups.kv_heads.get()}) {
    for (int i = 0; i < comm::kOperations; ++i) {
      const auto operation = static_cast<Operation>(i);
      if (group->traffic(operation).calls > 0) volumes[{group->name(), operation}] = group->traffic(operation).bytes;
    }
  }
  return volumes;
}

std::string describe(const Volumes& volumes) {
  std::string text;
  for (const auto& [key, bytes] : volumes) text += fmt::format("{} {} {}\n", key.first, name_of(key.second), bytes);
  return text;
}

struct RankVolumes {
  parallel::Coordinates place;
  Volumes counted;
};

// Of one step, on every rank.
std::vector<RankVolumes> volumes_of_step(const LayoutCase& test) {
  std::vector<RankVolumes> ranks(static_cast<size_t>(test.layout.world()));
  comm::run_local_ranks(static_cast<int>(test.layout.world()), [&](comm::World& world) {
    engine::Engine engine = make_engine(engine_options(test), world);
    engine.initialise(5);
    EXPECT_EQ(describe(counted_volumes(engine.groups())), "") << "before the step";
    const data::StepBatch batch = batch_of(test, 0, engine.place().dp);
    engine.run_step({.weight = batch.total_weight, .learning_rate = 0.01}, batch.micro_batches);
    engine.result_of_step(0);
    ranks[static_cast<size_t>(world.rank())] = {engine.place(), counted_volumes(engine.groups())};
  });
  return ranks;
}

void expect_volumes_of_formulas(LayoutCase test) {
  test.global_batch = 4;
  test.bucket_elements = 200000;
  SCOPED_TRACE(to_string(test.layout));
  for (const RankVolumes& rank : volumes_of_step(test)) {
    EXPECT_EQ(describe(rank.counted), describe(expected_volumes(test, rank.place)))
        << "tensor " << rank.place.tp << ", stage " << rank.place.pp;
  }
}

void expect_volumes_of_formulas(const std::vector<Layout>& layouts) {
  for (const Layout& layout : layouts) {
    expect_volumes_of_formulas({.config = gpt(), .layout = layout});
    expect_volumes_of_formulas({.config = llama(), .layout = layout});
  }
}

TEST(Traffic, OfTensorParallelRanks) {
  expect_volumes_of_formulas({{.tensor = 2}, {.tensor = 2, .sequence_parallel = true}});
}

TEST(Traffic, OfPipelineStages) {
  expect_volumes_of_formulas({{.pipeline = 2},
                              {.pipeline = 4},
                              {.pipeline = 2, .chunks = 2},
                              {.pipeline = 4, .schedule = parallel::PipelineSchedule::zero_bubble},
                              {.tensor = 2, .pipeline = 2, .sequence_parallel = true}});
}

TEST(Traffic, OfDataParallelRanks) {
  expect_volumes_of_formulas(
      {{.data = 2}, {.data = 2, .shards_optimizer = true}, {.data = 4, .shards_optimizer = true}});
}

TEST(Traffic, OfShardedWeights) {
  for (const int64_t layers : {4, 6}) {
    LayoutCase test{.config = llama()};
    test.config.layers = layers;
    test.layout = {.chunks = layers, .data = 2, .shards_optimizer = true, .shards_weights = true};
    expect_volumes_of_formulas(test);
  }
}

TEST(Traffic, OfContextParallelRanks) {
  expect_volumes_of_formulas({{.context = 2},
                              {.context = 2, .data = 2, .shards_optimizer = true},
                              {.tensor = 2, .context = 2, .sequence_parallel = true}});
}

TEST(Traffic, OfAllAtOnce) {
  expect_volumes_of_formulas({{.tensor = 2,
                               .pipeline = 2,
                               .chunks = 2,
                               .context = 2,
                               .data = 2,
                               .sequence_parallel = true,
                               .shards_optimizer = true}});
}

TEST(Traffic, OfLayersThatAreMadeAgain) {
  for (const Layout& layout :
       {Layout{.tensor = 2}, Layout{.tensor = 2, .sequence_parallel = true}, Layout{.context = 2}}) {
    for (const model::Recompute recompute : {model::Recompute::selective, model::Recompute::full}) {
      LayoutCase test{.config = gpt(), .layout = layout};
      test.config.recompute = recompute;
      expect_volumes_of_formulas(test);
    }
  }
}

// Weights and activations take half the bytes, gradients between replicas where that is asked for.
TEST(Traffic, InBf16) {
  for (const bool reduces_in_bf16 : {false, true}) {
    for (const Layout& layout :
         {Layout{.tensor = 2, .data = 2, .sequence_parallel = true}, Layout{.data = 2, .shards_optimizer = true},
          Layout{.pipeline = 2, .context = 2, .shards_optimizer = true}}) {
      LayoutCase test{.config = gpt(), .layout = layout, .reduces_in_bf16 = reduces_in_bf16};
      test.config.compute = DType::bf16;
      expect_volumes_of_formulas(test);
    }
  }
}

// A sum is a reduce-scatter and an all-gather: to divide tokens or the optimizer's state adds nothing to what links
// carry, but for what sequence parallelism gathers again in backward.
TEST(Traffic, OnTheWireSharingCostsNothing) {
  const auto wire = [](const Layout& layout, const std::string& group) {
    double sum = 0.0;
    const LayoutCase test{.config = gpt(), .layout = layout};
    for (const auto& [key, bytes] : expected_volumes(test, {}))
      if (key.first == group) sum += comm::wire_bytes(key.second, bytes, 2);
    return sum;
  };
  EXPECT_EQ(wire({.data = 2}, "replicas"), wire({.data = 2, .shards_optimizer = true}, "replicas"));
  const LayoutCase test{.config = gpt(), .layout = {.tensor = 2, .sequence_parallel = true}};
  const Sizes sizes(test, {});
  const int64_t again = sizes.micro_batches() * 2 * sizes.layers() * sizes.own_rows();
  const int64_t undivided_gradients = sizes.undivided() * kGradient;
  EXPECT_EQ(wire(test.layout, "tensor"), wire({.tensor = 2}, "tensor") +
                                             comm::wire_bytes(Operation::all_gather, again, 2) +
                                             comm::wire_bytes(Operation::all_reduce, undivided_gradients, 2));
}

TEST(Traffic, OfGroupsOfOneThereIsNone) {
  for (const RankVolumes& rank : volumes_of_step({.config = gpt()})) EXPECT_EQ(describe(rank.counted), "");
  comm::run_local_ranks(2, [](comm::World& world) {
    const parallel::Groups groups =
        parallel::make_groups(world, {.layout = {.data = 2}, .kv_heads = 1, .tied_embeddings = true});
    EXPECT_EQ(groups.replicas->size(), 2);
    for (const comm::Communicator* other : {groups.tensor.get(), groups.context.get(), groups.pipeline.get(),
                                            groups.embedding.get(), groups.kv_heads.get()}) {
      EXPECT_TRUE(other->is_alone()) << other->name();
    }
  });
}

// What is divided among one is passed on where it lies.
TEST(Traffic, OfGroupsOfOneNothingIsCopied) {
  ThreadPool pool(1);
  Stream stream(pool, Device::cpu);
  Arena arena("activations", Device::cpu, 1 << 12);
  const Tensor rows = arena.allocate("rows", DType::f32, {4, 8});
  const int64_t used = arena.used();
  for (const bool sequence_parallel : {false, true}) {
    const parallel::TensorRegion alone{.sequence_parallel = sequence_parallel};
    EXPECT_EQ(alone.gather(stream, arena, rows).data, rows.data);
    EXPECT_EQ(alone.reduce(stream, rows).data, rows.data);
    EXPECT_EQ(alone.rows_of(4), 4);
  }
  EXPECT_EQ(arena.used(), used);
}

}  // namespace
}  // namespace megalith::train::testing
