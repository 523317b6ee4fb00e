#include "checkpoint/saver.h"

#include <numeric>

#include "checkpoint/file_names.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/process/failpoint.h"

namespace megalith::checkpoint {

namespace {
// In front of what a rank posts: whether it succeeded.
constexpr char kDone = '+';
constexpr char kFailed = '-';

std::string prefix_of(int64_t save) {
  return fmt::format("save/{}/", save);
}

// What a rank has posted; an I/O error, which names it, where that is a failure.
std::string take(const std::string& posted, const std::string& rank) {
  if (posted.front() == kFailed) fail(ErrorKind::io, "{}: {}", rank, posted.substr(1));
  return posted.substr(1);
}

// Why `action` failed; empty where it did not.
template <class Action>
std::string failure_of(const Action& action) {
  try {
    action();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

// The digests are made beside the writing.
ShardContent content_of(const ShardImage& image, const std::shared_future<FileDigests>& digests) {
  return {.pieces = image.pieces(), .write = [&](File& file) {
            write_image(file, image.memory());
            return digests.get();
          }};
}

// All ranks save together.
StatusPage::Group waits_on(const Saver::Options& options) {
  if (options.page == nullptr) return {};
  std::vector<int> ranks(static_cast<size_t>(options.place.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  return options.page->add_group("save", ranks, static_cast<int>(options.place.rank));
}
}  // namespace

Saver::Saver(Options options)
    : options_(std::move(options)),
      store_(options_.persistent, options_.persistent_keep, options_.ranking),
      pool_(options_.threads),
      waits_(waits_on(options_)),
      thread_([this] { run(); }) {
  store_.set_fence(options_.fence);
}

Saver::~Saver() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    stopped_at_ = monotonic_seconds();
  }
  changed_.notify_all();
  thread_.join();
}

void Saver::begin(Job job) {
  {
    const std::lock_guard lock(mutex_);
    MEGALITH_CHECK(!job_, "a checkpoint of step {} is still being written", job_->state.step);
    job_ = std::move(job);
    outcome_.reset();
  }
  changed_.notify_all();
}

bool Saver::busy() const {
  const std::lock_guard lock(mutex_);
  return job_.has_value();
}

void Saver::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !job_; });
}

std::optional<Saver::Outcome> Saver::take_outcome() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outcome_, std::nullopt);
}

void Saver::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || job_; });
    if (!job_) return;
    lock.unlock();
    Outcome outcome = save(*job_);
    lock.lock();
    outcome_ = std::move(outcome);
    job_.reset();
    changed_.notify_all();
  }
}

// A failure never leaves this thread: training goes on, and the checkpoints that were there stay as they are.
Saver::Outcome Saver::save(const Job& job) {
  const double begin = monotonic_seconds();
  Outcome outcome{.step = job.state.step, .failure = {}, .persistent = job.to_persistent, .result = {}};
  ++saves_;
  Digests digests;
  outcome.failure = failure_of([&] {
    job.finish_image(pool_);
    digests = std::async(std::launch::async, [&] { return digest(job); }).share();
  });
  const bool has_image = outcome.failure.empty();
  if (has_image && job.to_local) outcome.failure = failure_of([&] { save_local(job, digests); });
  if (options_.copies && job.to_local) {
    const std::string failure = failure_of([&] { exchange_copies(job, digests, outcome.failure); });
    if (outcome.failure.empty()) outcome.failure = failure;
  }
  if (job.to_persistent) {
    // The others wait for what this rank says, also where it has failed.
    const std::string failure = failure_of([&] {
      std::optional<Manifest> part;
      std::string reason = outcome.failure;
      if (has_image) reason = failure_of([&] { part = write_part(job, digests); });
      commit_together(job, part, reason, outcome.result);
    });
    if (!failure.empty()) outcome.failure = failure;
  }
  if (outcome.failure.empty()) outcome.failure = failure_of([&] { digests.get(); });
  outcome.seconds = monotonic_seconds() - begin;
  if (outcome.failure.empty()) show(job, outcome.seconds);
  return outcome;
}

// Only persistent saves say how long a save may take: the others are far quicker.
void Saver::show(const Job& job, double seconds) const {
  if (options_.page == nullptr) return;
  if (job.to_local) options_.page->set_local_step(job.state.step);
  if (!job.to_persistent) return;
  options_.page->set_persistent_step(job.state.step);
  options_.page->saw_save(seconds);
}

// With them the image in memory counts as a part that can be loaded again. Where that fails, a restart reads from a
// disk instead.
FileDigests Saver::digest(const Job& job) {
  FileDigests digests = digests_of(job.image->memory(), pool_);
  if (!options_.memory.empty()) {
    failure_of([&] {
      MemoryParts(options_.memory)
          .commit(job.state, options_.place,
                  {.pieces = job.image->pieces(), .digests = digests, .image = job.memory_image});
    });
  }
  return digests;
}

void Saver::save_local(const Job& job, const Digests& digests) const {
  if (options_.local.empty()) return;
  const PartStore local(options_.local);
  local.save(job.state, options_.place, content_of(*job.image, digests), options_.generation);
  local.retain(options_.place.rank,
               {.keep = options_.local_keep, .protected_step = job.protected_step, .run_id = job.state.run_id});
}

// `digests` are absent where this rank has failed, for this reason. Its keeper waits for its word all the same, and so
// does its source for the word on the copy.
void Saver::exchange_copies(const Job& job, const Digests& digests, const std::string& reason) const {
  std::optional<Offer> offer;
  std::string manifest;
  std::string failure = reason;
  if (digests.valid()) {
    failure = failure_of([&] {
      const ShardName name{.generation = options_.generation, .rank = options_.place.rank};
      offer.emplace(options_.copies->offer(digests.get(), job.image->memory()));
      manifest = encode(manifest_of_part(job.state, options_.place,
                                         {.file = shard_name(name), .digests = digests.get()}, job.image->pieces()));
    });
  }
  post(job, "copy", failure.empty() ? kDone + manifest : kFailed + failure);
  failure = failure_of([&] { keep_copy(job); });
  post(job, "copied", failure.empty() ? std::string(1, kDone) : kFailed + failure);
  take(await(job, "copied", options_.copies->keeper()), fmt::format("rank {}", options_.copies->keeper()));
  if (!failure.empty()) fail(ErrorKind::io, "{}", failure);
}

void Saver::keep_copy(const Job& job) const {
  const int64_t source = options_.copies->source();
  const std::string who = fmt::format("rank {}", source);
  const Manifest part = decode_manifest(take(await(job, "copy", source), who), "the part of " + who);
  options_.copies->keep(part, job.protected_step, options_.generation);
}

Manifest Saver::write_part(const Job& job, const Digests& digests) const {
  return store_.write_part(job.state, options_.place, content_of(*job.image, digests), options_.generation);
}

// `part` is absent where this rank has failed, for this reason. Throws where the checkpoint was not committed.
void Saver::commit_together(const Job& job, const std::optional<Manifest>& part, const std::string& reason,
                            SaveResult& result) {
  post(job, "part", part ? kDone + encode(*part) : kFailed + reason);
  try {
    if (is_first()) {
      commit(job, part, reason, result);
    } else {
      take(await(job, "result", 0), "rank 0");
    }
  } catch (...) {
    if (part) store_.discard(*part);
    throw;
  }
  if (options_.persistent_keep != Store::kKeepAll) retire_older(job, *part, result);
}

void Saver::commit(const Job& job, const std::optional<Manifest>& own, const std::string& reason, SaveResult& result) {
  const std::string where = store_.directory_of(job.state.step).string();
  const std::string failure = failure_of([&] {
    if (!own) fail(ErrorKind::io, "{}", reason);
    std::vector<Manifest> parts = {*own};
    for (const std::string& text : collect(job, "part")) parts.push_back(decode_manifest(text, where));
    whole_ = merge(parts, where);
    result = store_.commit(whole_);
  });
  post(job, "result", failure.empty() ? std::string(1, kDone) : kFailed + failure);
  if (!failure.empty()) fail(ErrorKind::io, "{}", failure);
}

// Nothing older is removed before every rank has read back what it wrote.
void Saver::retire_older(const Job& job, const Manifest& part, SaveResult& result) {
  const std::string failure = failure_of([&] { read_back(part); });
  post(job, "verified", failure.empty() ? std::string(1, kDone) : kFailed + failure);
  if (!failure.empty()) fail(ErrorKind::io, "{}", failure);
  if (!is_first()) return;
  collect(job, "verified");
  store_.apply_retention(whole_, true, result);
}

void Saver::read_back(const Manifest& part) const {
  const std::filesystem::path shard = store_.directory_of(part.state.step) / part.shards.front().file;
  File::open_for_reading(shard).forget_cache();
  Loaded(shard, part, [&](const ShardInfo&) { return std::vector<ShardPlace>{shard}; }).verify();
}

std::string Saver::key(const Job& job, const char* what, int64_t rank) const {
  return fmt::format("{}{}/{}/{}", prefix_of(saves_), job.state.step, what, rank);
}

void Saver::post(const Job& job, const char* what, const std::string& text) const {
  if (options_.board == nullptr) return;
  // What was posted for the save before the last, every rank has read by now.
  if (is_first()) options_.board->remove(prefix_of(saves_ - 2));
  options_.board->post(key(job, what, options_.place.rank), text);
}

std::string Saver::await(const Job& job, const char* what, int64_t rank) const {
  const double begin = monotonic_seconds();
  const auto seconds_left = [&] {
    const std::lock_guard lock(mutex_);
    const double until = begin + options_.deadline;
    return (stop_ ? std::min(until, stopped_at_ + options_.patience) : until) - monotonic_seconds();
  };
  const StatusPage::Inside waiting(waits_,
                                   {.operation = "await", .peers = {static_cast<int>(rank), -1}, .is_exchange = true});
  return options_.board->await(key(job, what, rank), seconds_left,
                               fmt::format("the word of rank {} on its {}", rank, what));
}

std::vector<std::string> Saver::collect(const Job& job, const char* what) const {
  std::vector<std::string> texts;
  for (int64_t rank = 1; rank < options_.place.ranks; ++rank) {
    const std::string name = fmt::format("rank {}", rank);
    texts.push_back(take(await(job, what, rank), name));
  }
  return texts;
}

// A run of more ranks may have been here before: without this rank's part, theirs are of no use.
void Saver::revoke_memory(int64_t image) const {
  if (options_.memory.empty()) return;
  const MemoryParts memory(options_.memory);
  memory.revoke(options_.place.rank, image);
  memory.remove_from(options_.place.ranks);
}

void Saver::remove_memory() const {
  if (!options_.memory.empty()) MemoryParts(options_.memory).remove(options_.place.rank);
  if (options_.copies) options_.copies->remove();
}

}  // namespace megalith::checkpoint
