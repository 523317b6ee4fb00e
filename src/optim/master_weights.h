#pragma once

#include "core/tensor.h"

namespace megalith::optim {

// Master weights are not stored: bf16 weights and 16 bits beside each are together fp32. These put them together for a
// checkpoint and take them apart again, in host memory.
void join_masters(const Tensor& weights, const Tensor& remainder, const Tensor& master);
// The remainder lies in the back half of the master's memory.
void join_masters_in_place(const Tensor& weights, const Tensor& master);
void split_masters(const Tensor& master, const Tensor& weights, const Tensor& remainder);

}  // namespace megalith::optim
