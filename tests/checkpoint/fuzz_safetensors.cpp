#include <cstring>
#include <vector>

#include "checkpoint/format/safetensors.h"
#include "core/error.h"

// A file of any bytes is refused with a data error or read within its bounds.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace megalith;
  try {
    const checkpoint::SafetensorsReader reader(
        "fuzz", static_cast<int64_t>(size), [data, size](int64_t offset, std::span<std::byte> into) {
          if (offset < 0 || static_cast<size_t>(offset) > size || into.size() > size - static_cast<size_t>(offset))
            __builtin_trap();
          if (!into.empty()) std::memcpy(into.data(), data + offset, into.size());
        });
    for (const checkpoint::TensorEntry& entry : reader.entries()) {
      const auto shape = checkpoint::to_shape(entry.shape);
      if (!entry.dtype || !shape || shape->rank() == 0) continue;
      std::vector<std::byte> memory(static_cast<size_t>(entry.bytes));
      reader.read(entry.name, Tensor(memory.data(), *entry.dtype, *shape));
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
  }
  return 0;
}
