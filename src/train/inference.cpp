#include "train/inference.h"

#include "checkpoint/kept_tokenizer.h"
#include "checkpoint/store.h"
#include "config/layout.h"
#include "config/load.h"
#include "config/print.h"
#include "config/validate.h"
#include "core/clock.h"
#include "data/make_dataset.h"
#include "data/tokenizer.h"
#include "observe/log_files.h"
#include "train/batches.h"
#include "train/describe.h"
#include "train/layout.h"
#include "train/step.h"

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

config::Run config_of(const checkpoint::Loaded& checkpoint, const std::vector<std::string>& overrides) {
  config::Source source{.name = checkpoint.path().string(), .text = checkpoint.manifest().state.config};
  config::Run trained = config::load(std::vector{source}, {});
  config::Tokenizer& tokenizer = trained.model.tokenizer;
  tokenizer = checkpoint::kept_tokenizer(tokenizer, checkpoint.path().parent_path());
  source.text = config::to_yaml(trained);
  config::Run run = config::load(std::vector{source}, overrides);
  config::validate(run);
  return on_one_rank(std::move(run));
}

Evaluation evaluate(checkpoint::Loaded& checkpoint, const config::Run& run, const EvaluateOptions& options) {
  const double begin = monotonic_seconds();
  const data::Vocabulary vocabulary = data::vocabulary_of(run.model.tokenizer);
  // A horizon of one sample is one epoch; without weights, each dataset counts for what it holds.
  config::Run one_epoch = run;
  if (run.model.data.data_impl != "mock") one_epoch.model.data.data_prefix = data::data_prefixes(run.model.data);
  const auto dataset = data::make_dataset(one_epoch, options.split, vocabulary, 1);
  model::StageRequest request = stage_request(run, vocabulary.size);
  request.training = false;
  request.micro_batches = 1;
  Engine engine({.stage = request});
  engine.restore(checkpoint);
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
