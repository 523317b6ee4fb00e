#pragma once

#include <map>
#include <memory>
#include <utility>

#include "core/arena.h"
#include "core/stream.h"

namespace megalith::comm {

// Random normal values in the memory of a device, drawn once, from which messages are copied again and again.
class Noise {
 public:
  explicit Noise(Device device) : device_(device) {}

  // (2^20) with this standard deviation, on the stream.
  const Tensor& of(Stream& stream, DType dtype, double scale);

 private:
  struct Made {
    std::unique_ptr<Arena> memory;
    Tensor values;
  };

  Device device_;
  std::map<std::pair<DType, double>, Made> made_;
};

}  // namespace megalith::comm
