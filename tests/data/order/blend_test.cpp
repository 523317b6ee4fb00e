#include "data/order/blend.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "data/data_testing.h"

namespace megalith::data {
namespace {

using Texts = std::vector<std::string>;

TEST(ParseDataPrefix, ReadsTheThreeForms) {
  EXPECT_EQ(parse_data_prefix({"a"}).prefixes, Texts{"a"});
  EXPECT_FALSE(parse_data_prefix({"a"}).weighted());
  EXPECT_EQ(parse_data_prefix({"a", "b", "c"}).prefixes, (Texts{"a", "b", "c"}));
  EXPECT_EQ(parse_data_prefix({"a", "b"}).prefixes, (Texts{"a", "b"}));
  const DataSources pairs = parse_data_prefix({"0.3", "a", "2", "b"});
  EXPECT_EQ(pairs.prefixes, (Texts{"a", "b"}));
  EXPECT_EQ(pairs.weights, (std::vector<double>{0.3, 2.0}));
}

TEST(ParseDataPrefix, SaysWhatWeightsMean) {
  const auto expect = [](const Texts& list, const Texts& pieces) {
    expect_error(ErrorKind::user, pieces, [&] { parse_data_prefix(list); });
  };
  expect({}, {"is empty"});
  expect({"1.0"}, {"weight 1.0 without a prefix", "share of all training samples"});
  expect({"0", "a", "1", "b"}, {"weight of a is 0", "share of all training samples", "not of tokens", "above 0"});
  expect({"-1", "a"}, {"weight of a is -1"});
  expect({"inf", "a"}, {"weight of a is inf"});
  expect({"0.5", "a", "b", "c"}, {"\"b\", \"c\"", "to all datasets or to none"});
  expect({"a", "0.5", "b", "0.5"}, {"\"a\", \"0.5\""});
  expect({"0.5", "a", "b"}, {"3 entries", "[weight, prefix,"});
}

TEST(ParseDataPrefix, ExpandsPatternsInNaturalOrder) {
  const TempDir directory;
  for (const char* name : {"s10", "s9", "s2", "s02", "t1"}) write_bytes(directory / (std::string(name) + ".idx"), "");
  const DataSources sources = parse_data_prefix({"2.5", directory / "s*", "1", directory / "t?"});
  EXPECT_EQ(sources.prefixes,
            (Texts{directory / "s02", directory / "s2", directory / "s9", directory / "s10", directory / "t1"}));
  EXPECT_EQ(sources.weights, (std::vector<double>{2.5, 2.5, 2.5, 2.5, 1.0}));
  expect_error(ErrorKind::user, {"no dataset matches", "u*.idx"}, [&] { parse_data_prefix({directory / "u*"}); });
}

TEST(FilesOfSplit, HoldsOutTheLastFiles) {
  DataSources all;
  for (int i = 0; i < 72; ++i) {
    all.prefixes.push_back(std::to_string(i));
    all.weights.push_back(i + 1);
  }
  const DataSources train = files_of_split(all, Split::train, 15, 15);
  const DataSources test = files_of_split(all, Split::test, 15, 15);
  const DataSources valid = files_of_split(all, Split::valid, 15, 15);
  EXPECT_EQ(train.prefixes.size(), 42u);
  EXPECT_EQ(train.prefixes.back(), "41");
  EXPECT_EQ(test.prefixes.front(), "42");
  EXPECT_EQ(test.prefixes.back(), "56");
  EXPECT_EQ(valid.prefixes.front(), "57");
  EXPECT_EQ(valid.prefixes.back(), "71");
  EXPECT_EQ(valid.weights.front(), 58.0);
  expect_error(ErrorKind::user, {"test_files=0", "test split"}, [&] { files_of_split(all, Split::test, 15, 0); });
  expect_error(ErrorKind::user, {"nothing to train on", "72 datasets"},
               [&] { files_of_split(all, Split::train, 40, 32); });
}

// The expected bits are those of numpy: w / numpy.sum(w) for w[i] = sqrt(i + 1).
TEST(Normalised, RoundsAsNumpy) {
  struct Case {
    size_t count;
    uint64_t first, last;
  };
  for (const Case& expected :
       {Case{3, 0x3fcedf047cd9f2dfu, 0x3fdabc36c545284bu}, Case{8, 0x3faf664492a8d7e1u, 0x3fc633e9e936c7e5u},
        Case{13, 0x3f9f2aec82a6ad68u, 0x3fbc181ad30b94acu}, Case{128, 0x3f50e0109fbf9c63u, 0x3f87dd7e92a3b839u},
        Case{129, 0x3f50ae1c9242621fu, 0x3f87ae64a2dfa2aau}, Case{1000, 0x3f08d9cbfd182076u, 0x3f588ecd708f8ed3u},
        Case{2400, 0x3eeabf25ea0a2d3bu, 0x3f447941860657acu}, Case{33000, 0x3e90caa203103c57u, 0x3f07d4aae035274bu}}) {
    std::vector<double> weights;
    for (size_t i = 0; i < expected.count; ++i) weights.push_back(std::sqrt(static_cast<double>(i + 1)));
    const std::vector<double> shares = normalised(weights);
    EXPECT_EQ(std::bit_cast<uint64_t>(shares.front()), expected.first) << expected.count;
    EXPECT_EQ(std::bit_cast<uint64_t>(shares.back()), expected.last) << expected.count;
  }
}

TEST(SharesOfBlend, DividesAsMegatron) {
  const BlendShares shares = shares_of_blend(std::vector<double>{0.3, 0.7, 1e-6}, 1000);
  EXPECT_EQ(shares.requests, (std::vector<int64_t>{302, 704, 2}));  // ceil(ceil(1000 w) x 1.005)
  EXPECT_EQ(shares.samples, 300 + 700 + 1);
  EXPECT_EQ(shares_of_blend(std::vector<double>{1.0}, 1000).requests, std::vector<int64_t>{1005});
  expect_error(ErrorKind::user, {"weight"}, [] { shares_of_blend(std::vector<double>{1e-300, 1e300}, 10); });
}

}  // namespace
}  // namespace megalith::data
