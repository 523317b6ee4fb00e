#pragma once

namespace megalith::ops::cuda {

void launch_endless(void* stream);

}  // namespace megalith::ops::cuda
