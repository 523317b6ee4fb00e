#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>

#include "core/error.h"
#include "core/file.h"
#include "resilience/decide/ladder.h"
#include "resilience/simulation/simulation.h"

// simulate_resilience FIRST COUNT [MIN_NODES MAX_NODES [POLICY_FILE]]: these seeds, one line each where an invariant is
// violated, and what the runs came to. With COUNT 1 it prints the story.
int main(int argc, char** argv) {
  using namespace megalith::resilience::testing;
  const auto number = [&](int index, int64_t otherwise) {
    int64_t value = otherwise;
    if (index < argc) {
      const std::string text = argv[index];
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size() || value < 0) {
        fmt::print(stderr, "'{}' is not a number\n", text);
        std::exit(2);
      }
    }
    return value;
  };
  const int64_t first = number(1, 1);
  const int64_t count = number(2, 1);
  SimulationOptions options{.min_nodes = number(3, 2), .max_nodes = number(4, 16), .tells_story = count == 1};
  options.few_faults = options.min_nodes > 16;
  try {
    if (argc > 5) options.policy = megalith::read_text(argv[5]);
    megalith::resilience::Ladder().replace_rows(options.policy.empty() ? "{}" : options.policy,
                                                argc > 5 ? argv[5] : "");
  } catch (const megalith::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  std::map<int64_t, int64_t> codes;
  int64_t violations = 0;
  int64_t generations = 0;
  double seconds = 0.0;
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t seed = first; seed < first + count; ++seed) {
    const SimulationResult result = simulate(static_cast<uint64_t>(seed), options);
    if (count == 1) fmt::print("{}", result.story);
    if (result.violated != Invariant::none) {
      ++violations;
      fmt::print("seed {}: {}: {}\n", seed, name_of(result.violated), result.how);
    }
    ++codes[result.exit_code];
    generations += result.generations;
    seconds += result.seconds;
  }
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print(
      "seeds {} to {}: {} violations; {} generations, {:.0f} s simulated in {:.1f} s, {:.0f} seeds/s; exit codes",
      first, first + count - 1, violations, generations, seconds, took, static_cast<double>(count) / took);
  for (const auto& [code, times] : codes) fmt::print(" {}: {}", code, times);
  fmt::print("\n");
  return violations == 0 ? 0 : 1;
}
