#include "ops/cuda/vocabulary/cross_entropy_launch.h"

#include "ops/cuda/async_copy.cuh"
#include "ops/cuda/shared_memory.cuh"
#include "ops/cuda/vocabulary/cross_entropy_rows.cuh"

namespace megalith::ops::cuda {

namespace {

template <class T>
struct Operands {
  Rows<T> logits;
  const int32_t* targets;
  const float* weights;
  float* losses;
  int vocabulary;
  int cols;
  const double* gradient_scale;

  // A target that is none makes loss and gradient NaN: nothing else can be told from here.
  __device__ bool has_target(int target) const { return 0 <= target && target < vocabulary; }
  __device__ float at_target(int64_t row, int target) const {
    return has_target(target) ? load<1>(logits.at(row, target))[0] : __int_as_float(0x7fffffff);
  }
};

template <class T>
__device__ RowGradient gradient_of(const Operands<T>& args, const SoftmaxSum& softmax, float weight, int target) {
  const float scale = args.gradient_scale == nullptr ? 1.0f : static_cast<float>(*args.gradient_scale);
  const float factor = args.has_target(target) || weight == 0.0f ? weight * scale : __int_as_float(0x7fffffff);
  return {softmax.maximum, factor, __fdividef(factor, softmax.sum), target, args.vocabulary};
}

template <class T>
__device__ void write_loss(const Operands<T>& args, int64_t row, const SoftmaxSum& softmax, float weight,
                           float at_target) {
  const auto log_sum = static_cast<float>(log(static_cast<double>(softmax.sum)));
  args.losses[row] = weight == 0.0f ? 0.0f : weight * (log_sum + (softmax.maximum - at_target));
}

// ---- a block per row, which is read anew for the gradient: any alignment, and the loss alone ------------------------

constexpr int kPlainThreads = 512;

template <class T, int kWidth, bool kGradient>
__global__ void __launch_bounds__(kPlainThreads) cross_entropy_kernel(Operands<T> args) {
  const int64_t row = blockIdx.x;
  T* logits = args.logits.at(row, 0);
  const float weight = args.weights[row];
  const int target = args.targets[row];
  const float at_target = args.at_target(row, target);
  const int thread = static_cast<int>(threadIdx.x);

  SoftmaxSum softmax = sum_vectors<kPlainThreads, kWidth>(logits, args.vocabulary);
  // Also the point after which the target's logit may be overwritten.
  __shared__ MergeSpace<kPlainThreads> space;
  softmax = block_merge(softmax, space);
  if (thread == kPlainThreads - 1) write_loss(args, row, softmax, weight, at_target);
  if constexpr (kGradient) {
    const RowGradient gradient = gradient_of(args, softmax, weight, target);
    for (int vector = thread; vector < args.cols / kWidth; vector += kPlainThreads) {
      T* at = logits + int64_t{vector} * kWidth;
      store(at, gradient.of(load<kWidth>(at), vector));
    }
  }
}

// ---- loss and gradient: rows travel into shared memory ahead of the block that works on them -----------------------

// How a thread's vectors of a row, kThreads apart, are kept between the passes: the first `shared` in shared memory, in
// slots that it alone uses; then kRegisters in registers; what is left is read twice. In the first `inner` rounds every
// thread has a vector, and none has padding.
struct Rounds {
  int all, shared, inner;
};

template <class T, int kThreads, int kRegisters>
struct HeldRow {
  static constexpr int kWidth = kFullWidth<T>;
  using V = Vector<T, kWidth>;
  const Rows<T>& logits;
  int64_t rows;
  int vectors;
  Rounds rounds;
  uint4* slots;  // this thread's first
  V kept[kRegisters == 0 ? 1 : kRegisters];

  __device__ static int vector_of(int round) { return round * kThreads + static_cast<int>(threadIdx.x); }
  __device__ uint4* slot(int round) const { return slots + round * kThreads; }

  __device__ void fetch_slot(int64_t row, int round) const {
    const int vector = vector_of(round);
    if (row < rows && vector < vectors) copy_async(slot(round), logits.at(row, int64_t{vector} * kWidth));
  }
  __device__ void fetch_registers(int64_t row) {
#pragma unroll
    for (int i = 0; i < kRegisters; ++i) {
      const int vector = vector_of(rounds.shared + i);
      if (row < rows && vector < vectors) kept[i] = load_once<kWidth>(logits.at(row, int64_t{vector} * kWidth));
    }
  }
  __device__ V take(int round) const {
    const uint4 bits = *slot(round);
    return {{bits.x, bits.y, bits.z, bits.w}};
  }

  // body(vector, its index), from a round on; next(round) begins the next copy into a slot.
  template <class Next, class Body>
  __device__ void each(int64_t row, int round, const Next& next, const Body& body) const {
    for (; round < rounds.shared; ++round) {
      if (vector_of(round) >= vectors) break;
      const V in = take(round);
      next(round);
      body(in, vector_of(round));
    }
#pragma unroll
    for (int i = 0; i < kRegisters; ++i) {
      if (vector_of(rounds.shared + i) < vectors) body(kept[i], vector_of(rounds.shared + i));
    }
    for (round = rounds.shared + kRegisters; round < rounds.all; ++round) {
      const int vector = vector_of(round);
      if (vector < vectors) body(load_once<kWidth>(logits.at(row, int64_t{vector} * kWidth)), vector);
    }
  }
};

template <class Row>
__device__ SoftmaxSum sum_row(const Row& held, int64_t row, int vocabulary) {
  SoftmaxSum softmax;
#pragma unroll 4
  for (int round = 0; round < held.rounds.inner; ++round) add_inner(softmax, held.take(round));
  held.each(
      row, held.rounds.inner, [](int) {},
      [&](const typename Row::V& in, int vector) { add_vector(softmax, in, vector, vocabulary); });
  return softmax;
}

// Writes the gradient over the logits, and hands each slot on to the next row as it empties it. Most rounds are inner
// ones and are kept free of questions, also of where the target is.
template <class T, int kThreads, int kRegisters>
__device__ void write_gradient(const HeldRow<T, kThreads, kRegisters>& held, int64_t row, int64_t next_row,
                               const RowGradient& gradient) {
  constexpr int kWidth = kFullWidth<T>;
  using V = Vector<T, kWidth>;
  int round = 0;
  if constexpr (sizeof(T) == 2) {
    if (gradient.factor > 0.0f) {
      const InnerGradient inner(gradient);
      T* to = held.logits.at(row, threadIdx.x * kWidth);
      const T* next = held.logits.at(next_row, threadIdx.x * kWidth);
#pragma unroll 4
      for (; round < held.rounds.inner; ++round, to += kThreads * kWidth, next += kThreads * kWidth) {
        const V in = held.take(round);
        if (next_row < held.rows) copy_async(held.slot(round), next);
        store(to, inner.of(in));
      }
    }
  }
  held.each(
      row, round, [&](int emptied) { held.fetch_slot(next_row, emptied); },
      [&](const V& in, int vector) { store(held.logits.at(row, int64_t{vector} * kWidth), gradient.of(in, vector)); });
}

// A block works on every gridDim.x-th row. It has as much to compute as to move.
template <class T, int kThreads, int kRegisters>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    cross_entropy_gradient_kernel(const __grid_constant__ Operands<T> args, int64_t rows, Rounds rounds) {
  constexpr int kWidth = kFullWidth<T>;
  extern __shared__ uint4 dynamic_shared[];
  __shared__ MergeSpace<kThreads> spaces[2];
  const int thread = static_cast<int>(threadIdx.x);
  HeldRow<T, kThreads, kRegisters> held{args.logits, rows, args.cols / kWidth, rounds, dynamic_shared + thread, {}};

  for (int round = 0; round < rounds.shared; ++round) held.fetch_slot(blockIdx.x, round);
  commit_copies();
  held.fetch_registers(blockIdx.x);
  int parity = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x, parity ^= 1) {
    const float weight = args.weights[row];
    const int target = args.targets[row];
    const float at_target = args.at_target(row, target);
    const int target_vector = args.has_target(target) ? target / kWidth : -1;
    const bool owns_target = target_vector >= 0 && target_vector % kThreads == thread;
    Vector<T, kWidth> around_target = {};
    if (owns_target) around_target = load<kWidth>(args.logits.at(row, int64_t{target_vector} * kWidth));
    wait_copies<0>();
    // The merge is also the point after which the target's logit may be overwritten.
    const SoftmaxSum softmax = block_merge(sum_row(held, row, args.vocabulary), spaces[parity]);
    if (thread == kThreads - 1) write_loss(args, row, softmax, weight, at_target);
    const RowGradient gradient = gradient_of(args, softmax, weight, target);
    write_gradient(held, row, row + gridDim.x, gradient);
    if (owns_target) {
      store(args.logits.at(row, int64_t{target_vector} * kWidth), gradient.of(around_target, target_vector));
    }
    commit_copies();
    held.fetch_registers(row + gridDim.x);
  }
}

int64_t multiprocessors() {
  int device = 0;
  int count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}

template <class T, int kThreads, int kRegisters>
void launch_gradient(const Operands<T>& args, int64_t rows, void* stream) {
  constexpr int64_t kStatic = 2 * sizeof(MergeSpace<kThreads>);
  constexpr int64_t kRoundBytes = kThreads * 16;
  const auto kernel = cross_entropy_gradient_kernel<T, kThreads, kRegisters>;
  const int64_t all = divide_up(args.cols, kThreads * kFullWidth<T>);
  const int64_t most = (shared_memory_limit() - kStatic) / kRoundBytes;
  int64_t shared = all > kRegisters ? all - kRegisters : 0;
  if (shared > most) shared = most;
  if (!reserve_shared_memory(kernel, shared * kRoundBytes, kStatic)) shared = 0;
  const int64_t resident = multiprocessors() * (1024 / kThreads);
  const int64_t inner = args.vocabulary / (kThreads * kFullWidth<T>);
  kernel<<<static_cast<unsigned>(rows < resident ? rows : resident), kThreads,
           static_cast<size_t>(shared * kRoundBytes), static_cast<cudaStream_t>(stream)>>>(
      args, rows, {static_cast<int>(all), static_cast<int>(shared), static_cast<int>(inner < shared ? inner : shared)});
}

template <class T, int kWidth, bool kGradient>
void launch_plain(const Operands<T>& args, int64_t rows, void* stream) {
  cross_entropy_kernel<T, kWidth, kGradient>
      <<<static_cast<unsigned>(rows), kPlainThreads, 0, static_cast<cudaStream_t>(stream)>>>(args);
}

// Where two rows fit into a multiprocessor's shared memory, two blocks share it: while one waits, the other moves
// bytes.
template <class T>
void launch_gradient(const Operands<T>& args, int64_t rows, void* stream) {
  constexpr int64_t kHalf = 112 * 1024;
  if (divide_up(args.cols, 512 * kFullWidth<T>) * 512 * 16 <= kHalf) {
    launch_gradient<T, 512, 0>(args, rows, stream);
  } else {
    launch_gradient<T, 1024, 4>(args, rows, stream);
  }
}

}  // namespace

void launch_cross_entropy(const CrossEntropyLaunch& args, void* stream) {
  const int64_t rows = args.extent.rows;
  const int64_t cols = args.extent.cols;
  if (rows == 0 || cols == 0) return;
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    const Operands<T> operands{
        Rows<T>(args.logits),   args.targets,       args.weights, args.losses, static_cast<int>(args.vocabulary),
        static_cast<int>(cols), args.gradient_scale};
    const bool wide = cols % kFullWidth<T> == 0 && rows_aligned(args.logits, rows, sizeof(T));
    if (wide && args.with_gradient) {
      launch_gradient(operands, rows, stream);
    } else if (wide) {
      launch_plain<T, kFullWidth<T>, false>(operands, rows, stream);
    } else if (args.with_gradient) {
      launch_plain<T, 1, true>(operands, rows, stream);
    } else {
      launch_plain<T, 1, false>(operands, rows, stream);
    }
  });
}

}  // namespace megalith::ops::cuda
