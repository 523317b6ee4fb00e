#include "core/error.h"
#include "plan/rates/rates.h"

// Rates are refused with a user error or give times above 0.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace megalith;
  try {
    plan::Rates rates;
    rates.add({reinterpret_cast<const char*>(data), size}, "rates.csv");
    const plan::OperationTime time = rates.time_of("gemm", {.flops = 1e9, .bytes = 1e6, .shape = "bf16 8x8x8 nt"});
    if (!(time.seconds >= 0.0)) __builtin_trap();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::user) __builtin_trap();
  }
  return 0;
}
