#pragma once

#include <functional>

#include "core/stream.h"
#include "ops/contract.h"
#include "ops/op_cost.h"

namespace megalith::ops {

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

// Declares an operation: one entry that model code calls; its contract and its cost, which the file of the header's
// stem defines for all devices; and one implementation per device, in files of that stem in cpu/ and cuda/ (no_cuda/
// where a build has no CUDA). Every operation is asynchronous on the stream it is given, allocates nothing, and throws
// an internal error when its arguments break the contract. What only one device cannot do, or only the CPU can see (the
// values in a tensor), its implementation refuses.
#define MEGALITH_OP(name, Arguments)                                                                              \
  namespace cpu {                                                                                                 \
  void name(Stream& stream, const Arguments& args);                                                               \
  }                                                                                                               \
  namespace cuda {                                                                                                \
  void name(Stream& stream, const Arguments& args);                                                               \
  }                                                                                                               \
  void check(const Contract& contract, const Arguments& args);                                                    \
  OpCost cost_of(const Arguments& args);                                                                          \
  inline void name(Stream& stream, const Arguments& args) {                                                       \
    check(Contract(#name, stream.device(), stream.threads()), args);                                              \
    if (stream.observer() != nullptr) [[unlikely]]                                                                \
      tell_observer(stream, {#name, cost_of(args), [args](Stream& again) {                                        \
                               again.device() == Device::cuda ? cuda::name(again, args) : cpu::name(again, args); \
                             }});                                                                                 \
    if (stream.is_shadow()) return;                                                                               \
    stream.device() == Device::cuda ? cuda::name(stream, args) : cpu::name(stream, args);                         \
  }
