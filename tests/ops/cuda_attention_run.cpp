#include "ops/cuda_attention_run.h"

#include <algorithm>
#include <cstring>

#include "core/device.h"

namespace megalith::ops::testing {

namespace {

template <class T>
Tensor upload_vector(Stream& stream, Arena& arena, const char* name, std::vector<T> values) {
  const Tensor host(values.data(), dtype_of<T>(), Shape{static_cast<int64_t>(values.size())});
  const Tensor device(GuardedBlock(stream, arena, name, host.bytes()).data(), host.dtype, host.shape, Device::cuda);
  copy(stream, host, device);
  stream.wait();
  return device;
}

}  // namespace

GuardedBlock::GuardedBlock(Stream& stream, Arena& arena, const char* name, int64_t bytes)
    : stream_(&stream),
      block_(arena.allocate(name, DType::i32, Shape{ceil_div(bytes + 2 * kGuard, size_of(DType::i32))})) {
  std::vector<int32_t> poison(static_cast<size_t>(block_.elements()), -1);
  copy(stream, Tensor(poison.data(), block_.dtype, block_.shape), block_);
  stream.wait();
}

bool GuardedBlock::is_intact() const {
  constexpr int64_t kWords = kGuard / size_of(DType::i32);
  std::vector<int32_t> words(static_cast<size_t>(block_.elements()));
  copy(*stream_, block_, Tensor(words.data(), block_.dtype, block_.shape));
  stream_->wait();
  const auto is_poison = [](int32_t word) { return word == -1; };
  return std::all_of(words.begin(), words.begin() + kWords, is_poison) &&
         std::all_of(words.end() - kWords, words.end(), is_poison);
}

DeviceMatrix::DeviceMatrix(Stream& stream, Arena& arena, const char* name, DType dtype, int64_t rows, int64_t cols)
    : stream_(&stream),
      block_(stream, arena, name, rows * cols * size_of(dtype)),
      tensor_(block_.data(), dtype, Shape{rows, cols}, Device::cuda) {}

void DeviceMatrix::write(const Values& values, int64_t first, int64_t cols) {
  std::vector<std::byte> bytes = download();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / cols;
    const auto col = first + static_cast<int64_t>(i) % cols;
    std::byte* at = bytes.data() + (row * tensor_.cols() + col) * size_of(tensor_.dtype);
    if (tensor_.dtype == DType::bf16) {
      const bfloat16 value(static_cast<float>(values[i]));
      std::memcpy(at, &value, sizeof value);
    } else {
      const auto value = static_cast<float>(values[i]);
      std::memcpy(at, &value, sizeof value);
    }
  }
  upload(bytes);
}

Values DeviceMatrix::read(int64_t first, int64_t cols) const {
  const std::vector<std::byte> bytes = download();
  Values values;
  for (int64_t row = 0; row < tensor_.rows(); ++row) {
    for (int64_t col = first; col < first + cols; ++col) {
      const std::byte* at = bytes.data() + (row * tensor_.cols() + col) * size_of(tensor_.dtype);
      if (tensor_.dtype == DType::bf16) {
        bfloat16 value;
        std::memcpy(&value, at, sizeof value);
        values.push_back(static_cast<float>(value));
      } else {
        float value = 0.0F;
        std::memcpy(&value, at, sizeof value);
        values.push_back(value);
      }
    }
  }
  return values;
}

void DeviceMatrix::upload(std::vector<std::byte>& bytes) {
  copy(*stream_, Tensor(bytes.data(), tensor_.dtype, tensor_.shape), tensor_);
  stream_->wait();
}

std::vector<std::byte> DeviceMatrix::download() const {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor_.bytes()));
  copy(*stream_, tensor_, Tensor(bytes.data(), tensor_.dtype, tensor_.shape));
  stream_->wait();
  return bytes;
}

GpuAttention::GpuAttention(Stream& stream, const AttentionCase& c, DType dtype)
    : stream_(stream),
      case_(c),
      arena_("test", Device::cuda, int64_t{1} << 30),
      q_(stream, arena_, "q", dtype, c.q_rows(), c.q_cols() + (c.is_square() ? 2 * c.kv_cols() : 0)),
      kv_(stream, arena_, "kv", dtype, c.k_rows(), 2 * c.kv_cols()),
      out_(stream, arena_, "out", dtype, c.q_rows(), c.q_cols()),
      log_sum_exp_(stream, arena_, "log_sum_exp", DType::f32, c.batch * c.heads, c.queries),
      dout_(stream, arena_, "dout", dtype, c.q_rows(), c.q_cols()),
      dq_(stream, arena_, "dq", dtype, c.q_rows(), c.q_cols() + (c.is_square() ? 2 * c.kv_cols() : 0)),
      dkv_(stream, arena_, "dkv", dtype, c.k_rows(), 2 * c.kv_cols()),
      scratch_(stream, arena_, "scratch", DType::f32, 1,
               attention_scratch(Device::cuda, shape_of(c, dtype), stream.pool().threads())) {
  const int64_t k_begin = first_kv_col();
  DeviceMatrix& kv = c.is_square() ? q_ : kv_;
  const Named in = inputs_of(c);
  q_.write(in.at("q"), 0, c.q_cols());
  kv.write(in.at("k"), k_begin, c.kv_cols());
  kv.write(in.at("v"), k_begin + c.kv_cols(), c.kv_cols());
  dout_.write(in.at("dout"), 0, c.q_cols());
  const Tensor step = upload_vector(stream, arena_, "step", std::vector<int64_t>{static_cast<int64_t>(kAttentionStep)});
  tensors_ = {.q = q_.tensor().slice_cols(0, c.q_cols()),
              .k = kv.tensor().slice_cols(k_begin, k_begin + c.kv_cols()),
              .v = kv.tensor().slice_cols(k_begin + c.kv_cols(), k_begin + 2 * c.kv_cols()),
              .out = out_.tensor(),
              .log_sum_exp = log_sum_exp_.tensor(),
              .dout = dout_.tensor(),
              .dq = dq_.tensor().slice_cols(0, c.q_cols()),
              .dk = dkv().tensor().slice_cols(k_begin, k_begin + c.kv_cols()),
              .dv = dkv().tensor().slice_cols(k_begin + c.kv_cols(), k_begin + 2 * c.kv_cols()),
              .starts = upload_vector(stream, arena_, "starts", starts_of(c)),
              .bounds = c.room == 0 ? Tensor{} : upload_vector(stream, arena_, "bounds", bounds_of(c)),
              .ids = upload_vector(stream, arena_, "ids", sample_ids_of(c)),
              .scratch = scratch_.tensor(),
              .step = static_cast<const uint64_t*>(step.data)};
}

Named GpuAttention::run(const cuda::AttentionPath* path, bool deterministic) {
  const AttentionForward forward = tensors_.forward(case_);
  const AttentionBackward backward = tensors_.backward(case_, deterministic);
  if (path == nullptr) {
    run_as_training_does([&] { attention_forward(stream_, forward); });
  } else if (!cuda::attention_forward_on(*path, stream_, forward)) {
    return {};
  }
  Named outputs{{"out", out_.read()}, {"log_sum_exp", log_sum_exp_.read()}};
  if (path == nullptr) {
    run_as_training_does([&] { attention_backward(stream_, backward); });
  } else if (!cuda::attention_backward_on(*path, stream_, backward)) {
    return {};
  }
  outputs["dq"] = dq_.read(0, case_.q_cols());
  outputs["dk"] = dkv().read(first_kv_col(), case_.kv_cols());
  outputs["dv"] = dkv().read(first_kv_col() + case_.kv_cols(), case_.kv_cols());
  return outputs;
}

// Once as it is, which builds what libraries build, and then recorded: a library may record what holds only once.
void GpuAttention::run_as_training_does(const std::function<void()>& body) {
  body();
  RecordedWork recorded;
  for (int i = 0; i < 2; ++i) {
    Recording recording(&recorded, stream_);
    if (recording.is_needed()) body();
    recording.finish();
  }
  stream_.wait();
}

bool GpuAttention::is_intact() const {
  const auto matrices = {&q_, &kv_, &out_, &log_sum_exp_, &dout_, &dq_, &dkv_, &scratch_};
  return std::all_of(matrices.begin(), matrices.end(), [](const DeviceMatrix* matrix) { return matrix->is_intact(); });
}

}  // namespace megalith::ops::testing
