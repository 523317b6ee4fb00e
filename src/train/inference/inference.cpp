#include "train/inference/inference.h"

#include <tuple>

#include "checkpoint/kept_tokenizer.h"
#include "checkpoint/store.h"
#include "config/derived.h"
#include "config/load.h"
#include "config/print.h"
#include "config/validate.h"
#include "core/clock.h"
#include "data/order/make_dataset.h"
#include "data/tokenizer/data_tokenizer.h"
#include "data/tokenizer/tokenizer.h"
#include "observe/sinks/log_files.h"
#include "plan/rehearsal.h"
#include "plan/run_layout.h"
#include "plan/run_request.h"
#include "train/batches.h"
#include "train/evaluate.h"
#include "train/run/run_files.h"
#include "train/state/rank_state.h"
#include "train/state/restore.h"

namespace megalith::train {

checkpoint::Loaded open_checkpoint(const std::filesystem::path& path) {
  const bool is_run = std::filesystem::is_directory(path / "checkpoints");
  std::vector<checkpoint::PassedOver> passed_over;
  checkpoint::Loaded loaded = checkpoint::open_checkpoint(is_run ? path / "checkpoints" : path, passed_over);
  for (const checkpoint::PassedOver& bad : passed_over) {
    observe::log_warning(fmt::format("checkpoint {} cannot be used: {}", bad.name, bad.reason));
  }
  return loaded;
}

namespace {
auto files_of(const config::Tokenizer& tokenizer) {
  return std::tie(tokenizer.vocab_file, tokenizer.merge_file, tokenizer.model);
}

void check_files(const checkpoint::Loaded& checkpoint, const config::Tokenizer& tokenizer) {
  const auto& extra = checkpoint.manifest().state.extra;
  const auto digests = extra.find(checkpoint::kTokenizerDigests);
  if (digests != extra.end()) checkpoint::check_tokenizer_files(tokenizer, digests->second);
}
}  // namespace

config::Run config_of(const checkpoint::Loaded& checkpoint, const std::vector<std::string>& overrides) {
  config::Source source{.name = checkpoint.path().string(), .text = checkpoint.manifest().state.config};
  config::LoadReport report;
  config::Run trained = config::load(std::vector{source}, {}, &report);
  if (!overrides.empty()) {
    for (const std::string& note : report.notes) observe::log_info(note);
  }
  trained.model.fp8 = false;  // its scales belong to training
  // Learned positions are weights: as many as were trained, however long the text is now.
  trained.model.max_position_embeddings = config::max_position_embeddings(trained.model);
  config::Tokenizer& tokenizer = trained.model.tokenizer;
  tokenizer = checkpoint::kept_tokenizer(tokenizer, checkpoint.path().parent_path());
  source.text = config::to_yaml(trained);
  config::Run run = config::load(std::vector{source}, overrides);
  if (run.model.fp8)
    user_error("model.fp8: a checkpoint is evaluated in {}; leave it out", word_of(run.trainer.precision));
  // Whoever names other files wants those.
  if (files_of(run.model.tokenizer) == files_of(tokenizer)) check_files(checkpoint, tokenizer);
  config::validate(run);
  check_heads(checkpoint, run.model);
  return plan::on_one_rank(std::move(run));
}

Evaluation evaluate(checkpoint::Loaded& checkpoint, const config::Run& run, const EvaluateOptions& options) {
  const double begin = monotonic_seconds();
  require_tokenizer_files(run.model.tokenizer);
  const data::Vocabulary vocabulary = data::vocabulary_of(run.model.tokenizer);
  data::check_tokenizer_of_data(run.model.data, run.model.tokenizer);
  // A horizon of one sample is one epoch; without weights, each dataset counts for what it holds.
  config::Run one_epoch = run;
  if (run.model.data.data_impl != config::DataImpl::mock)
    one_epoch.model.data.data_prefix = data::data_prefixes(run.model.data);
  const auto dataset = data::make_dataset(one_epoch, options.split, vocabulary, 1);
  engine::StageRequest request = plan::stage_request(run, vocabulary.size);
  request.training = false;
  request.micro_batches = 1;
  const auto world = comm::make_lone_world(request.device);
  engine::Engine engine({.stage = request}, *world, plan::memory_of_rank(request, 0).arenas);
  RankState(engine).restore(checkpoint);
  const int64_t available = dataset->size() / request.batch;
  if (available == 0) {
    user_error("the split holds {} samples, less than one micro batch of {}; use model.micro_batch_size=1",
               dataset->size(), request.batch);
  }
  const int64_t batches = options.batches > 0 ? std::min(options.batches, available) : available;
  data::BatcherOptions reading = batcher_options(run, vocabulary, engine);
  reading.global_batch = request.batch;
  reading.read_ahead_until = batches * request.batch;
  data::Batcher batcher(*dataset, reading);
  return {.step = checkpoint.manifest().state.step,
          .tokens = batches * request.batch * request.length,
          .loss = mean_loss(engine, batcher, batches),
          .seconds = monotonic_seconds() - begin};
}

}  // namespace megalith::train
