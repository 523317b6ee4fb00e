#pragma once

#include <cstdint>
#include <span>
#include <string>

// The few calls of the CUDA runtime that the core makes; each throws a device error. In no_cuda/ they say that this
// build has no CUDA.

namespace megalith::cuda {

void* acquire_memory(int64_t bytes, const std::string& owner);
void release_memory(void* memory) noexcept;
// Host memory that the GPU reads and writes by itself.
void* acquire_pinned_memory(int64_t bytes, const std::string& owner);
void release_pinned_memory(void* memory) noexcept;
// The same for memory that is there already.
void pin_memory(void* memory, int64_t bytes);
void unpin_memory(void* memory) noexcept;

void* create_stream();
void destroy_stream(void* stream) noexcept;
void wait_for_stream(void* stream);
void copy(void* stream, const void* from, void* to, int64_t bytes);
struct MemoryCopy {
  const void* from = nullptr;
  void* to = nullptr;
  int64_t bytes = 0;
};
// In any order. Of single copies a stream takes about a thousand before the call waits for the first of them.
void copy_many(void* stream, std::span<const MemoryCopy> copies);

void* create_event();
void destroy_event(void* event) noexcept;
void record_event(void* event, void* stream);
void wait_for_event(void* event);
// What is asked of the stream from here on waits for the event.
void hold_stream(void* stream, void* event);
double seconds_between(void* begin, void* end);

// From here on what this thread asks of the stream is recorded and not run, until one of the next two.
void begin_graph(void* stream);
void* end_graph(void* stream);
void drop_graph(void* stream) noexcept;
void launch_graph(void* graph, void* stream);
void destroy_graph(void* graph) noexcept;

}  // namespace megalith::cuda
