#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"
#include "data/order/splits.h"

namespace megalith::data {

// What `model.data.data_prefix` names: [prefix], [prefix, prefix, ...] or [weight, prefix, weight, prefix, ...]. A
// prefix with `*` or `?` stands for all datasets that it matches, in the natural order of their names (2 before 10);
// a weight before it counts for each of them.
struct DataSources {
  std::vector<std::string> prefixes;
  std::vector<double> weights;  // shares of samples, as given; empty: each dataset is passed once, then again

  bool weighted() const { return !weights.empty(); }
};

// User error if the list is none of the three; `key` is its name in messages.
DataSources parse_data_prefix(const std::vector<std::string>& list, std::string_view key = "model.data.data_prefix");

// The datasets of one split where whole files are held out (model.data.validation_files, test_files): the last ones
// validate, the ones before them test, the others train. User error if a split that is asked for has none.
DataSources files_of_split(const DataSources& all, Split split, int64_t validation_files, int64_t test_files);

// weights / sum, as numpy computes it: the sum is numpy's pairwise one, so that the shares are Megatron's to the bit.
std::vector<double> normalised(std::span<const double> weights);

// How Megatron divides `samples` among weighted datasets.
struct BlendShares {
  std::vector<double> weights;    // by which samples are dealt
  std::vector<int64_t> requests;  // samples for which each dataset's own order is built, with 0.5 % to spare
  int64_t samples = 0;            // of the blend: at least what was asked for
};
BlendShares shares_of_blend(std::span<const double> weights, int64_t samples);

}  // namespace megalith::data
