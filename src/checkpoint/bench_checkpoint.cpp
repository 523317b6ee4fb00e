#include "checkpoint/bench_checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <future>
#include <random>

#include "checkpoint/shard_image.h"
#include "core/arena.h"
#include "core/clock.h"
#include "core/device.h"
#include "core/error.h"
#include "core/shared_memory.h"
#include "core/stream.h"

namespace megalith::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kColumns = 4096;
constexpr int64_t kTensorBytes = int64_t{64} << 20;  // those of a layer of some billion parameters

// As many tensors as make up about so many bytes.
std::vector<ShardContent::Piece> pieces_of(int64_t bytes) {
  std::vector<ShardContent::Piece> pieces;
  const Shape shape{kTensorBytes / size_of(DType::f32) / kColumns, kColumns};
  for (int64_t i = 0; i < std::max<int64_t>(1, bytes / kTensorBytes); ++i)
    pieces.push_back({fmt::format("layers.{}.weight", i), TensorKind::master, DType::f32, shape, whole_box(shape)});
  return pieces;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

class Bench {
 public:
  explicit Bench(const CheckpointBench& bench)
      : bench_(bench), image_(pieces_of(bench.bytes)), memory_("", image_.bytes(), bench.device) {
    // Zeros would flatter disks that compress.
    std::mt19937_64 random(1);
    auto* words = reinterpret_cast<uint64_t*>(memory_.bytes().data());
    std::generate_n(words, memory_.bytes().size() / sizeof(uint64_t), random);
    image_.place_in(memory_.bytes());
  }

  std::vector<RatePair> run() {
    std::vector<RatePair> rates = {measure(
                                       "write", [&] { write_raw(); }, [&] { write_checkpoint(); }),
                                   measure(
                                       "read", [&] { read_raw(); }, [&] { read_checkpoint(); })};
    remove_files();
    if (bench_.device == Device::cuda) rates.push_back(measure_device_copies());
    return rates;
  }

 private:
  RatePair measure(const std::string& what, const std::function<void()>& raw, const std::function<void()>& checkpoint) {
    std::vector<double> raw_rates;
    std::vector<double> checkpoint_rates;
    for (int round = 0; round < bench_.rounds; ++round) {
      // Disks that others share are quick for a while and then are not: neither is always the first.
      const bool raw_first = round % 2 == 0;
      if (raw_first) raw_rates.push_back(rate_of(raw));
      checkpoint_rates.push_back(rate_of(checkpoint));
      if (!raw_first) raw_rates.push_back(rate_of(raw));
    }
    return {what, median(std::move(raw_rates)), median(std::move(checkpoint_rates))};
  }

  double rate_of(const std::function<void()>& action) const {
    const double begin = monotonic_seconds();
    action();
    return static_cast<double>(image_.bytes()) / (monotonic_seconds() - begin);
  }

  fs::path raw_file() const { return bench_.directory / "raw"; }
  Store store() const { return Store(bench_.directory / "checkpoints", 1); }

  void write_raw() const {
    ::unlink(raw_file().c_str());
    File file = File::create_new(raw_file());
    write_image(file, image_.memory());
    file.sync();
  }

  void write_checkpoint() {
    fs::remove_all(bench_.directory / "checkpoints");
    Store target = store();
    auto digests = std::async(std::launch::async, [&] { return digests_of(image_.memory(), pool_); });
    const ShardContent content{.pieces = image_.pieces(), .write = [&](File& file) {
                                 write_image(file, image_.memory());
                                 return digests.get();
                               }};
    const Manifest part = target.write_part({.run_id = "bench", .step = 1}, {}, content, 1);
    target.commit(merge({part}, "bench"));
  }

  void read_raw() const {
    File file = File::open_for_reading(raw_file());
    file.forget_cache();
    std::vector<std::byte> room(static_cast<size_t>(kTensorBytes));
    for (int64_t offset = 0; offset < file.size(); offset += kTensorBytes) {
      const auto bytes = static_cast<size_t>(std::min(kTensorBytes, file.size() - offset));
      file.read_at(offset, std::span(room).first(bytes));
    }
  }

  void read_checkpoint() const {
    Loaded loaded = store().open(1);
    File::open_for_reading(loaded.path() / loaded.manifest().shards.front().file).forget_cache();
    std::vector<std::byte> room(static_cast<size_t>(kTensorBytes));
    for (const TensorInfo& tensor : loaded.manifest().tensors)
      loaded.load_tensor(tensor.kind, tensor.name, Tensor(room.data(), tensor.dtype, tensor.shape));
  }

  void remove_files() const {
    ::unlink(raw_file().c_str());
    fs::remove_all(bench_.directory / "checkpoints");
  }

  // One large copy to memory that the driver gave, against the copies of a snapshot to memory that outlives the
  // process.
  RatePair measure_device_copies() {
    ThreadPool pool(1);
    Stream stream(pool, Device::cuda);
    Arena arena("bench", Device::cuda, image_.bytes() + Arena::kAlignment);
    const Tensor all = arena.allocate("all", DType::i32, {image_.bytes() / size_of(DType::i32)});
    const StagingMemory pinned(Device::cuda, all.bytes(), "bench");
    return measure(
        "copy from the GPU",
        [&] {
          copy(stream, all, Tensor(pinned.data(), all.dtype, all.shape));
          stream.wait();
        },
        [&] {
          int64_t offset = 0;
          std::vector<TensorCopy> copies;
          for (size_t i = 0; i < image_.pieces().size(); ++i) {
            const Tensor to = image_.tensor(i);
            auto* from = static_cast<std::byte*>(all.data) + offset;
            copies.push_back({.from = Tensor(from, to.dtype, to.shape, Device::cuda), .to = to});
            offset += to.bytes();
          }
          copy(stream, copies);
          stream.wait();
        });
  }

  const CheckpointBench& bench_;
  ShardImage image_;
  SharedMemory memory_;
  ThreadPool pool_{available_cores()};
};

}  // namespace

std::vector<RatePair> bench_checkpoint(const CheckpointBench& bench) {
  if (bench.bytes < kTensorBytes)
    user_error("a bench of {} bytes is too small: at least {}", bench.bytes, kTensorBytes);
  make_directory(bench.directory);
  return Bench(bench).run();
}

std::string describe(const std::vector<RatePair>& rates) {
  std::string text = fmt::format("{:<20} {:>12} {:>18} {:>10}\n", "", "raw GB/s", "checkpoint GB/s", "of raw");
  for (const RatePair& rate : rates) {
    text += fmt::format("{:<20} {:>12.2f} {:>18.2f} {:>9.1f}%\n", rate.what, rate.raw / 1e9, rate.checkpoint / 1e9,
                        100.0 * rate.checkpoint / rate.raw);
  }
  return text;
}

}  // namespace megalith::checkpoint
