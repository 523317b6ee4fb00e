#include "plan/step_time/layer_time.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "plan/step_time/wire_time.h"

namespace megalith::plan {

PassTime& PassTime::operator+=(const PassTime& other) {
  compute += other.compute;
  recompute += other.recompute;
  tensor += other.tensor;
  context += other.context;
  host += other.host;
  return *this;
}

PassTime operator*(double times, PassTime pass) {
  return {.compute = times * pass.compute,
          .recompute = times * pass.recompute,
          .tensor = times * pass.tensor,
          .context = times * pass.context,
          .host = times * pass.host};
}

namespace {

constexpr double kTera = 1e12;
constexpr double kKernelStart = 3e-6;
// cuDNN's causal attention (FlashAttention-3 on Hopper): half of its rate is reached at these lengths.
constexpr double kHalfRateForward = 900;
constexpr double kHalfRateBackward = 1300;
constexpr double kBackwardOfForwardRate = 0.53 / 0.60;
// FlashAttention-2 beside them, on Hopper (figures of the FlashAttention-3 paper).
constexpr double kFlash2OnHopper = 0.62;
constexpr double kHeadsOf64 = 0.78;
constexpr double kDropoutInAttention = 0.75;

// Share of a GEMM's rate that is left by tiles that hang over its edges and by a last wave that is not full.
double tile_share(double m, double n, int64_t multiprocessors) {
  struct Tile {
    double rows, columns, rate;
  };
  constexpr std::array kTiles{Tile{128, 256, 1.0}, Tile{256, 128, 1.0}, Tile{128, 128, 0.93}, Tile{64, 128, 0.75}};
  double best = 0.0;
  for (const Tile& tile : kTiles) {
    const double rows = std::ceil(m / tile.rows);
    const double columns = std::ceil(n / tile.columns);
    double share = tile.rate * m * n / (rows * tile.rows * columns * tile.columns);
    if (multiprocessors > 0) {
      const double waves = rows * columns / static_cast<double>(multiprocessors);
      share *= 1.0 - 0.5 * (1.0 - waves / std::ceil(waves));
    }
    best = std::max(best, share);
  }
  return best;
}

// The times of the kernels of a rank.
class Kernels {
 public:
  Kernels(const RunFeatures& run, const Constants& constants) : run_(run), constants_(constants) {}

  double memory(double bytes) const {
    return bytes / (constants_.memory_share * run_.gpu.memory_tb_s * kTera) + kKernelStart;
  }

  double gemm_share() const {
    if (run_.gpu.assumed) return run_.gpu.assumed->gemm_share;
    return run_.gpu.gemm_factor *
           (run_.gpu.hopper_or_later ? constants_.hopper_gemm_share : constants_.ampere_gemm_share);
  }

  double gemm(double m, double n, double k, bool fp8) const {
    const double share = fp8 ? fp8_share() : gemm_share();
    const double peak = (fp8 ? *run_.gpu.fp8_tflops : run_.gpu.bf16_tflops) * kTera;
    const double operand_bytes = fp8 ? 1.0 : 2.0;
    const double bytes = operand_bytes * (m * k + k * n) + 2.0 * m * n;
    return 2.0 * m * n * k / (peak * share * tile_share(m, n, run_.gpu.multiprocessors)) +
           constants_.gemm_traffic * bytes / (run_.gpu.memory_tb_s * kTera) + kKernelStart;
  }

  // Forward, and the two GEMMs of backward.
  BothPasses linear(double rows, double out, double in, bool fp8) const {
    BothPasses time;
    time.forward.compute = gemm(rows, out, in, fp8);
    time.backward.compute = gemm(rows, in, out, fp8) + gemm(out, in, rows, fp8);
    return time;
  }

 private:
  double fp8_share() const {
    const double share = run_.gpu.assumed ? run_.gpu.assumed->fp8_gemm_share : constants_.fp8_gemm_share;
    return run_.gpu.gemm_factor * share;
  }

  const RunFeatures& run_;
  const Constants& constants_;
};

void add_compute(BothPasses& sum, const BothPasses& part) {
  sum.forward.compute += part.forward.compute;
  sum.backward.compute += part.backward.compute;
}

BothPasses flash_attention(const RunFeatures& run, const Constants& constants) {
  const auto length = static_cast<double>(run.model.length);
  const double local = length / static_cast<double>(run.context);
  const double width = static_cast<double>(run.model.query_width()) / static_cast<double>(run.tensor);
  const double flops = 2.0 * run.tokens() * length * width;  // the causal half of 4
  double peak = run.gpu.bf16_tflops * kTera * run.gpu.gemm_factor * constants.attention_share;
  if (run.attention == AttentionKernel::flash2 && run.gpu.hopper_or_later) peak *= kFlash2OnHopper;
  if (run.model.head_dim <= 64) peak *= kHeadsOf64;
  if (run.dropout) peak *= kDropoutInAttention;
  BothPasses time;
  time.forward.compute = flops / (peak * local / (local + kHalfRateForward));
  time.backward.compute = 2.5 * flops / (peak * kBackwardOfForwardRate * local / (local + kHalfRateBackward));
  return time;
}

BothPasses unfused_attention(const RunFeatures& run, const Constants& constants, const Kernels& kernels) {
  const auto length = static_cast<double>(run.model.length);
  const double heads = static_cast<double>(run.model.heads) / static_cast<double>(run.tensor);
  const double pairs = run.tokens() * length;
  // Tensor cores want rows of 16 bytes.
  const double aligned = run.model.head_dim % 8 == 0 ? 1.0 : 0.25;
  const double rate = run.gpu.bf16_tflops * kTera * kernels.gemm_share() * constants.unfused_share * aligned;
  const double products = 4.0 * pairs * heads * static_cast<double>(run.model.head_dim) / rate;
  const double score_bytes = pairs * heads * constants.softmax_traffic;
  BothPasses time;
  time.forward.compute = products + kernels.memory(score_bytes * (run.dropout ? 13 : 8));
  time.backward.compute = 2 * products + kernels.memory(score_bytes * (run.dropout ? 19 : 14));
  return time;
}

BothPasses attention_time(const RunFeatures& run, const Constants& constants, const Kernels& kernels) {
  return run.attention == AttentionKernel::unfused ? unfused_attention(run, constants, kernels)
                                                   : flash_attention(run, constants);
}

// Norms, residuals, activation functions, rotary positions, and fp8's casts.
BothPasses memory_bound_time(const RunFeatures& run, const Kernels& kernels) {
  const ModelShape& m = run.model;
  const auto t = static_cast<double>(run.tensor);
  const double tokens = run.tokens();
  const double rows = run.sequence_parallel ? tokens / t : tokens;
  const auto h = static_cast<double>(m.hidden);
  const auto q = static_cast<double>(m.query_width());
  const auto kv = static_cast<double>(m.kv_width());
  const auto f = static_cast<double>(m.ffn);
  const double positions = m.gated ? 4 * (q + kv) / t : 2 * (q + 2 * kv) / t;
  double forward = rows * h * (run.dropout ? 24 : 20) + tokens * f / t * (m.gated ? 6 : 4) + tokens * positions;
  double backward = rows * h * (run.dropout ? 28 : 24) + tokens * f / t * (m.gated ? 10 : 6) + tokens * positions;
  if (run.fp8) {
    forward += tokens * (4 * h + 4 * q / t + 4 * f / t);
    backward += 4 * tokens * ((q + 2 * kv) / t + 2 * h + (m.gated ? 2 : 1) * f / t);
  }
  BothPasses time;
  time.forward.compute = kernels.memory(forward);
  time.backward.compute = kernels.memory(backward);
  return time;
}

BothPasses linear_layers(const RunFeatures& run, const Kernels& kernels) {
  const ModelShape& m = run.model;
  const auto t = static_cast<double>(run.tensor);
  const double tokens = run.tokens();
  const auto h = static_cast<double>(m.hidden);
  const double q = static_cast<double>(m.query_width()) / t;
  const double kv = static_cast<double>(m.kv_width()) / t;
  const double f = static_cast<double>(m.ffn) / t;
  BothPasses time = kernels.linear(tokens, q + 2 * kv, h, run.fp8);
  add_compute(time, kernels.linear(tokens, h, q, run.fp8));
  add_compute(time, kernels.linear(tokens, (m.gated ? 2 : 1) * f, h, run.fp8));
  add_compute(time, kernels.linear(tokens, h, f, run.fp8));
  return time;
}

// Eager programs launch kernels one by one: where a GPU is faster, it waits.
void add_host(const RunFeatures& run, const Constants& constants, BothPasses& time) {
  if (run.launch == KernelLaunch::blocking) {
    time.forward.host += constants.blocking_layer_s / 3;
    time.backward.host += constants.blocking_layer_s * 2 / 3;
  }
  if (run.launch == KernelLaunch::eager && !run.gpu.compiled) {
    const double forward = constants.eager_layer_s;
    const double backward = forward * (2 + (run.recompute == Recomputed::full ? 1 : 0));
    time.forward.host += std::max(0.0, forward - time.forward.total());
    time.backward.host += std::max(0.0, backward - time.backward.total());
  }
}

}  // namespace

BothPasses layer_time(const RunFeatures& run, const Constants& constants) {
  const Kernels kernels(run, constants);
  const BothPasses attention = attention_time(run, constants, kernels);
  const BothPasses memory_bound = memory_bound_time(run, kernels);
  BothPasses time = linear_layers(run, kernels);
  add_compute(time, attention);
  add_compute(time, memory_bound);
  const BothPasses calls = exposed_calls_of_layer(run, constants, attention);
  time.forward.tensor = calls.forward.tensor;
  time.forward.context = calls.forward.context;
  time.backward.tensor = calls.backward.tensor;
  time.backward.context = calls.backward.context;
  if (run.recompute == Recomputed::full) {
    time.backward.recompute = time.forward.compute;
    time.backward.tensor += time.forward.tensor;
    time.backward.context += time.forward.context;
  }
  if (run.recompute == Recomputed::core_attention) time.backward.recompute = attention.forward.compute;
  if (run.recompute == Recomputed::selective) time.backward.recompute = memory_bound.forward.compute / 2;
  add_host(run, constants, time);
  return time;
}

BothPasses head_time(const RunFeatures& run, const Constants& constants) {
  const Kernels kernels(run, constants);
  const auto t = static_cast<double>(run.tensor);
  const double vocabulary = static_cast<double>(run.model.vocabulary) / t;
  BothPasses time = kernels.linear(run.tokens(), vocabulary, static_cast<double>(run.model.hidden), false);
  const double logit_bytes = run.tokens() * vocabulary;
  time.forward.compute += kernels.memory(12 * logit_bytes);
  time.backward.compute += kernels.memory(8 * logit_bytes);
  return time;
}

BothPasses embedding_time(const RunFeatures& run, const Constants& constants) {
  const Kernels kernels(run, constants);
  const double bytes = run.tokens() * static_cast<double>(run.model.hidden);
  BothPasses time;
  time.forward.compute = kernels.memory(4 * bytes);
  time.backward.compute = kernels.memory(8 * bytes);
  return time;
}

double weight_cast_time(const RunFeatures& run, const Constants& constants, double weights) {
  return run.fp8 ? Kernels(run, constants).memory(4 * weights) : 0.0;
}

}  // namespace megalith::plan
