#pragma once

#include <filesystem>
#include <memory>
#include <unordered_map>
#include <vector>

#include "checkpoint/format/shard_image.h"
#include "core/process/shared_memory.h"
#include "core/stream.h"
#include "model/precision.h"
#include "optim/optimizer.h"
#include "parallel/placement/state_owners.h"

namespace megalith::train {

// What this rank gives to a checkpoint, copied to host memory as the image of its shard while training goes on. The
// copies run on a stream of their own; nothing may be updated before they are done.
class StateSnapshot {
 public:
  struct Parts {
    parallel::PlacementRequest request;  // of all ranks
    int rank = 0;
    const parallel::ParameterStore& store;
    const optim::Optimizer& optimizer;
    const model::Precision* histories = nullptr;  // null: another rank gives those of this stage
    Device device = Device::cpu;
    // Where the memory lies, so that it outlives the process; empty, or where there is no room: in this process.
    std::filesystem::path memory_file;
  };
  // With one image. What the parts refer to must outlive it.
  explicit StateSnapshot(const Parts& parts);

  // Another one, in a file that outlives the process. I/O error where there is no room. While nobody uses an image.
  void add_image(const std::filesystem::path& memory_file);
  // Which image is overwritten next, counted from 0; image() is that one then.
  void turn_to(size_t image) { current_ = image; }

  // Asks for copies of everything as it is when `stream` gets here. On the CPU they are done at once.
  void take(Stream& stream);
  // Passed when the copies are done: nothing may change the state before.
  const StreamMark& copied() const { return copied_; }
  // Waits for the copies and puts master weights together: then the image is whole. Any thread.
  void finish(ThreadPool& pool);
  // How long the copies took, once they are done.
  double copy_seconds() const { return StreamMark::seconds_between(ready_, copied_); }

  const checkpoint::ShardImage& image() const { return images_[current_].image; }
  // Whether the memory of the first image outlives the process; else why not.
  const std::string& why_not_shared() const { return why_not_shared_; }

 private:
  struct Copy {
    Tensor from;
    size_t piece = 0;  // of the image
  };

  std::vector<checkpoint::ShardContent::Piece> list_pieces(const Parts& parts);
  void add_histories(const model::Precision& precision, std::vector<checkpoint::ShardContent::Piece>& pieces);
  void add_box(const parallel::ParameterSpec& spec, const parallel::Box& box, const optim::State& state,
               std::vector<checkpoint::ShardContent::Piece>& pieces);
  std::unique_ptr<SharedMemory> acquire_memory(const Parts& parts, int64_t bytes);
  void add_image(checkpoint::ShardImage image, std::unique_ptr<SharedMemory> memory);
  Tensor destination(const Copy& copy) const;

  std::vector<Copy> copies_;
  struct Master {
    size_t weights = 0;  // pieces of the image
    size_t master = 0;
  };
  std::vector<Master> masters_;
  struct Image {
    checkpoint::ShardImage image;
    std::unique_ptr<SharedMemory> memory;
  };
  std::vector<Image> images_;
  size_t current_ = 0;
  std::string why_not_shared_;
  Device device_;
  ThreadPool pool_;
  Stream stream_;
  StreamMark ready_;
  StreamMark copied_;
};

}  // namespace megalith::train
