#pragma once

#include "core/stream.h"
#include "core/tensor.h"

// Declares an operation: one entry that model code calls, and one implementation per device (same-stem files in cpu/
// and cuda/; no_cuda/ where a build has no CUDA). Every operation is asynchronous on the stream it is given, allocates
// nothing, and throws an internal error when shapes or types break its contract.
#define MEGALITH_OP(name, Arguments)                                                      \
  namespace cpu {                                                                         \
  void name(Stream& stream, const Arguments& args);                                       \
  }                                                                                       \
  namespace cuda {                                                                        \
  void name(Stream& stream, const Arguments& args);                                       \
  }                                                                                       \
  inline void name(Stream& stream, const Arguments& args) {                               \
    stream.device() == Device::cuda ? cuda::name(stream, args) : cpu::name(stream, args); \
  }
