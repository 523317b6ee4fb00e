#include "core/device.h"

#include "core/cuda_runtime.h"

namespace megalith {

namespace {
[[noreturn]] void refuse() {
  user_error("a GPU was asked for, but this build of Megalith has no CUDA; use trainer.accelerator=cpu");
}
}  // namespace

std::vector<Accelerator> find_accelerators() {
  return {};
}
void require_accelerator() {
  refuse();
}
DeviceMemory device_memory() {
  refuse();
}

namespace cuda {
void* acquire_memory(int64_t, const std::string& owner) {
  user_error("arena '{}' was asked for on a GPU, but this build of Megalith has no CUDA; use trainer.accelerator=cpu",
             owner);
}
void release_memory(void*) noexcept {}
void* acquire_pinned_memory(int64_t, const std::string&) {
  refuse();
}
void release_pinned_memory(void*) noexcept {}
void pin_memory(void*, int64_t) {
  refuse();
}
void unpin_memory(void*) noexcept {}
void* create_stream() {
  refuse();
}
void destroy_stream(void*) noexcept {}
void wait_for_stream(void*) {
  refuse();
}
void copy(void*, const void*, void*, int64_t) {
  refuse();
}
void copy_many(void*, std::span<const MemoryCopy>) {
  refuse();
}
void* create_event() {
  refuse();
}
void destroy_event(void*) noexcept {}
void record_event(void*, void*) {
  refuse();
}
void wait_for_event(void*) {
  refuse();
}
void hold_stream(void*, void*) {
  refuse();
}
double seconds_between(void*, void*) {
  refuse();
}
void begin_graph(void*) {
  refuse();
}
void* end_graph(void*) {
  refuse();
}
void drop_graph(void*) noexcept {}
void launch_graph(void*, void*) {
  refuse();
}
void destroy_graph(void*) noexcept {}
}  // namespace cuda

}  // namespace megalith
