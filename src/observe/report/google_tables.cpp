#include "observe/report/google_tables.h"

#include <array>

namespace megalith::observe {

namespace {
constexpr auto kModels = std::to_array<GoogleModel>({{"gpt3-5b", 6.69e13},
                                                     {"gpt3-175b", 2.2e15},
                                                     {"llama2-7b", 1.89e14},
                                                     {"llama2-70b", 1.82e15},
                                                     {"llama3-70b", 3.94e15},
                                                     {"llama3.1-8b", 4.74e14},
                                                     {"llama3.1-70b", 3.9129e15},
                                                     {"llama3.1-405b", 2.16533e16},
                                                     {"mixtral-7b", 3.4e14},
                                                     {"mixtral-8x7b", 3.4e14}});

constexpr auto kAccelerators = std::to_array<GoogleAccelerator>({{"b200", 2250, 4500},
                                                                 {"h100", 989, 1978},
                                                                 {"h200", 989, 1978},
                                                                 {"a100", 312, std::nullopt},
                                                                 {"v5e", 197, std::nullopt},
                                                                 {"v5p", 459, std::nullopt}});
}  // namespace

std::span<const GoogleModel> google_models() {
  return kModels;
}

std::span<const GoogleAccelerator> google_accelerators() {
  return kAccelerators;
}

}  // namespace megalith::observe
