#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "core/arena.h"
#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/gemm.h"
#include "ops/norm.h"
#include "ops/optimizer.h"

// The CPU operations at the shapes of GPT-3 125M and of the demo, on all cores. GFLOP/s of Gemm/2048x2048x2048 is what
// to compare the others with; attention counts the FLOPs of the causal half only.

namespace megalith::ops {
namespace {

class Machine {
 public:
  Machine() : pool_(available_cores()), stream_(pool_), arena_("bench", Device::cpu, int64_t{4} << 30) {}

  Stream& stream() { return stream_; }
  ThreadPool& pool() { return pool_; }
  Tensor zeros(DType dtype, int64_t rows, int64_t cols) {
    const Tensor x = arena_.allocate("bench", dtype, Shape{rows, cols});
    std::memset(x.data, 0, static_cast<size_t>(x.bytes()));
    return x;
  }
  Tensor normal(DType dtype, int64_t rows, int64_t cols) {
    const Tensor x = zeros(dtype, rows, cols);
    normal_init(stream_, {.x = x, .key = 1, .global_cols = cols});
    return x;
  }
  int64_t mark() const { return arena_.used(); }
  void release_to(int64_t mark) { arena_.release_to(mark); }

 private:
  ThreadPool pool_;
  Stream stream_;
  Arena arena_;
};

Machine& machine() {
  static Machine instance;
  return instance;
}

void report(benchmark::State& state, const char* unit, double per_iteration) {
  state.counters[unit] = benchmark::Counter(per_iteration / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}

void gemm_bench(benchmark::State& state, DType dtype, int64_t m, int64_t n, int64_t k, bool transpose_a,
                bool transpose_b, float beta) {
  Machine& on = machine();
  const int64_t mark = on.mark();
  const Tensor a = transpose_a ? on.normal(dtype, k, m) : on.normal(dtype, m, k);
  const Tensor b = transpose_b ? on.normal(dtype, n, k) : on.normal(dtype, k, n);
  const Tensor c = on.zeros(beta == 1.0F ? main_dtype(dtype) : dtype, m, n);
  for (auto _ : state) {
    gemm(on.stream(), {.a = a, .transpose_a = transpose_a, .b = b, .transpose_b = transpose_b, .c = c, .beta = beta});
  }
  report(state, "GFLOP/s", 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  on.release_to(mark);
}

constexpr uint64_t kStep = 1;

void attention_bench(benchmark::State& state, DType dtype, bool backward, double dropout, int64_t length, int64_t heads,
                     int64_t dim) {
  Machine& on = machine();
  const int64_t mark = on.mark();
  const int64_t width = heads * dim;
  const Tensor qkv = on.normal(dtype, length, 3 * width);
  const Tensor dqkv = on.zeros(dtype, length, 3 * width);
  const Tensor out = on.zeros(dtype, length, width);
  const Tensor dout = on.normal(dtype, length, width);
  const Tensor log_sum_exp = on.zeros(main_dtype(dtype), heads, length);
  const AttentionShape shape{.dtype = dtype,
                             .batch = 1,
                             .heads = heads,
                             .kv_heads = heads,
                             .query_length = length,
                             .key_length = length,
                             .head_dim = dim};
  const Tensor scratch = on.zeros(main_dtype(dtype), 1, attention_scratch(Device::cpu, shape, on.pool().threads()));
  const Tensor ids = on.zeros(DType::i64, 1, 1);
  const Dropout drop{.probability = dropout, .step = &kStep, .sample_ids = ids, .length = length};
  const AttentionForward forward{.q = qkv.slice_cols(0, width),
                                 .k = qkv.slice_cols(width, 2 * width),
                                 .v = qkv.slice_cols(2 * width, 3 * width),
                                 .out = out,
                                 .log_sum_exp = log_sum_exp,
                                 .batch = 1,
                                 .heads = heads,
                                 .kv_heads = heads,
                                 .scale = 0.125,
                                 .dropout = drop,
                                 .scratch = scratch};
  attention_forward(on.stream(), forward);
  for (auto _ : state) {
    if (!backward) {
      attention_forward(on.stream(), forward);
    } else {
      attention_backward(on.stream(), {.forward = forward,
                                       .dout = dout,
                                       .dq = dqkv.slice_cols(0, width),
                                       .dk = dqkv.slice_cols(width, 2 * width),
                                       .dv = dqkv.slice_cols(2 * width, 3 * width)});
    }
  }
  const double scores = static_cast<double>(heads) * static_cast<double>(length) * static_cast<double>(length) / 2.0;
  report(state, "GFLOP/s", (backward ? 5.0 : 2.0) * 2.0 * scores * static_cast<double>(dim));
  on.release_to(mark);
}

// Runs `body` on tensors of a (rows, cols) activation; `passes` counts how often it reads or writes one of them.
template <class Body>
void memory_bench(benchmark::State& state, DType dtype, int64_t rows, int64_t cols, double passes, const Body& body) {
  Machine& on = machine();
  const int64_t mark = on.mark();
  body(on, state);
  report(state, "GB/s", passes * static_cast<double>(rows * cols * size_of(dtype)));
  on.release_to(mark);
}

constexpr int64_t kTokens = 2048;
constexpr int64_t kWidth = 768;

void norm_bench(benchmark::State& state, DType dtype, bool backward) {
  memory_bench(state, dtype, kTokens, kWidth, backward ? 4.0 : 2.0, [&](Machine& on, benchmark::State& timed) {
    const DType main = main_dtype(dtype);
    const Tensor x = on.normal(dtype, kTokens, kWidth), dy = on.normal(dtype, kTokens, kWidth);
    const Tensor y = on.zeros(dtype, kTokens, kWidth), residual = on.normal(dtype, kTokens, kWidth);
    const Tensor weight = on.normal(dtype, 1, kWidth), bias = on.normal(dtype, 1, kWidth);
    const Tensor dweight = on.zeros(main, 1, kWidth), dbias = on.zeros(main, 1, kWidth);
    const Tensor mean = on.zeros(main, 1, kTokens), rstd = on.zeros(main, 1, kTokens);
    const Tensor scratch = on.zeros(main, 1, norm_backward_scratch(kTokens, kWidth));
    norm_forward(on.stream(), {.x = x, .weight = weight, .bias = bias, .y = y, .mean = mean, .rstd = rstd});
    for (auto _ : timed) {
      if (!backward) {
        norm_forward(on.stream(), {.x = x, .weight = weight, .bias = bias, .y = y, .mean = mean, .rstd = rstd});
      } else {
        norm_backward(on.stream(), {.dy = dy,
                                    .x = x,
                                    .weight = weight,
                                    .mean = mean,
                                    .rstd = rstd,
                                    .residual_gradient = residual,
                                    .dx = y,
                                    .dweight = dweight,
                                    .dbias = dbias,
                                    .scratch = scratch});
      }
    }
  });
}

void gelu_bench(benchmark::State& state, DType dtype, bool backward) {
  memory_bench(state, dtype, kTokens, 4 * kWidth, backward ? 3.0 : 2.0, [&](Machine& on, benchmark::State& timed) {
    const Tensor x = on.normal(dtype, kTokens, 4 * kWidth), dy = on.normal(dtype, kTokens, 4 * kWidth);
    const Tensor y = on.zeros(dtype, kTokens, 4 * kWidth);
    for (auto _ : timed) {
      if (backward) {
        gelu_backward(on.stream(), {.dy = dy, .x = x, .dx = dy});
      } else {
        gelu_forward(on.stream(), {.x = x, .y = y});
      }
    }
  });
}

void dropout_bench(benchmark::State& state, DType dtype) {
  memory_bench(state, dtype, kTokens, kWidth, 3.0, [&](Machine& on, benchmark::State& timed) {
    const Tensor x = on.normal(dtype, kTokens, kWidth), residual = on.normal(dtype, kTokens, kWidth);
    const Tensor ids = on.zeros(DType::i64, 1, 1);
    for (auto _ : timed) {
      dropout_add(on.stream(), {.x = x,
                                .residual = residual,
                                .y = residual,
                                .dropout = {.probability = 0.1, .step = &kStep, .sample_ids = ids, .length = kTokens}});
    }
  });
}

void embedding_backward_bench(benchmark::State& state, DType dtype) {
  memory_bench(state, dtype, kTokens, kWidth, 3.0, [&](Machine& on, benchmark::State& timed) {
    constexpr int64_t kVocabulary = 50304;
    const Tensor dout = on.normal(dtype, kTokens, kWidth), ids = on.zeros(DType::i32, 1, kTokens);
    for (int64_t i = 0; i < kTokens; ++i) {
      ids.as<int32_t>()[i] = static_cast<int32_t>(philox(1, {static_cast<uint32_t>(i), 0, 0, 0})[0] % kVocabulary);
    }
    const Tensor tokens = on.zeros(main_dtype(dtype), kVocabulary, kWidth);
    const Tensor positions = on.zeros(main_dtype(dtype), kTokens, kWidth);
    for (auto _ : timed) {
      embedding_backward(
          on.stream(),
          {.dout = dout, .ids = ids, .tokens_gradient = tokens, .positions_gradient = positions, .length = kTokens});
    }
  });
}

void cross_entropy_bench(benchmark::State& state, DType dtype) {
  constexpr int64_t kVocabulary = 50304, kRows = 256;
  memory_bench(state, dtype, kRows, kVocabulary, 2.0, [&](Machine& on, benchmark::State& timed) {
    const Tensor logits = on.normal(dtype, kRows, kVocabulary), targets = on.zeros(DType::i32, 1, kRows);
    const Tensor weights = on.zeros(main_dtype(dtype), 1, kRows), losses = on.zeros(main_dtype(dtype), 1, kRows);
    fill(on.stream(), {.x = weights, .value = 1.0});
    for (auto _ : timed) {
      cross_entropy(
          on.stream(),
          {.logits = logits, .targets = targets, .weights = weights, .losses = losses, .vocabulary = kVocabulary - 47});
    }
  });
}

constexpr int64_t kParameters = 1 << 24;

// The optimizer's state of kParameters weights, cut into tiles.
struct Update {
  Tensor weights, gradient;
  std::vector<UpdateTile> tiles;

  Update(Machine& on, DType dtype)
      : weights(on.zeros(dtype, 1, kParameters)), gradient(on.normal(main_dtype(dtype), 1, kParameters)) {
    const DType main = main_dtype(dtype);
    tiles = make_update_tiles(
        std::vector<UpdateTensors>{{.weights = weights,
                                    .remainder = dtype == DType::bf16 ? on.zeros(DType::i16, 1, kParameters) : Tensor(),
                                    .gradient = gradient,
                                    .exp_avg = on.zeros(main, 1, kParameters),
                                    .exp_avg_sq = on.zeros(main, 1, kParameters)}});
  }
  UpdateTiles all() const {
    return {.tiles = tiles.data(), .count = std::ssize(tiles), .elements = kParameters, .weights = weights.dtype};
  }
};

void adamw_bench(benchmark::State& state, DType dtype) {
  memory_bench(state, main_dtype(dtype), 1, kParameters, 7.0, [&](Machine& on, benchmark::State& timed) {
    const Update update(on, dtype);
    const UpdateScalars scalars{.learning_rate = 1e-4F};
    for (auto _ : timed) adamw(on.stream(), {.tiles = update.all(), .scalars = &scalars});
  });
}

void gradient_norm_bench(benchmark::State& state, DType dtype) {
  memory_bench(state, main_dtype(dtype), 1, kParameters, 1.0, [&](Machine& on, benchmark::State& timed) {
    const Update update(on, dtype);
    const Tensor partials = on.zeros(DType::f64, 1, update.all().count);
    UpdateScalars scalars;
    for (auto _ : timed) {
      gradient_norm(on.stream(), {.tiles = update.all(), .partials = partials, .scalars = &scalars});
    }
  });
}

void bias_gradient_bench(benchmark::State& state, DType dtype) {
  memory_bench(state, dtype, kTokens, 4 * kWidth, 1.0, [&](Machine& on, benchmark::State& timed) {
    const Tensor dy = on.normal(dtype, kTokens, 4 * kWidth), dbias = on.zeros(main_dtype(dtype), 1, 4 * kWidth);
    const Tensor scratch = on.zeros(main_dtype(dtype), 1, column_sum_scratch(kTokens, 4 * kWidth));
    for (auto _ : timed) bias_gradient(on.stream(), {.dy = dy, .dbias = dbias, .scratch = scratch});
  });
}

void normal_init_bench(benchmark::State& state, DType dtype) {
  memory_bench(state, dtype, kTokens, kWidth, 1.0, [&](Machine& on, benchmark::State& timed) {
    const Tensor x = on.zeros(dtype, kTokens, kWidth);
    for (auto _ : timed) normal_init(on.stream(), {.x = x, .key = 1, .global_cols = kWidth});
  });
}

template <class... Args>
void add(const std::string& name, DType dtype, void (*body)(benchmark::State&, DType, Args...),
         std::type_identity_t<Args>... args) {
  benchmark::RegisterBenchmark(fmt::format("{}/{}", name, name_of(dtype)).c_str(),
                               [=](benchmark::State& state) { body(state, dtype, args...); })
      ->MeasureProcessCPUTime()
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

struct Product {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  float beta;
};
constexpr Product kProducts[] = {
    {2048, 2048, 2048, false, false, 0.0F}, {2048, 768, 768, false, true, 0.0F},
    {2048, 2304, 768, false, true, 0.0F},   {2048, 3072, 768, false, true, 0.0F},
    {2048, 768, 3072, false, true, 0.0F},   {2048, 768, 3072, false, false, 0.0F},
    {3072, 768, 2048, true, false, 1.0F},   {768, 768, 2048, true, false, 1.0F},
    {256, 50304, 768, false, true, 0.0F},   {256, 768, 50304, false, false, 0.0F},
    {50304, 768, 256, true, false, 1.0F},   {2048, 50304, 768, false, true, 0.0F},
    {2048, 768, 50304, false, false, 0.0F}, {50304, 768, 2048, true, false, 1.0F},
    {2048, 128, 128, false, true, 0.0F},    {2048, 512, 128, false, true, 0.0F},
    {512, 128, 2048, true, false, 1.0F},    {128, 128, 2048, true, false, 1.0F},
    {2048, 384, 384, false, true, 0.0F},    {1, 768, 768, false, true, 0.0F},
    {1, 50304, 768, false, true, 0.0F},
};

void add_all(DType dtype) {
  for (const Product& p : kProducts) {
    const std::string name =
        fmt::format("Gemm/{}x{}x{}{}{}", p.m, p.n, p.k, p.transpose_a ? "/ta" : "", p.transpose_b ? "/tb" : "");
    add(name, dtype, gemm_bench, p.m, p.n, p.k, p.transpose_a, p.transpose_b, p.beta);
  }
  for (const double dropout : {0.0, 0.1}) {
    for (const bool backward : {false, true}) {
      const char* direction = backward ? "Backward" : "Forward";
      add(fmt::format("Attention{}/T2048_12x64/p{}", direction, dropout), dtype, attention_bench, backward, dropout,
          2048, 12, 64);
      add(fmt::format("Attention{}/T4096_4x128/p{}", direction, dropout), dtype, attention_bench, backward, dropout,
          4096, 4, 128);
      add(fmt::format("Attention{}/T256_4x32/p{}", direction, dropout), dtype, attention_bench, backward, dropout, 256,
          4, 32);
    }
  }
  for (const bool backward : {false, true}) {
    add(backward ? "LayerNormBackward" : "LayerNormForward", dtype, norm_bench, backward);
    add(backward ? "GeluBackward" : "GeluForward", dtype, gelu_bench, backward);
  }
  add("DropoutAdd", dtype, dropout_bench);
  add("EmbeddingBackward", dtype, embedding_backward_bench);
  add("CrossEntropy", dtype, cross_entropy_bench);
  add("AdamW", dtype, adamw_bench);
  add("GradientNorm", dtype, gradient_norm_bench);
  add("BiasGradient", dtype, bias_gradient_bench);
  add("NormalInit", dtype, normal_init_bench);
}

}  // namespace
}  // namespace megalith::ops

int main(int argc, char** argv) {
  megalith::ops::add_all(megalith::DType::f32);
  megalith::ops::add_all(megalith::DType::bf16);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
