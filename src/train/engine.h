#pragma once

#include <array>
#include <memory>
#include <vector>

#include "checkpoint/store.h"
#include "config/run_config.h"
#include "cost/memory.h"
#include "data/batch.h"
#include "model/chunk.h"
#include "model/memory_plan.h"
#include "ops/plans.h"
#include "ops/step_scalars.h"
#include "optim/optimizer.h"
#include "train/batch_buffers.h"

namespace megalith::train {

// Loads a tensor of a checkpoint into the memory of the stream's device.
void load_to_device(checkpoint::Loaded& checkpoint, Stream& stream, const checkpoint::NamedTensor& tensor);

// The arenas of one rank, sized by the memory table before anything is computed.
struct Arenas {
  Arenas(Device device, const cost::MemoryTable& table, bool training);

  int64_t bytes() const;

  Arena weights;
  Arena gradients;
  Arena masters;
  Arena moments;
  Arena optimizer;
  Arena activations;
  Arena scratch;
  Arena batch;
};

struct EngineOptions {
  model::ModelConfig model;
  Device device = Device::cpu;
  int64_t batch = 1;  // micro batch
  int64_t length = 0;
  int threads = 1;
  uint64_t seed = 0;  // of dropout
  bool training = true;
  bool deterministic = true;
  bool records_graphs = true;  // on a GPU
  optim::OptimizerOptions optimizer = {};
};

struct UpdateResult {
  double gradient_norm = 0.0;
  bool skipped = false;          // a gradient was not finite: nothing was changed
  std::string first_non_finite;  // the parameter it was found in
};

// What a step did.
struct StepResult {
  double loss = 0.0;  // mean over the weighted tokens
  double backward_seconds = 0.0;
  UpdateResult update;
};

// What one rank computes with: memory, model, optimizer. It knows nothing of files, steps to come or who watches. On a
// GPU its calls ask and do not wait; only result_of_step() and evaluate() do.
class Engine {
 public:
  explicit Engine(const EngineOptions& options);
  ~Engine();

  void initialise(uint64_t seed);

  // Makes every plan that training on micro batches like `example` needs, by timing where none is known; weights and
  // optimizer state stay as they are. Nothing to do on the CPU.
  void make_plans(const data::MicroBatch& example);

  // One step: begin, forward and backward of each micro batch, end. `scale` is what one unit of weight counts in loss
  // and gradient; `update` counts updates from 1.
  void begin_step(int64_t step, double scale);
  void forward(const data::MicroBatch& micro_batch);
  void backward();
  void end_step(double learning_rate, int64_t update);
  // What the step ended last did, or the one before where `steps_back` is 1. Waits until it is done.
  StepResult result_of_step(int steps_back);
  // Whether end_step() returns before the step is done.
  bool runs_ahead() const { return stream_.device() == Device::cuda; }

  // Weighted sum of the losses of a micro batch.
  double evaluate(const data::MicroBatch& micro_batch);

  // Recorded work shows no single operation to a profiler.
  void set_recording(bool on) { options_.records_graphs = on; }

  // The memory table, with what libraries were seen to take outside the arenas once plans are made.
  const cost::MemoryTable& memory() const { return memory_; }
  const Arenas& arenas() const { return arenas_; }
  // All of the activations' arena as one tensor, for benches.
  Tensor scratch_memory() const;
  const parallel::ParameterStore& parameters() const { return store_; }
  const EngineOptions& options() const { return options_; }
  Stream& stream() { return stream_; }

  // Weights, masters and moments, under their logical names: what a checkpoint holds. In host memory; copies are
  // overwritten by the next call.
  std::vector<checkpoint::NamedTensor> host_state();
  // Fills that state (weights alone where nothing is trained) from a checkpoint.
  void restore(checkpoint::Loaded& checkpoint);

 private:
  // What the device tells of a step, copied to the host when the step ends.
  struct StepSlot {
    std::unique_ptr<StagingMemory> memory;
    StreamMark done;
    std::vector<std::pair<StreamMark, StreamMark>> backwards;
    size_t backward_count = 0;
    double scale = 0.0;
  };
  static constexpr size_t kSlots = 2;

  // What a checkpoint holds of a parameter, on the device; master weights lie there in two parts.
  struct DeviceState {
    std::string name;
    Tensor weight;
    Tensor remainder;  // absent where the weight is its own master, and where nothing is trained
    Tensor exp_avg;
    Tensor exp_avg_sq;
  };
  std::vector<DeviceState> device_state() const;
  Tensor to_host(const Tensor& tensor);
  void restore_master(checkpoint::Loaded& checkpoint, const DeviceState& state);
  model::Context context(bool training);
  model::Targets targets() const;
  void run(RecordedWork& work, const std::function<void()>& body);
  StepSlot& current_slot() { return slots_[steps_ended_ % kSlots]; }

  EngineOptions options_;
  ThreadPool pool_;
  Stream stream_;
  int64_t used_before_;  // bytes of the GPU that were in use before the arenas
  cost::MemoryTable memory_;
  Arenas arenas_;
  parallel::ParameterStore store_;
  model::Chunk chunk_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  BatchBuffers batch_;
  Tensor losses_;
  Tensor loss_sum_;  // (1) f64, of the micro batches of a step
  ops::StepScalars* scalars_ = nullptr;

  std::array<StepSlot, kSlots> slots_;
  size_t steps_ended_ = 0;
  bool first_of_step_ = true;
  struct Recorded {
    RecordedWork forward, backward;
  };
  // Of the first micro batch of a step, and of any other; both without document bounds, and with.
  std::array<Recorded, 4> recorded_;
  Recorded& recorded() { return recorded_[(first_of_step_ ? 0 : 1) + (batch_.document_bounds() ? 2 : 0)]; }
  std::unique_ptr<Arena> host_copy_;
};

}  // namespace megalith::train
