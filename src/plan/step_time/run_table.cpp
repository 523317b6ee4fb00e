#include "plan/step_time/run_table.h"

#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <set>

#include "config/scalar.h"
#include "core/error.h"
#include "core/file.h"
#include "plan/step_time/csv.h"

namespace megalith::plan {

namespace {

// Products of two counts, and of three sizes of a layout, stay whole numbers.
constexpr int64_t kMostOfAnything = int64_t{1} << 30;
constexpr int64_t kMostOfASize = int64_t{1} << 20;

// A line of the table, cell by cell.
class Cells {
 public:
  Cells(const Csv& csv, const Csv::Record& record, const std::string& file) : csv_(csv), record_(record), file_(file) {}

  // Empty where the column is missing too.
  const std::string& text(std::string_view column) const {
    static const std::string kEmpty;
    const int64_t index = csv_.find(column);
    return index < 0 ? kEmpty : record_.cells[static_cast<size_t>(index)];
  }

  [[noreturn]] void refuse(std::string_view column, const std::string& expected) const {
    user_error("{}, line {}, column {}: '{}' is not {}", file_, record_.line, column, text(column), expected);
  }

  int64_t count(std::string_view column, std::optional<int64_t> otherwise = {}, int64_t most = kMostOfAnything) const {
    const std::string& cell = text(column);
    if (cell.empty() && otherwise) return *otherwise;
    int64_t value = 0;
    const auto [end, problem] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (problem != std::errc{} || end != cell.data() + cell.size() || value < 1 || value > most)
      refuse(column, fmt::format("a whole number from 1 to {}", most));
    return value;
  }

  std::optional<double> seconds(std::string_view column) const {
    const std::string& cell = text(column);
    if (cell.empty()) return std::nullopt;
    const std::optional<double> value = config::read_double(cell);
    if (!value || *value <= 0) refuse(column, "a number above 0");
    return value;
  }

  // The place of the cell in a list of words; the first where it is empty.
  size_t word(std::string_view column, const std::vector<std::string>& words) const {
    const std::string& cell = text(column);
    if (cell.empty()) return 0;
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] == cell) return i;
    }
    refuse(column, fmt::format("one of {}", fmt::join(words, ", ")));
  }

  bool flag(std::string_view column) const { return word(column, {"0", "1"}) == 1; }

 private:
  const Csv& csv_;
  const Csv::Record& record_;
  const std::string& file_;
};

// "5,6x10,5": 5, ten times 6, 5.
std::vector<int64_t> stage_layers(const Cells& cells) {
  constexpr std::string_view kColumn = "stage_layers";
  constexpr const char* kExpected = "a list like 5,6x10,5 (5 layers, ten times 6, and 5)";
  constexpr size_t kMostStages = 1 << 20;
  std::vector<int64_t> layers;
  std::string_view rest = cells.text(kColumn);
  const auto number = [&] {
    int64_t value = 0;
    const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (problem != std::errc{} || value < 1) cells.refuse(kColumn, kExpected);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    return value;
  };
  while (!rest.empty()) {
    const int64_t each = number();
    int64_t times = 1;
    if (rest.starts_with('x')) {
      rest.remove_prefix(1);
      times = number();
    }
    if (static_cast<size_t>(times) > kMostStages - layers.size()) cells.refuse(kColumn, kExpected);
    layers.insert(layers.end(), static_cast<size_t>(times), each);
    if (rest.empty()) break;
    if (!rest.starts_with(',') || rest.size() == 1) cells.refuse(kColumn, kExpected);
    rest.remove_prefix(1);
  }
  return layers;
}

ModelShape model_shape(const Cells& cells) {
  const int64_t hidden = cells.count("hidden");
  const int64_t heads = cells.count("heads");
  return {.layers = cells.count("layers"),
          .hidden = hidden,
          .heads = heads,
          .kv_heads = cells.count("kv_heads", heads),
          .head_dim = cells.count("head_dim", std::max<int64_t>(1, hidden / heads)),
          .ffn = cells.count("ffn", 4 * hidden),
          .gated = cells.flag("gated"),
          .vocabulary = cells.count("vocab"),
          .tied = cells.flag("tied"),
          .length = cells.count("seq_len")};
}

// The data-parallel size where its cell is empty: the rest, as far as there is one.
int64_t remaining_data(const RunFeatures& run) {
  return std::max<int64_t>(1, run.gpus / (run.tensor * run.pipeline * run.context));
}

const cost::Accelerator& accelerator(const Cells& cells, const cost::Hardware& hardware) {
  std::vector<std::string> names;
  for (const cost::Accelerator& a : hardware.accelerators()) names.push_back(a.name);
  if (cells.text("gpu").empty()) cells.refuse("gpu", fmt::format("one of {}", fmt::join(names, ", ")));
  return hardware.accelerators()[cells.word("gpu", names)];
}

const cost::Network& network(const Cells& cells, const cost::Hardware& hardware, const std::string& usual) {
  if (cells.text("network").empty()) return hardware.network(usual);
  std::vector<std::string> names;
  for (const cost::Network& n : hardware.networks()) names.push_back(n.name);
  return hardware.networks()[cells.word("network", names)];
}

RunFeatures features(const Cells& cells, const cost::Hardware& hardware) {
  const cost::Accelerator& gpu = accelerator(cells, hardware);
  RunFeatures run{.model = model_shape(cells), .gpu = gpu, .network = network(cells, hardware, gpu.network)};
  run.gpus = cells.count("gpus");
  run.gpus_per_node = cells.count("gpus_per_node", gpu.per_node);
  run.fp8 = cells.word("precision", {"bf16", "fp16", "fp8"}) == 2;
  run.tensor = cells.count("tp", 1, kMostOfASize);
  run.sequence_parallel = cells.flag("sp");
  run.pipeline = cells.count("pp", 1, kMostOfASize);
  run.chunks = cells.count("vp", 1, kMostOfASize);
  run.stage_layers = stage_layers(cells);
  run.context = cells.count("cp", 1, kMostOfASize);
  run.micro_batch = cells.count("micro_batch");
  run.global_batch = cells.count("global_batch");
  run.sharding =
      std::array{Sharding::zero1, Sharding::none, Sharding::fsdp}[cells.word("sharding", {"zero1", "none", "fsdp"})];
  run.recompute = static_cast<Recomputed>(cells.word("recompute", {"none", "core_attention", "selective", "full"}));
  run.attention = std::array{AttentionKernel::cudnn, AttentionKernel::flash2,
                             AttentionKernel::unfused}[cells.word("attention", {"cudnn", "flash2", "unfused"})];
  run.dropout = cells.flag("dropout");
  run.launch = std::array{KernelLaunch::eager, KernelLaunch::graphs,
                          KernelLaunch::blocking}[cells.word("launch", {"eager", "graphs", "blocking"})];
  run.gradient_bytes = cells.word("grad_bytes", {"2", "4"}) == 0 ? 2 : 4;
  run.tensor_overlaps = cells.flag("tp_overlap");
  run.data_overlaps = cells.flag("dp_overlap");
  run.pipeline_overlaps = cells.flag("pp_overlap");
  return run;
}

}  // namespace

std::vector<TableRun> parse_run_table(std::string_view text, const std::string& name, const cost::Hardware& hardware) {
  const Csv csv = parse_csv(text, name);
  for (const char* column :
       {"id", "layers", "hidden", "heads", "vocab", "seq_len", "gpu", "gpus", "micro_batch", "global_batch"}) {
    if (csv.find(column) < 0) user_error("{} has no column '{}', which has no default", name, column);
  }
  std::vector<TableRun> runs;
  std::set<std::string> ids;
  for (const Csv::Record& record : csv.records) {
    const Cells cells(csv, record, name);
    TableRun run;
    run.id = cells.text("id");
    run.features = features(cells, hardware);
    if (run.id.empty() || !ids.insert(run.id).second) cells.refuse("id", "a text that no other line has");
    run.features.data = cells.count("dp", remaining_data(run.features));
    run.features.shard_group = cells.count("shard_group", run.features.replicas());
    run.problem = layout_problem(run.features);
    run.set = cells.text("set");
    run.tier = cells.text("tier");
    run.sweep = cells.text("sweep");
    run.gpu = cells.text("gpu");
    run.precision = cells.text("precision").empty() ? "bf16" : cells.text("precision");
    run.measured_step_s = cells.seconds("measured_step_s");
    runs.push_back(std::move(run));
  }
  return runs;
}

std::vector<TableRun> read_run_table(const std::filesystem::path& file, const cost::Hardware& hardware) {
  return parse_run_table(read_text(file), file.string(), hardware);
}

}  // namespace megalith::plan
