#include <gtest/gtest.h>

#include "data/prepare/parquet_file.h"
#include "expect_error.h"

namespace megalith::data {
namespace {

TEST(NoParquet, SaysWhatIsMissing) {
  const std::vector<std::string> parts{"in.parquet: ", "does not read Parquet", "libmegalith_parquet.so",
                                       "scripts/install-deps --parquet", "jsonl"};
  expect_error(ErrorKind::user, parts, [] { require_parquet_reader("in.parquet"); });
  expect_error(ErrorKind::user, parts, [] { open_parquet("in.parquet", {"text"}); });
}

}  // namespace
}  // namespace megalith::data
