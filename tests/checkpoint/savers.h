#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "checkpoint/example_ranks.h"
#include "checkpoint/saver.h"

namespace megalith::test {

// The savers of the ranks of a run, in one process.
class Savers {
 public:
  using Change = std::function<void(checkpoint::Saver::Options&)>;

  Savers(int64_t ranks, comm::Board& board, const std::filesystem::path& persistent, const Change& change = {}) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      checkpoint::Saver::Options options{
          .place = {.rank = rank, .ranks = ranks}, .board = &board, .deadline = 20.0, .persistent = persistent};
      if (change) change(options);
      places_.push_back(options.place);
      savers_.push_back(std::make_unique<checkpoint::Saver>(std::move(options)));
    }
  }

  void begin(int64_t rank, int64_t step, const std::function<void(checkpoint::Saver::Job&)>& change = {}) {
    auto& example = examples_[rank];
    example = std::make_unique<ExampleRank>(places_[static_cast<size_t>(rank)], step);
    checkpoint::Saver::Job job{
        .state = example->state(), .image = &example->image(), .finish_image = [](ThreadPool&) {}};
    if (change) change(job);
    of(rank).begin(std::move(job));
  }

  checkpoint::Saver::Outcome end(int64_t rank) {
    of(rank).wait();
    return *of(rank).take_outcome();
  }

  std::vector<checkpoint::Saver::Outcome> save(int64_t step,
                                               const std::function<void(checkpoint::Saver::Job&)>& change = {}) {
    for (int64_t rank = 0; rank < std::ssize(savers_); ++rank) begin(rank, step, change);
    std::vector<checkpoint::Saver::Outcome> outcomes;
    for (int64_t rank = 0; rank < std::ssize(savers_); ++rank) outcomes.push_back(end(rank));
    return outcomes;
  }

  checkpoint::Saver& of(int64_t rank) { return *savers_[static_cast<size_t>(rank)]; }

 private:
  std::map<int64_t, std::unique_ptr<ExampleRank>> examples_;
  std::vector<checkpoint::Part> places_;
  std::vector<std::unique_ptr<checkpoint::Saver>> savers_;
};

inline void expect_good(const std::vector<checkpoint::Saver::Outcome>& outcomes) {
  for (const checkpoint::Saver::Outcome& outcome : outcomes) EXPECT_EQ(outcome.failure, "");
}

}  // namespace megalith::test
