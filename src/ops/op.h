#pragma once

#include <functional>
#include <string>

#include "core/stream.h"
#include "core/tensor.h"

namespace megalith::ops {

enum class OpKind { product, attention, memory };  // what bounds it: matrix units, those through softmax, or bandwidth

// What an operation must do at least: each input read once, each output written once.
struct OpCost {
  OpKind kind = OpKind::memory;
  double flops = 0.0;
  double bytes = 0.0;
  std::string shape;  // for people; operations of one name and shape cost the same
};

// An operation as it was asked for; `run` asks for it again, on the same memory.
struct OpCall {
  const char* name = "";
  OpCost cost;
  std::function<void(Stream&)> run;
};

using OpListener = std::function<void(const OpCall&)>;

// While it lives, the listener hears of every operation on the stream, before it runs.
class OpObservation {
 public:
  OpObservation(Stream& stream, OpListener listener);
  ~OpObservation();
  OpObservation(const OpObservation&) = delete;
  OpObservation& operator=(const OpObservation&) = delete;

 private:
  Stream& stream_;
  OpListener listener_;
};

// For MEGALITH_OP.
inline void tell_observer(Stream& stream, OpCall call) {
  (*static_cast<const OpListener*>(stream.observer()))(call);
}

}  // namespace megalith::ops

// Declares an operation: one entry that model code calls, and one implementation per device (same-stem files in cpu/
// and cuda/; no_cuda/ where a build has no CUDA). Every operation is asynchronous on the stream it is given, allocates
// nothing, and throws an internal error when shapes or types break its contract.
#define MEGALITH_OP(name, Arguments)                                                                              \
  namespace cpu {                                                                                                 \
  void name(Stream& stream, const Arguments& args);                                                               \
  }                                                                                                               \
  namespace cuda {                                                                                                \
  void name(Stream& stream, const Arguments& args);                                                               \
  }                                                                                                               \
  OpCost cost_of(const Arguments& args);                                                                          \
  inline void name(Stream& stream, const Arguments& args) {                                                       \
    if (stream.observer() != nullptr) [[unlikely]]                                                                \
      tell_observer(stream, {#name, cost_of(args), [args](Stream& again) {                                        \
                               again.device() == Device::cuda ? cuda::name(again, args) : cpu::name(again, args); \
                             }});                                                                                 \
    stream.device() == Device::cuda ? cuda::name(stream, args) : cpu::name(stream, args);                         \
  }
