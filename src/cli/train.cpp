#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/train_options.h"
#include "cli/verbs.h"
#include "config/fleet_environment.h"
#include "config/print.h"
#include "core/error.h"
#include "core/file.h"
#include "core/process/start_laps.h"
#include "core/thread_pool.h"
#include "data/tokenizer/tokenizer.h"
#include "launch/ranks/boot.h"
#include "launch/ranks/monitored.h"
#include "launch/ranks/self.h"
#include "observe/draw/wrapped_text.h"
#include "observe/sinks/log_files.h"
#include "plan/describe_layout.h"
#include "plan/pictures.h"
#include "plan/run_layout.h"
#include "plan/run_request.h"
#include "train/describe_run.h"
#include "train/run/listeners.h"
#include "train/run/run_files.h"
#include "train/run/session.h"
#include "train/tuned_files.h"

namespace megalith::cli {

namespace {

void write_pictures(const TrainOptions& options, const config::Run& run, int64_t vocabulary) {
  make_directory(options.pictures);
  for (const plan::Picture& picture :
       plan::draw_layout(plan::stage_request(run, vocabulary), static_cast<int>(options.rank.value_or(0)))) {
    const std::filesystem::path file = std::filesystem::path(options.pictures) / picture.file;
    replace_file(file, picture.svg);
    std::cout << "wrote " << file.string() << "\n";
  }
}

std::string fitting(const std::string& text) {
  const auto width = train::find_terminal();
  return width ? observe::wrap_lines(text, width()) : text;
}

int dry_run(const TrainOptions& options, const config::Run& run, const config::LoadReport& report) {
  if (options.require_files) train::require_usable_files(run);
  const int64_t vocabulary = data::vocabulary_of(run.model.tokenizer).size;
  if (options.rank) {
    plan::check_layout(run, vocabulary);
    std::cout << plan::describe_rank(plan::stage_request(run, vocabulary), *options.rank);
  } else {
    // Said before a layout is refused.
    std::cout << fitting(train::describe_run(run, vocabulary) + config::describe(report));
    std::cout << fitting(plan::describe_model(run, vocabulary));
  }
  // They may be on the cluster.
  for (const std::string& problem : train::file_problems(run)) observe::log_warning(problem);
  if (!options.pictures.empty()) write_pictures(options, run, vocabulary);
  return kExitComplete;
}

int launch_ranks(const TrainOptions& options, const launch::LaunchPlace& place, const config::Run& run,
                 std::vector<std::string> overrides) {
  plan::check_ranks(run, int64_t{options.ranks.nproc} * place.machines);
  train::require_files(run);
  const int64_t vocabulary = data::vocabulary_of(run.model.tokenizer).size;
  plan::check_layout(run, vocabulary);
  const engine::StageRequest request = plan::stage_request(run, vocabulary);
  if (request.device == Device::cpu && !options.compile_only)
    train::check_device(run, request, train::tiers_of(run, 0));
  if (run.trainer.cpu_threads == 0) {
    overrides.push_back(fmt::format("trainer.cpu_threads={}", std::max(1, available_cores() / options.ranks.nproc)));
  }
  return launch::launch_self({.ranks = options.ranks.nproc,
                              .place = place,
                              .device = plan::device_of(run.trainer),
                              .more_arguments = std::move(overrides),
                              .ranks_save = true});
}

int compile(const config::Run& run, const launch::Boot& boot) {
  const ops::TuningCounts tuned = train::compile(run, boot.world());
  const int64_t successful = tuned.made + tuned.loaded;
  if (boot.rank() == 0) {
    std::cout << fmt::format("Total graphs: {}\nTotal successful compilations: {}\nTotal failed compilations: {}\n",
                             successful + tuned.failed, successful, tuned.failed);
  }
  return kExitComplete;
}

int run_training(const TrainOptions& options, const config::Run& run, const config::LoadReport& report,
                 const launch::Boot& boot) {
  const train::Summary summary = train::train(run, report, boot.world(), options.start);
  return summary.ending == train::Ending::complete ? kExitComplete : kExitStoppedEarly;
}

int run_rank(const TrainOptions& options, const config::Run& run, const config::LoadReport& report, StatusPage& page) {
  end_start_lap("config");
  plan::check_ranks(run, launch::started_ranks());
  launch::Boot boot({.device = plan::device_of(run.trainer),
                     .start_timeout = run.trainer.start_timeout,
                     .communication_timeout = run.trainer.communication_timeout,
                     .page = &page});
  try {
    const int code = options.compile_only ? compile(run, boot) : run_training(options, run, report, boot);
    boot.finish();
    page.end(code == kExitComplete ? RankStatus::Outcome::complete : RankStatus::Outcome::stopped_early);
    return code;
  } catch (const Error& error) {
    page.end(error);
    boot.give_up(error);
    if (exit_code(error.kind()) != exit_code(ErrorKind::user)) throw;
    // Here, before the end of `boot` waits for ranks that are slow to notice.
    std::cerr << "megalith: " << error.what() << '\n';
    return exit_code(error.kind());
  }
}

// The rank that finds a user's mistake explains it, for all.
int run_one_of_ranks(const TrainOptions& options, const config::Run& run, const config::LoadReport& report,
                     StatusPage& page) {
  try {
    return run_rank(options, run, report, page);
  } catch (const launch::FoundByAnotherRank& mistake) {
    page.end(mistake);
    return exit_code(mistake.kind());
  }
}

void check_monitored(const TrainOptions& options, const config::Run& run) {
  if (!launch::has_monitor()) return;
  if (options.ranks.launches())
    user_error("--nproc starts ranks without a monitor: leave it out, or unset {}", launch::kStatusPageVariable);
  if (!run.failpoints.empty()) {
    user_error("resilience.failpoints means nothing under a monitor, which has failpoints on its own command line");
  }
}

int run_with_page(TrainOptions options, StatusPage& page) {
  options.start.fleet = config::fleet_environment();
  launch::LaunchPlace place;
  std::vector<std::string> of_ranks;
  if (options.ranks.launches()) {
    place = launch::launch_place();
    of_ranks = overrides_of_ranks(options.ranks.nproc, place.machines);
    auto& overrides = options.config.overrides;
    overrides.insert(overrides.begin(), of_ranks.begin(), of_ranks.end());
  }
  config::LoadReport report;
  const config::Run run = options.config.load(&report);
  if (options.print_config) {
    std::cout << config::to_yaml(run);
    return kExitComplete;
  }
  require_recipe_or_data(options, run);
  if (options.dry_run) return dry_run(options, run, report);
  check_monitored(options, run);
  return options.ranks.launches() ? launch_ranks(options, place, run, of_ranks)
                                  : run_one_of_ranks(options, run, report, page);
}

int run_train(const TrainOptions& options) {
  if (options.help_config) {
    std::cout << config::describe_keys();
    return kExitComplete;
  }
  if (options.dry_run) {
    StatusPage nobody_reads;
    return run_with_page(options, nobody_reads);
  }
  end_start_lap("exec");
  launch::take_stop_signals();
  const std::unique_ptr<StatusPage> page = launch::open_status_page();
  try {
    return run_with_page(options, *page);
  } catch (const Error& error) {
    page->end(error);
    throw;
  } catch (const std::exception& error) {
    page->end(Error(ErrorKind::internal, error.what()));
    throw;
  }
}

}  // namespace

void add_train(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand(
      "train",
      "Train a model, or continue training it.\n\n"
      "  megalith train -c recipes/gpt3-125m.yaml trainer.max_steps=100 exp_manager.explicit_log_dir=runs/mine\n"
      "  megalith train -c recipes/gpt3-125m.yaml 'model.data.data_prefix=[data/my_*_text_document]'\n"
      "  megalith train -c recipes/gpt3-1.3b.yaml --nproc 8\n"
      "  megalith train -c recipes/gpt3-175b.yaml --dry-run\n"
      "  megalith train -c recipes/gpt3-175b.yaml --dry-run --rank 37 --draw pictures\n\n"
      "SIGTERM, SIGINT (Ctrl-C), SIGUSR1, SIGHUP and trainer.max_time end the step, save, and exit with 75: run the\n"
      "same command again with exp_manager.resume_if_exists=true to continue. A second Ctrl-C, a second or more after\n"
      "the first, quits without saving (exit code 130).");
  const auto options = std::make_shared<TrainOptions>();
  add_train_options(*verb, options);
  verb->callback([options, &run] { run = [options] { return run_train(*options); }; });
}

}  // namespace megalith::cli
