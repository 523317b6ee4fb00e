#include "launch/ranks/monitored.h"

#include "config/environment/variables.h"
#include "core/process/failpoint.h"

namespace megalith::launch {

bool has_monitor(const config::Lookup& environment) {
  return config::Variables(environment).has(kStatusPageVariable);
}

std::unique_ptr<StatusPage> open_status_page(const config::Lookup& environment) {
  const config::Variables variables(environment);
  const auto path = variables.text(kStatusPageVariable);
  if (!path) return std::make_unique<StatusPage>();
  const auto place = config::rank_environment(environment).value_or(config::RankEnvironment{});
  const int64_t generation = variables.count("MEGALITH_GENERATION").value_or(0);
  auto page = std::make_unique<StatusPage>(*path, place.rank, generation);
  set_failpoint_rank(place.rank, generation);
  arm_failpoints(variables.text(kFailpointsVariable).value_or(""));
  return page;
}

}  // namespace megalith::launch
