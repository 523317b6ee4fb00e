#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace megalith::data {

// One sample of a blend: sample number `sample` of dataset number `dataset`.
struct BlendEntry {
  int32_t dataset = 0;
  int64_t sample = 0;
  bool operator==(const BlendEntry&) const = default;
};

// Megatron's greedy blend, bit for bit: sample i comes from the dataset that is furthest behind its share, that is the
// one with the largest weight x max(i, 1) - taken in double arithmetic; of equal ones the first. Entry i depends on the
// weights and on i alone, so a longer blend begins as a shorter one.
//
// With limits (Megatron's exhaustive blend) a dataset that has given its limit leaves the choice; when all have, the
// next round begins, whose samples of dataset d are numbered from limit d on.
//
// The plain rule looks at every dataset for every sample. Here datasets of equal weight take turns in one line; lines
// of similar weight form groups of up to about sqrt(lines), fewer where they are heavy; a group knows its leader, and
// until which step no other line of it can get ahead, given how fast the gap can shrink and how much rounding can do. A
// step compares the leaders and looks again only into the group that it took from. All comparisons that decide are
// those of the plain rule.
class BlendOrder {
 public:
  // Weights are shares of samples: above 0, with a sum of 1. `limits`: none, or one per dataset, above 0.
  explicit BlendOrder(std::span<const double> weights, std::span<const int64_t> limits = {});

  int64_t datasets() const { return datasets_; }
  int64_t position() const { return round_ * per_round_ + step_; }
  // What each dataset gave in this round (without limits: in all) before position().
  std::vector<int64_t> taken() const;
  // Continues at a position of which taken() is known. Data error if the two cannot belong together.
  void seek(int64_t position, std::span<const int64_t> taken);

  // The entries from position() on.
  void next(std::span<BlendEntry> out);

 private:
  // Datasets of one weight and one limit: in each turn they give one sample each, in order.
  struct Line {
    size_t begin = 0;  // its part of members_
    size_t end = 0;
    size_t front = 0;   // the member whose turn it is
    int64_t limit = 0;  // 0: none
    int64_t turn = 0;
  };

  BlendEntry step_once();
  void add_line(double weight, int64_t limit, std::span<const int32_t> members);
  void end_group();
  void advance(size_t line);
  void look_again(size_t group, double step);
  void renew_expired(double step);
  void restart();
  void show(size_t line);

  int64_t datasets_ = 0;
  int64_t per_round_ = 0;
  int64_t round_ = 0;
  int64_t step_ = 0;         // in this round
  std::vector<Line> lines_;  // by rising weight; groups are filled up with empty ones
  std::vector<int32_t> members_;

  // By line. A spent line and an empty one have taken an infinite number.
  std::vector<double> weight_;
  std::vector<double> taken_;
  std::vector<int32_t> front_;
  std::vector<double> error_;

  // By group, filled up alike.
  std::vector<size_t> group_begin_;  // and the end of the last
  std::vector<double> leader_weight_;
  std::vector<double> leader_taken_;
  std::vector<int32_t> leader_front_;
  std::vector<size_t> leader_;
  std::vector<double> expiry_;  // the first step for which the leader must be looked for again
  std::vector<double> heaviest_;
  std::vector<double> leader_error_;
  double earliest_expiry_ = 0.0;
};

}  // namespace megalith::data
