#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace megalith::data {

// Non-negative integers in 4 bytes each where the largest allows it, else in 8.
class CompactInts {
 public:
  CompactInts() = default;
  CompactInts(int64_t count, int64_t largest) {
    if (largest > int64_t{UINT32_MAX}) {
      values_ = std::vector<int64_t>(static_cast<size_t>(count));
    } else {
      values_ = std::vector<uint32_t>(static_cast<size_t>(count));
    }
  }

  int64_t size() const {
    return std::visit([](const auto& values) { return std::ssize(values); }, values_);
  }
  int64_t operator[](int64_t index) const {
    return std::visit([index](const auto& values) { return static_cast<int64_t>(values[static_cast<size_t>(index)]); },
                      values_);
  }
  void set(int64_t index, int64_t value) {
    std::visit(
        [index, value](auto& values) {
          using Value = typename std::remove_reference_t<decltype(values)>::value_type;
          values[static_cast<size_t>(index)] = static_cast<Value>(value);
        },
        values_);
  }
  // Calls action(std::span<T>) with the integers [begin, end).
  template <class Action>
  void apply(int64_t begin, int64_t end, Action&& action) {
    std::visit(
        [&](auto& values) {
          action(std::span(values).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
        },
        values_);
  }

 private:
  std::variant<std::vector<uint32_t>, std::vector<int64_t>> values_;
};

}  // namespace megalith::data
