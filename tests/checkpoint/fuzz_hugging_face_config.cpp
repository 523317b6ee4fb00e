#include <string_view>

#include "checkpoint/hugging_face/hugging_face_config.h"
#include "core/error.h"

// Text of any kind is refused with a data error, or gives sizes that can be reckoned with.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace megalith;
  try {
    const checkpoint::ImportedConfig config =
        checkpoint::read_hugging_face_config({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (config.vocabulary < 1 || config.model.make_vocab_size_divisible_by < 1) __builtin_trap();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
  }
  return 0;
}
