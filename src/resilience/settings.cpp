#include "resilience/settings.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"

namespace megalith::resilience {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {
// Every member but the ladder once, for both directions.
template <class SettingsType, class Visit>
void visit_members(SettingsType& s, Visit visit) {
  visit("run", s.run);
  visit("nodes", s.nodes);
  visit("ranks_per_node", s.ranks_per_node);
  visit("pipeline_stages", s.pipeline_stages);
  visit("config", s.config);
  visit("overrides", s.overrides);
  visit("fewer_nodes", s.fewer_nodes);
  visit("first_generation", s.first_generation);
  visit("max_in_job_restarts", s.max_in_job_restarts);
  visit("max_workload_restarts", s.max_workload_restarts);
  visit("starts_before_eviction", s.starts_before_eviction);
  visit("max_starts", s.max_starts);
  visit("back_off", s.back_off);
  visit("heartbeat_timeout", s.heartbeat_timeout);
  visit("initial_rank_heartbeat_timeout", s.initial_rank_heartbeat_timeout);
  visit("rank_heartbeat_timeout", s.rank_heartbeat_timeout);
  visit("start_timeout", s.start_timeout);
  visit("workload_downtime_threshold", s.workload_downtime_threshold);
  visit("scale_up_after", s.scale_up_after);
  visit("gather", s.gather);
  visit("stop_timeout", s.stop_timeout);
  visit("answer_timeout", s.answer_timeout);
  visit("settle", s.settle);
  visit("save_timeout", s.save_timeout);
}
}  // namespace

Settings settings_of(const config::Run& run) {
  const config::Supervision& supervision = run.supervision;
  Settings settings{.nodes = run.trainer.num_nodes,
                    .ranks_per_node = run.trainer.devices,
                    .pipeline_stages = run.model.pipeline_model_parallel_size,
                    .max_in_job_restarts = supervision.max_in_job_restarts,
                    .max_workload_restarts = supervision.max_workload_restarts,
                    .heartbeat_timeout = supervision.heartbeat_timeout_s,
                    .initial_rank_heartbeat_timeout = supervision.initial_rank_heartbeat_timeout,
                    .rank_heartbeat_timeout = supervision.rank_heartbeat_timeout,
                    .start_timeout = run.trainer.start_timeout,
                    .workload_downtime_threshold = supervision.workload_downtime_threshold_s,
                    .scale_up_after = supervision.scale_up_after_s};
  if (supervision.policy.empty()) return settings;
  const std::string where = "resilience.policy: " + supervision.policy;
  std::string policy;
  try {
    policy = read_text(supervision.policy);
  } catch (const Error& error) {
    user_error("{}: {}", where, error.what());
  }
  settings.ladder.replace_rows(policy, where);
  return settings;
}

std::string to_text(const Settings& settings) {
  ordered_json object;
  visit_members(settings, [&](const char* key, const auto& value) { object[key] = value; });
  object["ladder"] = settings.ladder.to_text();
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Settings parse_settings(const std::string& text, const std::string& where) {
  Settings settings;
  try {
    const json object = json::parse(text);
    visit_members(settings, [&](const char* key, auto& value) { object.at(key).get_to(value); });
    settings.ladder.replace_rows(object.at("ladder").get<std::string>(), where);
  } catch (const json::exception& error) {
    data_error("{}: the settings of a supervisor are damaged ({})", where, error.what());
  }
  if (settings.nodes < 1 || settings.ranks_per_node < 1 || settings.pipeline_stages < 1) {
    data_error("{}: the settings of a supervisor have no nodes, ranks or stages", where);
  }
  const std::vector<int64_t>& fewer = settings.fewer_nodes;
  const bool go_down = std::adjacent_find(fewer.begin(), fewer.end(), std::less_equal<>()) == fewer.end();
  if (!fewer.empty() && (!go_down || fewer.front() >= settings.nodes || fewer.back() < 1)) {
    data_error("{}: the settings of a supervisor go on with {} of {} nodes", where, fmt::join(fewer, ", "),
               settings.nodes);
  }
  return settings;
}

}  // namespace megalith::resilience
