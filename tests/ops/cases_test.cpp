#include <filesystem>
#include <regex>
#include <set>

#include "core/file.h"
#include "ops/op.h"
#include "ops/op_test.h"
#include "repository.h"

namespace megalith::ops::testing {

void PrintTo(const OpCase& c, std::ostream* out) {
  *out << c.operation << " " << c.shape;
}

namespace {

class EveryCase : public ::testing::TestWithParam<OpCase> {};

TEST_P(EveryCase, MatchesItsReference) {
  expect_matches(GetParam());
}

class EveryGradient : public ::testing::TestWithParam<OpCase> {};

TEST_P(EveryGradient, MatchesFiniteDifferences) {
  expect_gradients(GetParam());
}

OpCases cases_with_gradients() {
  OpCases cases = all_cases(Size::small);
  std::erase_if(cases, [](const OpCase& c) { return !c.backward; });
  return cases;
}

std::string name_of(const ::testing::TestParamInfo<OpCase>& info) {
  return fmt::format("{}_{}", info.param.operation, info.index);
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryCase, ::testing::ValuesIn(all_cases(Size::small)), name_of);
INSTANTIATE_TEST_SUITE_P(Ops, EveryGradient, ::testing::ValuesIn(cases_with_gradients()), name_of);

std::set<std::string> declared_operations() {
  const std::regex declaration("\nMEGALITH_OP\\((\\w+),");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(in_repository("src/ops"))) {
    if (entry.path().extension() != ".h") continue;
    const std::string text = read_text(entry.path());
    for (std::sregex_iterator found(text.begin(), text.end(), declaration), end; found != end; ++found) {
      names.insert(found->str(1));
    }
  }
  return names;
}

// Each operation that cases call, and its cost.
std::map<std::string, OpCost> called_operations() {
  std::map<std::string, OpCost> called;
  for (const OpCase& c : all_cases(Size::small)) {
    if (called.contains(c.operation)) continue;
    ThreadPool pool(1);
    Stream stream(pool);
    const OpObservation observation(stream, [&](const OpCall& call) { called.emplace(call.name, call.cost); });
    c.run(stream, DType::f32, c.inputs());
  }
  return called;
}

TEST(Cases, CallEveryOperationAndTimeAllThatTouchMemory) {
  const std::map<std::string, OpCost> called = called_operations();
  std::set<std::string> timed;
  for (const OpCase& c : all_cases(Size::large)) timed.insert(c.operation);
  EXPECT_GE(declared_operations().size(), 30U);
  for (const std::string& operation : declared_operations()) {
    ASSERT_TRUE(called.contains(operation)) << "no case in tests/ops/cases calls " << operation;
    EXPECT_TRUE(called.at(operation).bytes == 0.0 || timed.contains(operation)) << "no large case of " << operation;
  }
}

}  // namespace
}  // namespace megalith::ops::testing
