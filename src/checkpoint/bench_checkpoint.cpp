#include "checkpoint/bench_checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <future>
#include <optional>
#include <random>

#include "checkpoint/format/shard_image.h"
#include "core/arena.h"
#include "core/clock.h"
#include "core/device.h"
#include "core/error.h"
#include "core/process/shared_memory.h"
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
    std::vector<RatePair> rates = {measure_writes(), measure_reads()};
    remove_raw();
    remove_checkpoint();
    if (bench_.device == Device::cuda) rates.push_back(measure_device_copies());
    return rates;
  }

 private:
  // Seconds of all rounds.
  struct Spent {
    double raw = 0.0;
    double checkpoint = 0.0;
  };
  static void add_seconds(double& spent, const std::function<void()>& action) {
    const double begin = monotonic_seconds();
    action();
    spent += monotonic_seconds() - begin;
  }
  // Disks that others share are quick for a while and then are not: neither is always the first.
  static void add_both(Spent& spent, int64_t turn, const std::function<void()>& raw,
                       const std::function<void()>& checkpoint) {
    if (turn % 2 == 0) add_seconds(spent.raw, raw);
    add_seconds(spent.checkpoint, checkpoint);
    if (turn % 2 != 0) add_seconds(spent.raw, raw);
  }
  RatePair rates_of(const std::string& what, const Spent& spent) const {
    const double bytes = static_cast<double>(image_.bytes()) * bench_.rounds;
    return {what, bytes / spent.raw, bytes / spent.checkpoint};
  }

  fs::path raw_file() const { return bench_.directory / "raw"; }
  fs::path checkpoints() const { return bench_.directory / "checkpoints"; }
  Store store() const { return Store(checkpoints(), 1); }
  fs::path shard_file() const {
    const Loaded loaded = store().open(1);
    return loaded.path() / loaded.manifest().shards.front().file;
  }
  void remove_raw() const { ::unlink(raw_file().c_str()); }
  void remove_checkpoint() const { fs::remove_all(checkpoints()); }

  void write_raw() const {
    File file = File::create_new(raw_file());
    write_image(file, image_.memory());
    file.sync();
  }

  void write_checkpoint() {
    Store target = store();
    auto digests = std::async(std::launch::async, [&] { return digests_of(image_.memory(), pool_); });
    const ShardContent content{.pieces = image_.pieces(), .write = [&](File& file) {
                                 write_image(file, image_.memory());
                                 return digests.get();
                               }};
    const Manifest part = target.write_part({.run_id = "bench", .step = 1}, {}, content, 1);
    target.commit(merge({part}, "bench"));
  }

  RatePair measure_writes() {
    Spent spent;
    for (int round = 0; round < bench_.rounds; ++round) {
      remove_raw();
      remove_checkpoint();
      add_both(
          spent, round, [&] { write_raw(); }, [&] { write_checkpoint(); });
    }
    return rates_of("write", spent);
  }

  // Tensor by tensor in turn: how quick a disk is may change within a second.
  RatePair measure_reads() {
    Spent spent;
    std::vector<std::byte> room(static_cast<size_t>(kTensorBytes));
    for (int round = 0; round < bench_.rounds; ++round) {
      const File file = File::open_for_reading(raw_file());
      file.forget_cache();
      File::open_for_reading(shard_file()).forget_cache();
      std::optional<Loaded> loaded;
      add_seconds(spent.checkpoint, [&] { loaded.emplace(store().open(1)); });
      for (int64_t i = 0; i < std::ssize(loaded->manifest().tensors); ++i) {
        const TensorInfo& tensor = loaded->manifest().tensors[static_cast<size_t>(i)];
        const Tensor into(room.data(), tensor.dtype, tensor.shape);
        add_both(
            spent, i, [&] { file.read_at(i * kTensorBytes, room); },
            [&] { loaded->load_tensor(tensor.kind, tensor.name, into); });
      }
    }
    return rates_of("read", spent);
  }

  // One large copy to memory that the driver gave, against the copies of a snapshot to memory that outlives the
  // process.
  RatePair measure_device_copies() {
    ThreadPool pool(1);
    Stream stream(pool, Device::cuda);
    Arena arena("bench", Device::cuda, image_.bytes() + Arena::kAlignment);
    const Tensor all = arena.allocate("all", DType::i32, {image_.bytes() / size_of(DType::i32)});
    const StagingMemory pinned(Device::cuda, all.bytes(), "bench");
    int64_t offset = 0;
    std::vector<TensorCopy> copies;
    for (size_t i = 0; i < image_.pieces().size(); ++i) {
      const Tensor to = image_.tensor(i);
      auto* from = static_cast<std::byte*>(all.data) + offset;
      copies.push_back({.from = Tensor(from, to.dtype, to.shape, Device::cuda), .to = to});
      offset += to.bytes();
    }
    Spent spent;
    for (int round = 0; round < bench_.rounds; ++round) {
      const auto copy_raw = [&] {
        copy(stream, all, Tensor(pinned.data(), all.dtype, all.shape));
        stream.wait();
      };
      const auto copy_pieces = [&] {
        copy(stream, copies);
        stream.wait();
      };
      add_both(spent, round, copy_raw, copy_pieces);
    }
    return rates_of("copy from the GPU", spent);
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
