#include <cuda_runtime_api.h>

#include <vector>

#include "core/cuda/check.h"
#include "core/cuda_runtime.h"

namespace megalith::cuda {

namespace {
cudaStream_t as_stream(void* stream) {
  return static_cast<cudaStream_t>(stream);
}
cudaEvent_t as_event(void* event) {
  return static_cast<cudaEvent_t>(event);
}
}  // namespace

void* create_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a GPU stream");
  return stream;
}

void destroy_stream(void* stream) noexcept {
  cudaStreamDestroy(as_stream(stream));
}

void wait_for_stream(void* stream) {
  check(cudaStreamSynchronize(as_stream(stream)), "waiting for the GPU");
}

void copy(void* stream, const void* from, void* to, int64_t bytes) {
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, as_stream(stream)),
        "copying to or from the GPU");
}

void copy_many(void* stream, std::span<const MemoryCopy> copies) {
  std::vector<const void*> from;
  std::vector<void*> to;
  std::vector<size_t> bytes;
  for (const MemoryCopy& each : copies) {
    if (each.bytes == 0) continue;
    from.push_back(each.from);
    to.push_back(each.to);
    bytes.push_back(static_cast<size_t>(each.bytes));
  }
  if (bytes.empty()) return;
  cudaMemcpyAttributes attributes = {};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  attributes.flags = cudaMemcpyFlagPreferOverlapWithCompute;
  size_t first = 0;  // that these attributes are for
  check(cudaMemcpyBatchAsync(to.data(), from.data(), bytes.data(), bytes.size(), &attributes, &first, 1,
                             as_stream(stream)),
        "copying to or from the GPU");
}

void* create_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "making a GPU event");
  return event;
}

void destroy_event(void* event) noexcept {
  cudaEventDestroy(as_event(event));
}

void record_event(void* event, void* stream) {
  check(cudaEventRecord(as_event(event), as_stream(stream)), "recording a GPU event");
}

void wait_for_event(void* event) {
  check(cudaEventSynchronize(as_event(event)), "waiting for the GPU");
}

void hold_stream(void* stream, void* event) {
  check(cudaStreamWaitEvent(as_stream(stream), as_event(event)), "letting a stream wait for another");
}

double seconds_between(void* begin, void* end) {
  float milliseconds = 0.0F;
  check(cudaEventElapsedTime(&milliseconds, as_event(begin), as_event(end)), "reading GPU events");
  return static_cast<double>(milliseconds) * 1e-3;
}

void begin_graph(void* stream) {
  check(cudaStreamBeginCapture(as_stream(stream), cudaStreamCaptureModeThreadLocal), "beginning to record a graph");
}

void drop_graph(void* stream) noexcept {
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(as_stream(stream), &graph);
  cudaGraphDestroy(graph);
}

void* end_graph(void* stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(as_stream(stream), &graph), "recording a graph");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  check(status, "instantiating a graph");
  return executable;
}

void launch_graph(void* graph, void* stream) {
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), as_stream(stream)), "launching a graph");
}

void destroy_graph(void* graph) noexcept {
  cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
}

}  // namespace megalith::cuda
