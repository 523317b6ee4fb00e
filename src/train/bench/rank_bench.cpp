#include "train/bench/rank_bench.h"

#include <algorithm>

#include "config/derived.h"
#include "config/scalar.h"
#include "core/clock.h"
#include "core/device.h"
#include "core/words.h"
#include "cost/flops.h"
#include "data/tokenizer/tokenizer.h"
#include "optim/lr_schedule.h"
#include "parallel/mesh.h"
#include "plan/rehearsal.h"
#include "plan/run_layout.h"
#include "plan/run_request.h"
#include "train/bench/random_batch.h"
#include "train/step_metrics.h"
#include "train/tuned_files.h"

namespace megalith::train {

namespace {

using parallel::ActionKind;
using plan::MeasuredStage;

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Groups of engine::Engine whose calls count as one kind.
const std::map<std::string, std::set<std::string>>& kinds_of_calls() {
  static const std::map<std::string, std::set<std::string>> kKinds = {
      {"tensor", {"tensor", "kv_heads"}}, {"context", {"context"}}, {"data", {"replicas", "embedding"}}};
  return kKinds;
}
constexpr const char* kMessages = "pipeline";

bool has_calls(const parallel::Layout& layout, const std::string& kind) {
  if (kind == "tensor") return layout.tensor > 1;
  if (kind == "context") return layout.context > 1;
  return layout.replicas() > 1;
}

// Runs shortened steps of one rank and keeps the times of their actions.
class RankSteps {
 public:
  RankSteps(engine::Engine& engine, const config::Run& run, const RankBenchOptions& options)
      : engine_(engine),
        run_(run),
        options_(options),
        actions_(engine.program().of_step(static_cast<size_t>(engine.options().stage.micro_batches)).schedule) {
    engine_.set_action_times(&times_);
  }
  ~RankSteps() { engine_.set_action_times(nullptr); }
  RankSteps(const RankSteps&) = delete;
  RankSteps& operator=(const RankSteps&) = delete;

  // After each timed step, which is done by then, `seen` is called. `before`: what a step begins with.
  void run(const std::function<void()>& before, const std::function<void()>& seen) {
    for (int64_t i = step_ == 0 ? -options_.warm_up : 0; i < options_.steps; ++i) {
      run_one(before);
      if (i >= 0) seen();
    }
  }

  double step_seconds() const { return StreamMark::seconds_between(begin_, end_); }
  double host_seconds() const { return host_seconds_; }
  double seconds(size_t action) const { return times_.seconds(action); }
  double seconds_before_first() const { return times_.seconds_before(begin_, computes().front()); }
  double seconds_after_last() const { return times_.seconds_after(computes().back(), end_); }
  double seconds_until_last_ended() const { return step_seconds() - seconds_after_last(); }

  const parallel::Schedule& schedule() const { return actions_; }
  // Indices of the actions that compute.
  const std::vector<size_t>& computes() const {
    if (computes_.empty()) {
      for (size_t i = 0; i < actions_.size(); ++i) {
        if (is_compute(actions_[i])) computes_.push_back(i);
      }
    }
    return computes_;
  }

 private:
  void run_one(const std::function<void()>& before) {
    const data::StepBatch batch = random_step(engine_.options(), engine_.options().stage.micro_batches, step_);
    engine_.stream().wait();
    begin_.record(engine_.stream());
    before();
    const double asked = monotonic_seconds();
    engine_.run_step(
        {.step = step_, .weight = batch.total_weight, .learning_rate = optim::learning_rate(run_.model.optim, step_)},
        batch.micro_batches);
    host_seconds_ = monotonic_seconds() - asked;
    end_.record(engine_.stream());
    engine_.stream().wait();
    ++step_;
    const engine::UpdateResult update = engine_.result_of_step(0).update;
    if (!update.skipped) return;
    fail(ErrorKind::non_finite, "step {} of rank {} was skipped, {} is not finite: its time says nothing", step_,
         engine_.groups().world->rank(),
         update.first_non_finite.empty() ? "what another rank found" : update.first_non_finite);
  }

  engine::Engine& engine_;
  const config::Run& run_;
  const RankBenchOptions& options_;
  const parallel::Schedule& actions_;
  mutable std::vector<size_t> computes_;
  engine::ActionTimes times_;
  StreamMark begin_;
  StreamMark end_;
  double host_seconds_ = 0.0;
  int64_t step_ = 0;
};

// What the actions of a chunk took in all steps. The first that needs weights, and the last that gradients leave, wait
// for other ranks or share the card with their calls: what those took longer than the others is kept apart.
class StageTimes {
 public:
  explicit StageTimes(int64_t chunks) : chunks_(static_cast<size_t>(chunks)) {}

  void add(const RankSteps& steps) {
    std::map<std::pair<int64_t, ActionKind>, std::vector<double>> seen;
    for (const size_t i : steps.computes()) {
      const parallel::Action& action = steps.schedule()[i];
      seen[{action.chunk, action.kind}].push_back(steps.seconds(i));
    }
    double first = 0.0;
    double last = 0.0;
    for (auto& [which, seconds] : seen) {
      const auto& [chunk, kind] = which;
      const double usual = median(seconds);
      times_[which].push_back(usual);
      if (kind == ActionKind::forward) first += std::max(0.0, seconds.front() - usual);
      if (kind != ActionKind::forward) last += std::max(0.0, seconds.back() - usual);
    }
    begins_.push_back(steps.seconds_before_first() + first);
    ends_.push_back(steps.seconds_after_last() + last);
  }

  MeasuredStage stage(int64_t number) const {
    MeasuredStage stage{.stage = number, .begin = median(begins_), .end = median(ends_)};
    stage.chunks.resize(chunks_);
    for (const auto& [which, seconds] : times_) {
      MeasuredStage::Chunk& chunk = stage.chunks[static_cast<size_t>(which.first)];
      const double each = median(seconds);
      if (which.second == ActionKind::forward) chunk.forward = each;
      if (which.second == ActionKind::backward) chunk.backward = each;
      if (which.second == ActionKind::backward_input) chunk.backward_input = each;
      if (which.second == ActionKind::backward_weight) chunk.backward_weight = each;
    }
    return stage;
  }

 private:
  size_t chunks_;
  std::map<std::pair<int64_t, ActionKind>, std::vector<double>> times_;
  std::vector<double> begins_;
  std::vector<double> ends_;
};

MeasuredStage measure_stage(RankSteps& steps, int64_t stage, int64_t chunks) {
  StageTimes times(chunks);
  steps.run([] {}, [&] { times.add(steps); });
  return times.stage(stage);
}

// When the rank's messages arrive in a shortened step, counted from its beginning.
struct Arrivals {
  std::vector<double> seconds;
  double last_ended = 0.0;  // the rank's last action that computes
};

Arrivals simulated_arrivals(const engine::StageRequest& request, const comm::Wire& wire, const MeasuredStage& own) {
  const plan::Simulation simulation = plan::simulate_measured(request, request.micro_batches, wire, {own});
  const parallel::Schedule schedule =
      parallel::pipeline_schedules(request.layout, request.micro_batches)[static_cast<size_t>(own.stage)];
  Arrivals arrivals;
  const plan::StageTimeline& timeline = simulation.stages[static_cast<size_t>(own.stage)];
  for (size_t i = 0; i < schedule.size(); ++i) {
    const double end = own.begin + timeline.spans[i].end;
    if (schedule[i].kind == ActionKind::send_receive) arrivals.seconds.push_back(end);
    if (is_compute(schedule[i])) arrivals.last_ended = end;
  }
  return arrivals;
}

engine::StageRequest shortened(engine::StageRequest request, int64_t micro_batches) {
  request.micro_batches = micro_batches;
  request.ramp_micro_batches.clear();
  return request;
}

int64_t micro_batches_of(const engine::StageRequest& request, const RankBenchOptions& options) {
  constexpr int64_t kPerStage = 3;
  if (options.micro_batches > 0) return options.micro_batches;
  return std::min(request.micro_batches, kPerStage * request.layout.pipeline);
}

void require_room(const plan::RankMemory& memory, int rank) {
  const DeviceMemory now = device_memory();
  if (memory.table.total() <= now.total - now.used) return;
  user_error("rank {} needs {}, {} are free on this GPU\n{}", rank, bytes_in_words(memory.table.total()),
             bytes_in_words(now.total - now.used), memory.table.to_text());
}

// Calls take no time, so that the step of which operations are heard waits for nothing. The engine is of no use after.
void profile(engine::Engine& engine, const config::Run& run, comm::EmulatedWorld& world, MeasuredRank& measured) {
  std::set<std::string> groups{kMessages};
  for (const auto& [kind, of_kind] : kinds_of_calls()) groups.insert(of_kind.begin(), of_kind.end());
  world.set_instant(groups);
  engine.set_recording(false);
  const data::StepBatch batch = random_step(engine.options(), engine.options().stage.micro_batches, 0);
  measured.copy_bytes_per_second = copy_rate(engine.stream(), engine.arenas().activations.whole());
  measured.operations = profile_ops(engine.stream(), [&] {
    engine.run_step({.weight = batch.total_weight, .learning_rate = run.model.optim.lr}, batch.micro_batches);
  });
}

std::vector<MeasuredStage> stages_of(const std::vector<MeasuredRank>& ranks, const std::string& without = {}) {
  std::vector<MeasuredStage> stages;
  for (const MeasuredRank& rank : ranks) stages.push_back(without.empty() ? rank.times : rank.without.at(without));
  return stages;
}

}  // namespace

std::vector<int> ranks_named(const parallel::Layout& layout, const std::string& names) {
  const parallel::Mesh mesh(layout);
  std::vector<int> ranks;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    begin = end + 1;
    const auto number = config::read_int(name);
    int rank = 0;
    if (name == "first" || name == "middle" || name == "last") {
      const int64_t stage = name == "first" ? 0 : name == "middle" ? layout.pipeline / 2 : layout.pipeline - 1;
      rank = mesh.rank_of({.pp = stage});
    } else if (number && *number >= 0 && *number < mesh.world()) {
      rank = static_cast<int>(*number);
    } else {
      user_error(
          "--as-rank '{}': the layout ({}) has ranks 0 to {}; give one of those, several with commas, or "
          "first, middle, last",
          name, to_string(layout), mesh.world() - 1);
    }
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
  }
  return ranks;
}

double message_scale(const comm::Group& pipeline, int peer, int64_t tokens) {
  const auto stages = static_cast<int>(pipeline.ranks.size());
  // Interleaved stages pass on in a circle. Of two, each is both before and behind the other: the first has gradients.
  const bool is_gradient = peer == (pipeline.member + 1) % stages && (stages > 2 || pipeline.member == 0);
  // Of a token's loss through an output layer with weights of 0.02, over all tokens of the step.
  return is_gradient ? 0.02 / static_cast<double>(tokens) : 1.0;
}

MeasuredRank measure_rank(const config::Run& run, engine::EngineOptions engine_options, comm::EmulatedWorld& world,
                          const RankBenchOptions& options) {
  engine_options.stage = shortened(engine_options.stage, micro_batches_of(engine_options.stage, options));
  const engine::StageRequest& request = engine_options.stage;
  plan::RankMemory memory = plan::memory_of_rank(request, world.rank());
  const bool on_gpu = request.device == Device::cuda;
  if (on_gpu) require_room(memory, world.rank());
  engine::Engine engine(engine_options, world, memory.arenas);
  engine.initialise(static_cast<uint64_t>(run.model.seed));
  tune(engine, run, {});
  if (const auto outside = engine.bytes_outside()) memory.table.set(plan::kOutsideArenas, *outside);

  RankSteps steps(engine, run, options);
  const int64_t stage = engine.place().pp;
  const int64_t chunks = request.layout.chunks;
  MeasuredRank measured{.rank = world.rank(), .planned_bytes = memory.table.total()};
  world.set_instant({kMessages});
  measured.times = measure_stage(steps, stage, chunks);
  measured.step_seconds = steps.step_seconds();
  measured.host_seconds = steps.host_seconds();
  for (const auto& [kind, groups] : kinds_of_calls()) {
    if (!has_calls(request.layout, kind)) continue;
    std::set<std::string> instant = groups;
    instant.insert(kMessages);
    world.set_instant(instant);
    measured.without[kind] = measure_stage(steps, stage, chunks);
  }
  world.set_instant({});
  const Arrivals arrivals = simulated_arrivals(request, world.wire(), measured.times);
  std::vector<double> ended;
  steps.run([&] { world.set_arrivals(engine.stream(), arrivals.seconds); },
            [&] { ended.push_back(steps.seconds_until_last_ended()); });
  measured.arrived_seconds = median(ended);
  measured.simulated_seconds = arrivals.last_ended;
  if (on_gpu) measured.peak_bytes = device_memory().used;
  if (options.profile) profile(engine, run, world, measured);
  return measured;
}

StepShares shares_of(const engine::StageRequest& request, const comm::Wire& wire,
                     const std::vector<MeasuredRank>& ranks) {
  const plan::MeasuredStep whole = plan::step_of(request, wire, stages_of(ranks));
  StepShares shares{.idle = whole.idle};
  double beside = whole.begin + whole.end;
  const auto exposed = [&](const std::string& kind) {
    if (!ranks.front().without.contains(kind)) return 0.0;
    return std::max(0.0, whole.seconds() - plan::step_of(request, wire, stages_of(ranks, kind)).seconds());
  };
  shares.tensor = exposed("tensor");
  shares.context = exposed("context");
  shares.data = exposed("data");
  if (ranks.front().without.contains("data")) {
    const plan::MeasuredStep silent = plan::step_of(request, wire, stages_of(ranks, "data"));
    beside = silent.begin + silent.end;
  }
  shares.update = beside;
  shares.compute = whole.seconds() - shares.total();
  return shares;
}

std::vector<OpLine> RankBenchResult::operations() const {
  std::vector<OpLine> all;
  for (const MeasuredRank& rank : ranks) {
    for (const OpLine& line : rank.operations) {
      const auto same = std::find_if(all.begin(), all.end(), [&](const OpLine& other) {
        return other.name == line.name && other.cost.shape == line.cost.shape;
      });
      if (same == all.end()) {
        all.push_back(line);
        continue;
      }
      const auto before = static_cast<double>(same->calls);
      const auto more = static_cast<double>(line.calls);
      same->seconds = (before * same->seconds + more * line.seconds) / (before + more);
      same->calls += line.calls;
    }
  }
  const auto total = [](const OpLine& line) { return static_cast<double>(line.calls) * line.seconds; };
  std::stable_sort(all.begin(), all.end(), [&](const OpLine& a, const OpLine& b) { return total(a) > total(b); });
  return all;
}

double RankBenchResult::copy_bytes_per_second() const {
  return ranks.empty() ? 0.0 : ranks.front().copy_bytes_per_second;
}

RankBenchResult bench_ranks(const config::Run& run, const RankBenchOptions& options) {
  const double begin = monotonic_seconds();
  const data::Vocabulary vocabulary = data::vocabulary_of(run.model.tokenizer);
  plan::check_layout(run, vocabulary.size);
  const engine::EngineOptions engine_options = plan::training_options(run, vocabulary.size);
  const engine::StageRequest& request = engine_options.stage;
  const std::vector<int> ranks = ranks_named(request.layout, options.ranks);
  const int64_t micro_batches = micro_batches_of(request, options);
  if (const std::string problem = parallel::schedule_problem(request.layout, micro_batches); !problem.empty())
    user_error("--micro-batches {}: {}", micro_batches, problem);
  // Before anything is allocated: whether the wire joins the ranks of every group.
  for (const int rank : ranks) {
    comm::WireClock clock;
    comm::EmulatedWorld world(rank, static_cast<int>(request.layout.world()), {.wire = options.wire}, clock);
    parallel::make_groups(world, {.layout = request.layout,
                                  .kv_heads = request.config.kv_heads,
                                  .tied_embeddings = request.config.tied_embeddings});
  }
  if (request.device == Device::cpu)
    user_error("--as-rank measures a rank on a GPU, with the calls of a wire beside it; there is none here");
  require_accelerator();

  const Accelerator gpu = find_accelerators().at(0);
  RankBenchResult result{.device = gpu.name,
                         .driver = gpu.driver,
                         .wire = options.wire.name,
                         .micro_batches = micro_batches,
                         .step_micro_batches = request.micro_batches,
                         .peak_tflops = peak_tflops_of(engine_options)};
  const int64_t tokens = request.batch * request.length * micro_batches * request.layout.data;
  for (const int rank : ranks) {
    comm::EmulatedWorld world(rank, static_cast<int>(request.layout.world()),
                              {.wire = options.wire, .message_scale = [tokens](const comm::Group& group, int peer) {
                                 return message_scale(group, peer, tokens);
                               }});
    result.ranks.push_back(measure_rank(run, engine_options, world, options));
  }
  result.step = plan::step_of(request, options.wire, stages_of(result.ranks));
  result.shares = shares_of(request, options.wire, result.ranks);
  const auto samples = static_cast<double>(run.model.global_batch_size);
  const int64_t padded = request.config.padded_vocabulary;
  result.tokens_per_second = samples * static_cast<double>(request.length) / result.step.seconds();
  result.flops_per_second = samples * cost::model_flops_per_sample(run.model, padded) / result.step.seconds() /
                            static_cast<double>(request.layout.world());
  result.seconds = monotonic_seconds() - begin;
  return result;
}

}  // namespace megalith::train
