#pragma once

#include <vector>

#include "checkpoint/format/shard_image.h"
#include "checkpoint/store.h"

namespace megalith::test {

// What one of several ranks gives to the checkpoint of a step: its rows of a matrix and of a moment of it.
class ExampleRank {
 public:
  static constexpr int64_t kRows = 2;
  static constexpr int64_t kColumns = 8;

  ExampleRank(checkpoint::Part place, int64_t step)
      : place_(place), step_(step), image_(pieces_of(place)), memory_(static_cast<size_t>(image_.bytes())) {
    image_.place_in(memory_);
    for (size_t piece = 0; piece < image_.pieces().size(); ++piece) {
      auto* values = static_cast<float*>(image_.tensor(piece).data);
      for (int64_t i = 0; i < kRows * kColumns; ++i)
        values[i] = value(step, image_.pieces()[piece].kind, place.rank * kRows * kColumns + i);
    }
  }
  ExampleRank(const ExampleRank&) = delete;
  ExampleRank& operator=(const ExampleRank&) = delete;

  static float value(int64_t step, checkpoint::TensorKind kind, int64_t index) {
    return static_cast<float>(step * 1000 + index * 4 + static_cast<int64_t>(kind));
  }

  checkpoint::Part place() const { return place_; }
  checkpoint::RunState state() const { return {.run_id = "run-1", .step = step_, .consumed_samples = step_ * 8}; }
  const checkpoint::ShardImage& image() const { return image_; }
  checkpoint::ShardContent content() const {
    return {.pieces = image_.pieces(), .write = [this](File& file) {
              file.write(image_.memory());
              ThreadPool pool(1);
              return checkpoint::digests_of(image_.memory(), pool);
            }};
  }

 private:
  static std::vector<checkpoint::ShardContent::Piece> pieces_of(checkpoint::Part place) {
    const Shape whole{kRows * place.ranks, kColumns};
    const checkpoint::Box box{{kRows * place.rank, 0}, {kRows, kColumns}};
    return {{"w", checkpoint::TensorKind::weights, DType::f32, whole, box},
            {"w", checkpoint::TensorKind::exp_avg, DType::f32, whole, box}};
  }

  checkpoint::Part place_;
  int64_t step_;
  checkpoint::ShardImage image_;
  std::vector<std::byte> memory_;
};

// Whether a checkpoint of so many of them holds what they gave. Reads every tensor.
inline bool holds_example(checkpoint::Loaded& loaded, int64_t step, int64_t ranks) {
  bool equal = loaded.manifest().state.step == step;
  const Shape whole{ExampleRank::kRows * ranks, ExampleRank::kColumns};
  for (const auto kind : {checkpoint::TensorKind::weights, checkpoint::TensorKind::exp_avg}) {
    std::vector<float> values(static_cast<size_t>(whole.elements()));
    loaded.load_tensor(kind, "w", Tensor(values.data(), DType::f32, whole));
    for (size_t i = 0; i < values.size(); ++i)
      equal = equal && values[i] == ExampleRank::value(step, kind, static_cast<int64_t>(i));
  }
  return equal;
}

}  // namespace megalith::test
