#pragma once

#include "train/bench/rank_bench.h"

namespace megalith::cli {

// `megalith bench step --as-rank`: what was measured, for people.
std::string describe(const config::Run& run, const train::RankBenchResult& result);

}  // namespace megalith::cli
