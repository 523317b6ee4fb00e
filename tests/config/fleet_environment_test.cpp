#include "config/fleet_environment.h"

#include <gtest/gtest.h>

#include <map>

#include "expect_error.h"

namespace megalith::config {
namespace {

using Values = std::map<std::string, std::string>;

const Values kGood{{"MEGALITH_NODE", "gpu-7"},
                   {"MEGALITH_RUN", "0123456789abcdef"},
                   {"MEGALITH_GENERATION", "3"},
                   {"MEGALITH_LINEAGE", "1:none,3:20"}};

std::optional<FleetEnvironment> fleet_under(const Values& values) {
  return fleet_environment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(FleetEnvironment, WithoutAMonitorThereIsNone) {
  EXPECT_EQ(fleet_under({}), std::nullopt);
  EXPECT_EQ(fleet_under({{"MEGALITH_GENERATION", "3"}, {"MEGALITH_NODE", ""}}), std::nullopt);
}

TEST(FleetEnvironment, IsWhatTheMonitorMeant) {
  const FleetEnvironment expected{.run_id = "0123456789abcdef",
                                  .node = "gpu-7",
                                  .generations = {{1, GenerationStart::kAnew}, {3, 20}},
                                  .holders_file = {}};
  EXPECT_EQ(fleet_under(kGood), expected);
  FleetEnvironment with_holders = expected;
  with_holders.holders_file = "/run/x/holders";
  Values values;
  for (const std::string& variable : variables_of(with_holders))
    values.emplace(variable.substr(0, variable.find('=')), variable.substr(variable.find('=') + 1));
  EXPECT_EQ(fleet_under(values), with_holders);
}

TEST(FleetEnvironment, RefusesWhatIsMissingByName) {
  for (const char* name : {"MEGALITH_RUN", "MEGALITH_GENERATION", "MEGALITH_LINEAGE"}) {
    Values values = kGood;
    values.erase(name);
    expect_error(ErrorKind::user, {name, "MEGALITH_NODE"}, [&] { fleet_under(values); });
  }
}

TEST(FleetEnvironment, RefusesNonsenseByName) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> wrong{
      {"MEGALITH_NODE", {"..", "a/b", ".hidden", "a b", std::string(65, 'a')}},
      {"MEGALITH_RUN", {"../x", "a/b"}},
      {"MEGALITH_GENERATION", {"2", "-3", "x"}},
      {"MEGALITH_LINEAGE",
       {"3", "3:", ":20", "3:-1", "3:x", "0:none,3:20", "3:20,", "1:5,,3:20", "2:5,2:6,3:20", "4:5,3:20",
        "3:99999999999999999999"}}};
  for (const auto& [name, values] : wrong) {
    for (const std::string& value : values) {
      Values changed = kGood;
      changed[name] = value;
      expect_error(ErrorKind::user, {name}, [&] { fleet_under(changed); });
    }
  }
}

}  // namespace
}  // namespace megalith::config
