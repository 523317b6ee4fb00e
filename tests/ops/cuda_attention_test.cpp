#include <cmath>
#include <cstring>
#include <optional>

#include "core/arena.h"
#include "core/device.h"
#include "core/rng.h"
#include "ops/attention.h"
#include "ops/cuda/attention_path.h"
#include "ops/op_test.h"

// The three paths of attention on a GPU, each against the CPU in double from the same bf16 values.

namespace megalith::ops::testing {
namespace {

using cuda::AttentionPath;

constexpr uint64_t kSeed = 7;
constexpr uint32_t kSite = 3;
constexpr uint64_t kStep = 11;
constexpr double kToleranceF32 = 1e-5;
constexpr double kToleranceBf16 = 2e-2;

struct Case {
  int64_t batch, queries, keys, heads, kv_heads, dim;
  double dropout = 0.0;
  int64_t document = 0;  // the length of documents in a sample; 0: a sample is one document
  int64_t room = 0;      // for documents in their bounds; 0: there are no bounds
  int64_t unseen = 0;    // keys after the last query
  int64_t head_offset = 0;
  int64_t dropout_keys = 0;

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

const std::vector<Case> kPlainCases = {{2, 128, 128, 4, 4, 64},    {1, 200, 200, 4, 2, 64}, {2, 257, 257, 2, 1, 128},
                                       {1, 1024, 1024, 2, 2, 128}, {1, 640, 640, 8, 2, 64}, {1, 300, 300, 2, 2, 80},
                                       {1, 192, 192, 3, 1, 96},    {1, 130, 130, 2, 2, 40}, {3, 1000, 1000, 4, 2, 64},
                                       {1, 2048, 2048, 4, 1, 128}};
const std::vector<Case> kDropoutCases = {{2, 128, 128, 2, 2, 64, 0.1},
                                         {1, 300, 300, 4, 2, 128, 0.2},
                                         {2, 131, 131, 3, 1, 64, 0.1},  // head * keys is no multiple of 4
                                         {1, 1000, 1000, 2, 1, 80, 0.1}};
const std::vector<Case> kDocumentCases = {{2, 256, 256, 2, 1, 64, 0.0, 40},
                                          {1, 1000, 1000, 2, 2, 128, 0.0, 300},
                                          {1, 500, 500, 4, 2, 96, 0.1, 7},
                                          {2, 1024, 1024, 2, 1, 64, 0.1, 1000}};
const std::vector<Case> kBoundsCases = {{2, 256, 256, 2, 1, 64, 0.0, 1000, 2},     // a sample is one document
                                        {2, 256, 256, 2, 2, 64, 0.0, 256, 8},      // cut elsewhere in each sample
                                        {2, 256, 256, 4, 1, 64, 0.0, 40, 16},      // many short ones
                                        {1, 500, 500, 4, 2, 96, 0.0, 7, 100},      // shorter than any tile
                                        {1, 1000, 1000, 2, 2, 128, 0.0, 300, 64},  // room for many more
                                        {3, 777, 777, 4, 1, 128, 0.0, 130, 32},
                                        {1, 2048, 2048, 8, 2, 128, 0.0, 600, 4}};
const std::vector<Case> kOffsetCases = {
    {2, 1, 300, 4, 2, 64}, {1, 5, 261, 2, 2, 128, 0.3}, {1, 140, 1000, 4, 1, 64}, {1, 128, 256, 2, 2, 80, 0.0, 100}};
// The last queries of a sample, as cuDNN takes them.
const std::vector<Case> kTailCases = {
    {1, 128, 256, 2, 2, 64}, {2, 100, 300, 4, 2, 64}, {1, 192, 1000, 4, 1, 128}, {1, 64, 2048, 8, 2, 128}};
// Queries and heads from somewhere in a sample.
const std::vector<Case> kPlacedCases = {
    {.batch = 2,
     .queries = 70,
     .keys = 300,
     .heads = 4,
     .kv_heads = 2,
     .dim = 64,
     .dropout = 0.2,
     .unseen = 100,
     .head_offset = 4,
     .dropout_keys = 512},
    {.batch = 1, .queries = 130, .keys = 700, .heads = 2, .kv_heads = 1, .dim = 128, .unseen = 333},
    {.batch = 1,
     .queries = 200,
     .keys = 500,
     .heads = 2,
     .kv_heads = 2,
     .dim = 80,
     .dropout = 0.1,
     .document = 90,
     .unseen = 64,
     .head_offset = 3,
     .dropout_keys = 501},  // no channel of a head's first key is a multiple of 4
    {.batch = 2,
     .queries = 65,
     .keys = 65,
     .heads = 3,
     .kv_heads = 3,
     .dim = 96,
     .dropout = 0.1,
     .head_offset = 5,
     .dropout_keys = 130},
    {.batch = 1,  // the first keys are seen by no query
     .queries = 100,
     .keys = 260,
     .heads = 2,
     .kv_heads = 1,
     .dim = 64,
     .document = 30,
     .unseen = 10}};
const std::vector<Case> kOddCases = {
    {1, 2, 2, 1, 1, 64}, {2, 70, 70, 2, 1, 5, 0.1, 9}, {1, 100, 100, 2, 2, 160}, {1, 90, 90, 2, 1, 36, 0.2}};

std::vector<Case> join(std::initializer_list<std::vector<Case>> lists) {
  std::vector<Case> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::string describe(const Case& c) {
  return fmt::format("batch {} queries {} from {} keys {} heads {}/{} dim {} dropout {} documents of {}, room for {}",
                     c.batch, c.queries, c.offset(), c.keys, c.heads, c.kv_heads, c.dim, c.dropout, c.document, c.room);
}

Named inputs_of(const Case& c) {
  return {{"q", random_values(c.q_rows() * c.q_cols(), 1)},
          {"k", random_values(c.k_rows() * c.kv_cols(), 2)},
          {"v", random_values(c.k_rows() * c.kv_cols(), 3)},
          {"dout", random_values(c.q_rows() * c.q_cols(), 4)}};
}

std::vector<int64_t> sample_ids_of(const Case& c) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < c.batch; ++i) ids.push_back(500 + 3 * i);
  return ids;
}

std::vector<int32_t> starts_of(const Case& c) {
  std::vector<int32_t> starts;
  for (int64_t row = 0; row < c.q_rows(); ++row) {
    const int64_t position = c.offset() + row % c.queries;
    starts.push_back(static_cast<int32_t>(c.start_of(row / c.queries, position)));
  }
  return starts;
}

// The rows at which documents begin, then the number of rows as often as there is room.
std::vector<int32_t> bounds_of(const Case& c) {
  const std::vector<int32_t> starts = starts_of(c);
  std::vector<int32_t> bounds;
  for (int64_t row = 0; row < c.q_rows(); ++row) {
    if (starts[static_cast<size_t>(row)] == row % c.queries) bounds.push_back(static_cast<int32_t>(row));
  }
  EXPECT_LE(bounds.size(), c.room);
  bounds.resize(static_cast<size_t>(c.room + 1), static_cast<int32_t>(c.q_rows()));
  return bounds;
}

AttentionShape shape_of(const Case& c, DType dtype) {
  return {.dtype = dtype,
          .batch = c.batch,
          .heads = c.heads,
          .kv_heads = c.kv_heads,
          .query_length = c.queries,
          .key_length = c.keys,
          .head_dim = c.dim,
          .documents = c.room};
}

// The tensors of a case, wherever they lie.
struct Tensors {
  Tensor q, k, v, out, log_sum_exp, dout, dq, dk, dv, starts, bounds, ids, scratch;
  const uint64_t* step = nullptr;

  Dropout dropout(const Case& c) const {
    return {
        .probability = c.dropout, .seed = kSeed, .site = kSite, .step = step, .sample_ids = ids, .length = c.queries};
  }
  AttentionForward forward(const Case& c) const {
    return {.q = q,
            .k = k,
            .v = v,
            .out = out,
            .log_sum_exp = log_sum_exp,
            .batch = c.batch,
            .heads = c.heads,
            .kv_heads = c.kv_heads,
            .query_offset = c.offset(),
            .scale = c.scale(),
            .document_starts = c.document == 0 ? Tensor{} : starts,
            .document_bounds = bounds,
            .dropout = dropout(c),
            .head_offset = c.head_offset,
            .dropout_keys = c.dropout_keys,
            .scratch = scratch};
  }
  AttentionBackward backward(const Case& c, bool deterministic) const {
    return {.dout = dout,
            .q = q,
            .k = k,
            .v = v,
            .out = out,
            .log_sum_exp = log_sum_exp,
            .dq = dq,
            .dk = dk,
            .dv = dv,
            .batch = c.batch,
            .heads = c.heads,
            .kv_heads = c.kv_heads,
            .query_offset = c.offset(),
            .scale = c.scale(),
            .document_starts = c.document == 0 ? Tensor{} : starts,
            .document_bounds = bounds,
            .dropout = dropout(c),
            .head_offset = c.head_offset,
            .dropout_keys = c.dropout_keys,
            .deterministic = deterministic,
            .scratch = scratch};
  }
};

// On the CPU, in double.
Named expected_of(const Case& c) {
  Named values = inputs_of(c);
  const auto tensor = [&](const char* name, int64_t rows, int64_t cols) {
    values[name].resize(static_cast<size_t>(rows * cols));
    return Tensor(values[name].data(), DType::f64, Shape{rows, cols});
  };
  ThreadPool pool(2);
  Stream stream(pool);
  auto ids = sample_ids_of(c);
  auto starts = starts_of(c);
  const int64_t scratch = attention_scratch(Device::cpu, shape_of(c, DType::f64), pool.threads());
  const Tensors tensors{.q = tensor("q", c.q_rows(), c.q_cols()),
                        .k = tensor("k", c.k_rows(), c.kv_cols()),
                        .v = tensor("v", c.k_rows(), c.kv_cols()),
                        .out = tensor("out", c.q_rows(), c.q_cols()),
                        .log_sum_exp = tensor("log_sum_exp", c.batch * c.heads, c.queries),
                        .dout = tensor("dout", c.q_rows(), c.q_cols()),
                        .dq = tensor("dq", c.q_rows(), c.q_cols()),
                        .dk = tensor("dk", c.k_rows(), c.kv_cols()),
                        .dv = tensor("dv", c.k_rows(), c.kv_cols()),
                        .starts = Tensor(starts.data(), DType::i32, Shape{c.q_rows()}),
                        .ids = Tensor(ids.data(), DType::i64, Shape{c.batch}),
                        .scratch = tensor("scratch", 1, scratch),
                        .step = &kStep};
  attention_forward(stream, tensors.forward(c));
  Named expected{{"out", values["out"]}, {"log_sum_exp", values["log_sum_exp"]}};
  attention_backward(stream, tensors.backward(c, true));
  for (const char* name : {"dq", "dk", "dv"}) expected[name] = values[name];
  return expected;
}

// A matrix in the GPU's memory that begins as NaN.
class DeviceMatrix {
 public:
  DeviceMatrix(Stream& stream, Arena& arena, const char* name, DType dtype, int64_t rows, int64_t cols)
      : stream_(&stream), tensor_(arena.allocate(name, dtype, Shape{rows, cols})) {
    std::vector<std::byte> poison(static_cast<size_t>(tensor_.bytes()), std::byte{0xff});
    upload(poison);
  }

  const Tensor& tensor() const { return tensor_; }

  // Into the columns from `first` on.
  void write(const Values& values, int64_t first, int64_t cols) {
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

  Values read(int64_t first, int64_t cols) const {
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
  Values read() const { return read(0, tensor_.cols()); }

 private:
  void upload(std::vector<std::byte>& bytes) {
    copy(*stream_, Tensor(bytes.data(), tensor_.dtype, tensor_.shape), tensor_);
    stream_->wait();
  }
  std::vector<std::byte> download() const {
    std::vector<std::byte> bytes(static_cast<size_t>(tensor_.bytes()));
    copy(*stream_, tensor_, Tensor(bytes.data(), tensor_.dtype, tensor_.shape));
    stream_->wait();
    return bytes;
  }

  Stream* stream_;
  Tensor tensor_;
};

template <class T>
Tensor upload_vector(Stream& stream, Arena& arena, const char* name, std::vector<T> values) {
  const Tensor host(values.data(), dtype_of<T>(), Shape{static_cast<int64_t>(values.size())});
  const Tensor device = arena.allocate(name, host.dtype, host.shape);
  copy(stream, host, device);
  stream.wait();
  return device;
}

// q, k and v are columns of one matrix where there are as many queries as keys, and so are their gradients.
class GpuCase {
 public:
  GpuCase(Stream& stream, const Case& c, DType dtype)
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
    const Tensor step = upload_vector(stream, arena_, "step", std::vector<int64_t>{static_cast<int64_t>(kStep)});
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

  const Tensors& tensors() const { return tensors_; }

  // Without a path: as the operation chooses. Empty if cuDNN refuses.
  Named run(const AttentionPath* path, bool deterministic) {
    if (path == nullptr) {
      attention_forward(stream_, tensors_.forward(case_));
    } else if (!cuda::attention_forward_on(*path, stream_, tensors_.forward(case_))) {
      return {};
    }
    Named outputs{{"out", out_.read()}, {"log_sum_exp", log_sum_exp_.read()}};
    if (path == nullptr) {
      attention_backward(stream_, tensors_.backward(case_, deterministic));
    } else if (!cuda::attention_backward_on(*path, stream_, tensors_.backward(case_, deterministic))) {
      return {};
    }
    outputs["dq"] = dq_.read(0, case_.q_cols());
    outputs["dk"] = dkv().read(first_kv_col(), case_.kv_cols());
    outputs["dv"] = dkv().read(first_kv_col() + case_.kv_cols(), case_.kv_cols());
    return outputs;
  }

 private:
  int64_t first_kv_col() const { return case_.is_square() ? case_.q_cols() : 0; }
  const DeviceMatrix& dkv() const { return case_.is_square() ? dq_ : dkv_; }

  Stream& stream_;
  Case case_;
  Arena arena_;
  DeviceMatrix q_, kv_, out_, log_sum_exp_, dout_, dq_, dkv_, scratch_;
  Tensors tensors_;
};

void expect_close(const Named& actual, const Named& expected, double tolerance) {
  for (const auto& [name, values] : expected) {
    const double error = relative_error(actual.at(name), values);
    EXPECT_TRUE(error <= tolerance) << name << ": relative error " << error;
  }
}

class CudaAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    if (find_accelerators().empty()) GTEST_SKIP() << "there is no GPU here";
    stream_.emplace(pool_, Device::cuda);
  }

  void expect_path(AttentionPath path, DType dtype, const std::vector<Case>& cases, bool deterministic = true) {
    for (const Case& c : cases) {
      SCOPED_TRACE(describe(c));
      const Named actual = GpuCase(*stream_, c, dtype).run(&path, deterministic);
      if (path == AttentionPath::cudnn && actual.empty()) {
        fmt::print("cuDNN refuses {} (deterministic: {})\n", describe(c), deterministic);
        continue;
      }
      expect_close(actual, expected_of(c), dtype == DType::bf16 ? kToleranceBf16 : kToleranceF32);
    }
  }

  ThreadPool pool_{2};
  std::optional<Stream> stream_;
};

TEST_F(CudaAttention, CudnnMatchesTheCpu) {
  const auto cases = join({kPlainCases, kTailCases});
  expect_path(AttentionPath::cudnn, DType::bf16, cases, false);
  expect_path(AttentionPath::cudnn, DType::bf16, cases, true);
}

TEST_F(CudaAttention, CudnnFindsDocumentsByTheirBounds) {
  expect_path(AttentionPath::cudnn, DType::bf16, kBoundsCases, false);
}

TEST_F(CudaAttention, TensorCoresMatchTheCpu) {
  const auto cases = join({kPlainCases, kDropoutCases, kDocumentCases, kOffsetCases, kTailCases, kPlacedCases});
  expect_path(AttentionPath::tensor_cores, DType::bf16, cases, true);
  expect_path(AttentionPath::tensor_cores, DType::bf16, cases, false);
}

TEST_F(CudaAttention, GenericKernelMatchesTheCpu) {
  const auto cases =
      join({kPlainCases, kDropoutCases, kDocumentCases, kOffsetCases, kTailCases, kPlacedCases, kOddCases});
  expect_path(AttentionPath::generic, DType::f32, cases);
  expect_path(AttentionPath::generic, DType::bf16, cases);
}

TEST_F(CudaAttention, TheChosenPathMatchesTheCpu) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Case& c : join({kPlainCases, kDropoutCases, kDocumentCases, kBoundsCases, kOffsetCases, kTailCases,
                               kPlacedCases, kOddCases})) {
      for (const bool deterministic : {true, false}) {
        SCOPED_TRACE(fmt::format("{} {} deterministic {}", describe(c), name_of(dtype), deterministic));
        expect_close(GpuCase(*stream_, c, dtype).run(nullptr, deterministic), expected_of(c),
                     dtype == DType::bf16 ? kToleranceBf16 : kToleranceF32);
      }
    }
  }
}

TEST_F(CudaAttention, DeterministicBackwardRepeatsBitForBit) {
  for (const Case& c : join({kPlainCases, kDropoutCases, kDocumentCases, kBoundsCases, kTailCases, kPlacedCases})) {
    SCOPED_TRACE(describe(c));
    const Named first = GpuCase(*stream_, c, DType::bf16).run(nullptr, true);
    const Named second = GpuCase(*stream_, c, DType::bf16).run(nullptr, true);
    EXPECT_EQ(first, second);
  }
}

TEST_F(CudaAttention, RefusesWhatBreaksTheContract) {
  const Case c{2, 64, 64, 4, 2, 64};
  GpuCase gpu(*stream_, c, DType::bf16);
  const auto with = [&](const std::function<void(AttentionForward&)>& change) {
    AttentionForward args = gpu.tensors().forward(c);
    change(args);
    return [args, this] { attention_forward(*stream_, args); };
  };
  EXPECT_NO_THROW(with([](AttentionForward&) {})());
  expect_refused(with([](AttentionForward& args) { args.query_offset = 1; }));
  expect_refused(with([](AttentionForward& args) { args.kv_heads = 3; }));
  expect_refused(with([](AttentionForward& args) { args.batch = 5; }));
  expect_refused(with([](AttentionForward& args) { args.scratch = args.scratch.slice_cols(0, 100); }));
  expect_refused(with([](AttentionForward& args) {
    args.dropout.probability = 0.1;
    args.dropout.step = nullptr;
  }));
  expect_refused(with([](AttentionForward& args) { args.log_sum_exp = args.out; }));
  expect_refused(with([](AttentionForward& args) { args.head_offset = -1; }));
  expect_refused(with([](AttentionForward& args) { args.dropout_keys = 63; }));
}

TEST(CudaAttentionPath, IsTheFastestThatTakesTheProblem) {
  using cuda::attention_path;
  const cuda::AttentionTraits plain{.dtype = DType::bf16, .head_dim = 128, .is_aligned = true, .is_square = true};
  const auto with = [&](const std::function<void(cuda::AttentionTraits&)>& change) {
    cuda::AttentionTraits traits = plain;
    change(traits);
    return attention_path(traits);
  };
  EXPECT_EQ(attention_path(plain), AttentionPath::cudnn);
  EXPECT_EQ(with([](auto& traits) { traits.has_dropout = true; }), AttentionPath::tensor_cores);
  EXPECT_EQ(with([](auto& traits) { traits.has_documents = true; }), AttentionPath::tensor_cores);
  EXPECT_EQ(with([](auto& traits) { traits.has_documents = traits.has_bounds = true; }), AttentionPath::cudnn);
  EXPECT_EQ(with([](auto& traits) { traits.is_square = false; }), AttentionPath::tensor_cores);
  const auto tail = [](int64_t queries) {
    return [queries](cuda::AttentionTraits& traits) {
      traits.is_square = false;
      traits.ends_together = true;
      traits.queries = queries;
    };
  };
  EXPECT_EQ(with(tail(128)), AttentionPath::cudnn);
  EXPECT_EQ(with(tail(1)), AttentionPath::tensor_cores);  // a token of a generation
  EXPECT_EQ(with([](auto& traits) { traits.is_aligned = false; }), AttentionPath::generic);
  EXPECT_EQ(with([](auto& traits) { traits.head_dim = 20; }), AttentionPath::generic);
  EXPECT_EQ(with([](auto& traits) { traits.dtype = DType::f32; }), AttentionPath::generic);
  EXPECT_EQ(with([](auto& traits) { traits.head_dim = 256; }), AttentionPath::cudnn);
  EXPECT_EQ(cuda::own_attention_path(plain), AttentionPath::tensor_cores);
}

}  // namespace
}  // namespace megalith::ops::testing
