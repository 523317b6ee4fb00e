#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/files/indexed_dataset.h"
#include "data/memory_file.h"

using megalith::data::MemoryFile;

// The first byte says how many bytes the tokens have and whether a good beginning is put before the rest, which is the
// index: most of the time should go into what comes behind the magic.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string index(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 2 == 0) index = std::string("MMIDIDX\0\0\1\0\0\0\0\0\0\0", 17) + index;
  const MemoryFile index_file(index);
  const MemoryFile token_file(std::string(data[0] / 2, '\1'));
  for (const bool map : {false, true}) {
    try {
      const megalith::data::IndexedDataset dataset(index_file.path(), token_file.path(), {.map_tokens = map});
      for (int64_t i = 0; i < dataset.sequences(); ++i) {
        std::vector<int32_t> tokens(static_cast<size_t>(dataset.length(i)));
        dataset.read(i, 0, tokens);
      }
      for (int64_t i = 0; i <= dataset.documents(); ++i) {
        if (dataset.document_begin(i) > dataset.sequences()) __builtin_trap();
      }
    } catch (const megalith::Error&) {
    }
  }
  return 0;
}
