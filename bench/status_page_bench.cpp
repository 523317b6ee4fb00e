// What a rank pays for saying how far it has come, and a monitor for reading it. A step writes a few of these per
// micro batch and collective; each must stay below 200 ns.
//
//   status_page_bench
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "core/process/status_page.h"
#include "core/process/status_reader.h"

namespace {

using namespace megalith;

// In memory, where ranks have theirs.
class PageFile {
 public:
  PageFile() : path_("/dev/shm/status_page_bench." + std::to_string(::getpid())) {
    StatusPage::create(path_, {.run = "bench"});
  }
  ~PageFile() { std::filesystem::remove(path_); }
  PageFile(const PageFile&) = delete;
  PageFile& operator=(const PageFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void begin_step(benchmark::State& state) {
  const PageFile file;
  StatusPage page(file.path(), 0, 0);
  int64_t step = 0;
  for (auto _ : state) page.begin_step(step++);
}
BENCHMARK(begin_step);

void begin_micro_batch(benchmark::State& state) {
  const PageFile file;
  StatusPage page(file.path(), 0, 0);
  int64_t micro_batch = 0;
  for (auto _ : state) page.begin_micro_batch(micro_batch++);
}
BENCHMARK(begin_micro_batch);

void call_entered_and_finished(benchmark::State& state) {
  const PageFile file;
  StatusPage page(file.path(), 0, 0);
  StatusPage::Group group = page.add_group("replicas", std::array{0, 1}, 0);
  for (auto _ : state) {
    group.entered({.operation = "reduce_scatter", .bytes = 4096});
    group.finished();
  }
}
BENCHMARK(call_entered_and_finished);

void stop_is_asked(benchmark::State& state) {
  const PageFile file;
  const StatusPage page(file.path(), 0, 0);
  for (auto _ : state) benchmark::DoNotOptimize(page.stop_is_asked());
}
BENCHMARK(stop_is_asked);

void read_by_a_monitor(benchmark::State& state) {
  const PageFile file;
  StatusPage page(file.path(), 0, 0);
  for (int i = 0; i < StatusPage::kGroups; ++i)
    page.add_group("group", std::array{0, 1}, 0).entered({.operation = "barrier"});
  const StatusReader reader(file.path());
  for (auto _ : state) benchmark::DoNotOptimize(reader.read());
}
BENCHMARK(read_by_a_monitor);

}  // namespace

BENCHMARK_MAIN();
