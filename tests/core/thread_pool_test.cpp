#include "core/thread_pool.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace megalith {
namespace {

TEST(ThreadPool, RunsEveryTileOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const int64_t tiles : {0, 1, 2, 7, 1000}) {
      std::vector<int> seen(static_cast<size_t>(tiles), 0);
      pool.run(tiles, [&](int64_t i) { ++seen[static_cast<size_t>(i)]; });
      for (const int count : seen) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, RethrowsAndStaysUsable) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.run(100,
                        [](int64_t i) {
                          if (i == 13) throw std::runtime_error("tile 13");
                        }),
               std::runtime_error);
  std::atomic<int> count{0};
  pool.run(10, [&](int64_t) { ++count; });
  EXPECT_EQ(count, 10);
}

}  // namespace
}  // namespace megalith
