#include "resilience/record/run_name.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "core/run_folders.h"
#include "expect_error.h"
#include "resilience/record/control_directory.h"
#include "temp_dir.h"

namespace megalith::resilience {
namespace {

TEST(RunName, IsWrittenOnce) {
  const testing::TempDir dir;
  EXPECT_FALSE(run_name(dir.path()));
  EXPECT_FALSE(std::filesystem::exists(dir.path() / kControlFolder));
  write_run_name(dir.path(), "0123456789abcdef");
  EXPECT_EQ(run_name(dir.path()), "0123456789abcdef");
  write_run_name(dir.path(), "0123456789abcdef");
  expect_error(ErrorKind::user, {"0123456789abcdef", "another-run", "control"},
               [&] { write_run_name(dir.path(), "another-run"); });
}

TEST(RunName, BecomesNoPath) {
  const testing::TempDir dir;
  write_run_name(dir.path(), "ok");
  replace_file(dir.path() / kControlFolder / "run", "../else\n");
  expect_error(ErrorKind::data, {"control/run"}, [&] { run_name(dir.path()); });
}

}  // namespace
}  // namespace megalith::resilience
