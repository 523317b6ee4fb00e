#include "checkpoint/store.h"

#include <gtest/gtest.h>

#include "checkpoint/file_names.h"
#include "checkpoint/fixtures.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::ExampleRun;
using testing::TempDir;

TEST(Store, RoundTrip) {
  const TempDir directory;
  Store store(directory / "runs/one/checkpoints");
  EXPECT_TRUE(store.list().empty());
  EXPECT_FALSE(store.latest_verified().step.has_value());

  const ExampleRun run(20);
  const SaveResult result = store.save(run.snapshot());
  EXPECT_TRUE(result.warnings.empty());
  EXPECT_EQ(result.path.filename(), "step-00000020");
  EXPECT_EQ(result.bytes, static_cast<int64_t>(fs::file_size(result.path / "shard-g1-r00000.safetensors")));
  EXPECT_EQ(test::bytes_of(store.directory() / kTrackerName), "20");

  Loaded loaded = store.open(20);
  EXPECT_TRUE(run.equals(loaded));
  EXPECT_TRUE(loaded.has(TensorKind::master, "layers.0.mlp.weight"));
  EXPECT_FALSE(loaded.has(TensorKind::master, "layers.0.norm.bias"));
  loaded.verify();
  Loaded by_path = Loaded::open(result.path);
  EXPECT_TRUE(run.equals(by_path));
  EXPECT_EQ(store.latest_verified().step, 20);
}

// Three ranks hold a (6, 4) tensor: two its left columns, cut by rows, one its right column.
struct Holding {
  Shape offset;
  Shape extent;
};
constexpr int64_t kRows = 6;
constexpr int64_t kColumns = 4;
const Holding kHoldings[] = {{{0, 0}, {2, 3}}, {{2, 0}, {4, 3}}, {{0, 3}, {6, 1}}};

float value_at(int64_t row, int64_t column) {
  return static_cast<float>(10 * row + column);
}

Manifest write_part_of(const Store& store, int64_t rank) {
  const Holding& holding = kHoldings[rank];
  std::vector<float> values;
  for (int64_t row = 0; row < holding.extent[0]; ++row) {
    for (int64_t column = 0; column < holding.extent[1]; ++column)
      values.push_back(value_at(holding.offset[0] + row, holding.offset[1] + column));
  }
  const Box box{holding.offset, holding.extent};
  const Shape whole{kRows, kColumns};
  ShardContent content{.pieces = {{"w", TensorKind::master, DType::f32, whole, box}}, .write = {}};
  content.write = [&](File& file) {
    const TensorView view{stored_name(TensorKind::master, "w", whole, box),
                          Tensor(values.data(), DType::f32, holding.extent)};
    return write_safetensors(file, std::span(&view, 1));
  };
  return store.write_part({.run_id = "r", .step = 5}, {.rank = rank, .ranks = 3}, content, 1);
}

TEST(Store, RanksSaveTogetherAndAnyBoxIsRead) {
  const TempDir directory;
  Store store(directory.path());
  std::vector<Manifest> parts;
  for (int64_t rank = 0; rank < 3; ++rank) parts.push_back(write_part_of(store, rank));
  EXPECT_EQ(store.list()[0].status, StepStatus::incomplete);
  const SaveResult result = store.commit(merge(parts, "parts"));
  EXPECT_TRUE(result.warnings.empty());
  EXPECT_EQ(store.latest_verified().step, 5);
  Loaded loaded = store.open(5);
  for (int64_t top = 0; top < kRows; ++top) {
    for (int64_t left = 0; left < kColumns; ++left) {
      for (int64_t bottom = top + 1; bottom <= kRows; ++bottom) {
        for (int64_t right = left + 1; right <= kColumns; ++right) {
          float values[kRows * kColumns];
          const Box box{{top, left}, {bottom - top, right - left}};
          loaded.load_box(TensorKind::master, "w", box, Tensor(values, DType::f32, box.extent));
          for (int64_t i = 0; i < box.extent.elements(); ++i)
            ASSERT_EQ(values[i], value_at(top + i / (right - left), left + i % (right - left)));
        }
      }
    }
  }
}

TEST(Store, AFailedRankTakesItsPartBack) {
  const TempDir directory;
  Store store(directory.path());
  const Manifest first = write_part_of(store, 0);
  const Manifest second = write_part_of(store, 1);
  store.discard(first);
  EXPECT_TRUE(fs::exists(store.directory_of(5) / second.shards[0].file));
  store.discard(second);
  EXPECT_TRUE(store.list().empty());
}

TEST(Store, AShardIsReadFromThePlaceThatHasIt) {
  const TempDir directory;
  Store near(directory / "near");
  Store far(directory / "far");
  std::vector<Manifest> parts;
  for (int64_t rank = 0; rank < 3; ++rank) parts.push_back(write_part_of(far, rank)), write_part_of(near, rank);
  const Manifest whole = merge(parts, "parts");
  const fs::path damaged = near.directory_of(5) / whole.shards[1].file;
  std::string bytes = test::bytes_of(damaged);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  test::overwrite(damaged, bytes);
  fs::remove(near.directory_of(5) / whole.shards[2].file);
  Loaded loaded("step 5", whole, [&](const ShardInfo& shard) {
    return std::vector<ShardPlace>{near.directory_of(5) / shard.file, far.directory_of(5) / shard.file};
  });
  float values[kRows * kColumns];
  loaded.load_tensor(TensorKind::master, "w", Tensor(values, DType::f32, {kRows, kColumns}));
  for (int64_t i = 0; i < kRows * kColumns; ++i) EXPECT_EQ(values[i], value_at(i / kColumns, i % kColumns));
  ASSERT_EQ(loaded.bad_places().size(), 1u);
  EXPECT_EQ(loaded.bad_places()[0].file, damaged);
  EXPECT_NE(loaded.bad_places()[0].reason.find("do not match their digest"), std::string::npos);
  loaded.verify();
}

TEST(Store, ListsNewestFirstAndIgnoresStrangers) {
  const TempDir directory;
  Store store(directory.path());
  for (const int64_t step : {5, 100, 20}) store.save(ExampleRun(step).snapshot());
  fs::create_directory(directory / "notes");
  fs::create_directory(directory / "step-7");
  fs::create_directory(directory / "step-00000200");
  fs::create_directory_symlink(directory / "step-00000020", directory / "step-00000300");
  const std::vector<StepInfo> steps = store.list();
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[0].step, 200);
  EXPECT_EQ(steps[0].status, StepStatus::incomplete);
  EXPECT_EQ(steps[1].step, 100);
  EXPECT_EQ(steps[1].status, StepStatus::committed);
  EXPECT_EQ(steps[3].step, 5);
  const Latest latest = store.latest_verified();
  EXPECT_EQ(latest.step, 100);
  ASSERT_EQ(latest.passed_over.size(), 1u);
  EXPECT_EQ(latest.passed_over[0].name, "step-00000200");
}

TEST(Store, AStepCanBeSavedAgain) {
  const TempDir directory;
  Store store(directory.path());
  ExampleRun first(20);
  store.save(first.snapshot());
  ExampleRun second(20);
  Snapshot changed = second.snapshot();
  changed.state.consumed_samples = 99;
  EXPECT_TRUE(store.save(changed).warnings.empty());
  EXPECT_EQ(store.open(20).manifest().state.consumed_samples, 99);
  EXPECT_TRUE(fs::exists(directory / "step-00000020/shard-g2-r00000.safetensors"));
  EXPECT_FALSE(fs::exists(directory / "step-00000020/shard-g1-r00000.safetensors"));
}

TEST(Store, ALeftoverWithoutManifestDoesNotBlock) {
  const TempDir directory;
  Store store(directory.path());
  fs::create_directory(directory / "step-00000020");
  test::overwrite(directory / "step-00000020/shard-g1-r00000.safetensors", "half");
  const ExampleRun run(20);
  store.save(run.snapshot());
  Loaded loaded = store.open(20);
  EXPECT_TRUE(run.equals(loaded));
  EXPECT_EQ(loaded.manifest().shards[0].file, "shard-g2-r00000.safetensors");
  EXPECT_FALSE(fs::exists(directory / "step-00000020/shard-g1-r00000.safetensors"));
}

TEST(Store, RefusesWhatIsNotThere) {
  const TempDir directory;
  Store store(directory.path());
  error_of(ErrorKind::data, [&] { store.open(3); });
  error_of(ErrorKind::data, [&] { Loaded::open(directory.path()); });
  const ExampleRun run(20);
  store.save(run.snapshot());
  Loaded loaded = store.open(20);
  float memory[30];
  error_of(ErrorKind::data, [&] { loaded.load_tensor(TensorKind::master, "other", Tensor(memory, DType::f32, {30})); });
  error_of(ErrorKind::data,
           [&] { loaded.load_tensor(TensorKind::master, "layers.0.mlp.weight", Tensor(memory, DType::f32, {30})); });
}

TEST(Store, OpensWhatAUserNames) {
  const TempDir directory;
  Store store(directory.path());
  std::vector<PassedOver> passed_over;
  error_of(ErrorKind::user, [&] { open_checkpoint(directory.path(), passed_over); });
  error_of(ErrorKind::user, [&] { open_checkpoint(directory / "absent", passed_over); });
  for (const int64_t step : {10, 20}) store.save(ExampleRun(step).snapshot());
  EXPECT_EQ(open_checkpoint(directory.path(), passed_over).manifest().state.step, 20);
  EXPECT_TRUE(passed_over.empty());
  fs::remove(directory / "step-00000020/manifest.json");
  EXPECT_EQ(open_checkpoint(directory.path(), passed_over).manifest().state.step, 10);
  EXPECT_EQ(passed_over.size(), 1u);
  EXPECT_EQ(open_checkpoint(directory / "step-00000010", passed_over).manifest().state.step, 10);
  error_of(ErrorKind::data, [&] { open_checkpoint(directory / "step-00000020", passed_over); });
}

TEST(Store, ADirectoryUnderAnotherNameIsRefused) {
  const TempDir directory;
  Store store(directory.path());
  store.save(ExampleRun(20).snapshot());
  fs::rename(directory / "step-00000020", directory / "step-00000030");
  EXPECT_NE(error_of(ErrorKind::data, [&] { store.open(30); }).find("of step 20"), std::string::npos);
  EXPECT_FALSE(store.latest_verified().step.has_value());
}

TEST(Store, LinksAreNotFollowed) {
  const TempDir directory;
  Store store(directory.path());
  const fs::path step = store.save(ExampleRun(20).snapshot()).path;
  const fs::path shard = step / "shard-g1-r00000.safetensors";
  fs::rename(shard, directory / "elsewhere");
  fs::create_symlink(directory / "elsewhere", shard);
  EXPECT_NE(error_of(ErrorKind::data, [&] { store.open(20); }).find("not a regular file"), std::string::npos);
  fs::create_directory(directory / "target");
  fs::create_directory_symlink(directory / "target", directory / "step-00000040");
  error_of(ErrorKind::data, [&] { store.save(ExampleRun(40).snapshot()); });
  EXPECT_TRUE(fs::is_empty(directory / "target"));
}

TEST(Store, UnusableDirectory) {
  const TempDir directory;
  test::overwrite(directory / "file", "x");
  Store store(directory / "file/checkpoints");
  error_of(ErrorKind::io, [&] { store.save(ExampleRun(1).snapshot()); });
}

TEST(Store, ManyChunks) {
  const TempDir directory;
  std::vector<float> large(10'000'000);
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<float>(i);
  Snapshot snapshot = ExampleRun(1).snapshot();
  snapshot.tensors = {{"large", TensorKind::weights, Tensor(large.data(), DType::f32, {10'000'000})}};
  Store store(directory.path());
  store.save(snapshot);
  Loaded loaded = store.open(1);
  EXPECT_EQ(loaded.manifest().shards[0].digests.chunks.size(), 3u);
  std::vector<float> again(large.size());
  loaded.load_tensor(TensorKind::weights, "large", Tensor(again.data(), DType::f32, {10'000'000}));
  EXPECT_EQ(large, again);
}

}  // namespace
}  // namespace megalith::checkpoint
