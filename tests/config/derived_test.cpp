#include "config/derived.h"

#include <gtest/gtest.h>

#include <utility>

#include "expect_error.h"

namespace megalith::config {
namespace {

TEST(Derived, PaddedVocabulary) {
  EXPECT_EQ(padded_vocab(50257, 128), 50304);
  EXPECT_EQ(padded_vocab(50257, 1024), 51200);
  EXPECT_EQ(padded_vocab(128256, 128), 128256);
  EXPECT_EQ(padded_vocab(1, 1), 1);
}

TEST(Derived, Gpt3On256Gpus) {
  config::Run run;
  run.trainer.devices = 8;
  run.trainer.num_nodes = 32;
  run.model.tensor_model_parallel_size = 4;
  run.model.pipeline_model_parallel_size = 8;
  run.model.global_batch_size = 2048;
  EXPECT_EQ(world_size(run.trainer), 256);
  EXPECT_EQ(model_parallel_size(run.model), 32);
  EXPECT_EQ(data_parallel_size(run), 8);
  EXPECT_EQ(micro_batches_per_step(run), 256);
}

TEST(Derived, DerivedSizes) {
  Model model;
  EXPECT_EQ(ffn_hidden_size(model), 3072);
  EXPECT_EQ(num_query_groups(model), 12);
  EXPECT_EQ(kv_channels(model), 64);
  EXPECT_EQ(max_position_embeddings(model), 1024);
  model.ffn_hidden_size = 5;
  model.num_query_groups = 3;
  model.kv_channels = 7;
  model.max_position_embeddings = 9;
  EXPECT_EQ(ffn_hidden_size(model), 5);
  EXPECT_EQ(num_query_groups(model), 3);
  EXPECT_EQ(kv_channels(model), 7);
  EXPECT_EQ(max_position_embeddings(model), 9);
}

TEST(Derived, MaxTime) {
  EXPECT_EQ(parse_max_time("00:00:00:01"), 1);
  EXPECT_EQ(parse_max_time("25:23:00:00"), (25 * 24 + 23) * 3600);
  EXPECT_EQ(parse_max_time("1:2:3:4"), 93784);
  for (const std::string text : {"", "10", "01:00:00", "a:b:c:d", "00:24:00:00", "00:00:60:00", "00:00:00:60",
                                 "-1:00:00:00", "1:2:3:4:5", "::::", "1.5:00:00:00", "99999999:00:00:00"}) {
    expect_parts(user_error_of([&] { parse_max_time(text); }), {"trainer.max_time", text, "DD:HH:MM:SS"});
  }
}

TEST(Derived, TimeInterval) {
  for (const auto& [text, seconds] : {std::pair("600", 600.0),
                                      {"0.5", 0.5},
                                      {"90s", 90.0},
                                      {"10m", 600.0},
                                      {"1.5h", 5400.0},
                                      {"1:30:05", 5405.0},
                                      {"2:00:00:01", 172801.0},
                                      {"0:90:0", 5400.0}}) {
    EXPECT_DOUBLE_EQ(parse_time_interval(text), seconds) << text;
  }
  for (const std::string text :
       {"", "0", "-5", "nan", "inf", "m", "5d", "1:2", "1:2:3:4:5", "::", "1:-2:3", "1:2.5:3", "0:0:0", "1e300h"}) {
    expect_parts(user_error_of([&] { parse_time_interval(text); }), {"train_time_interval", "'" + text + "'", "H:M:S"});
  }
}

TEST(Derived, Splits) {
  const auto shares = parse_splits("969, 30, 1");
  EXPECT_DOUBLE_EQ(shares[0], 0.969);
  EXPECT_DOUBLE_EQ(shares[1], 0.030);
  EXPECT_DOUBLE_EQ(shares[2], 0.001);
  EXPECT_EQ(parse_splits("90,10"), (std::array<double, 3>{0.9, 0.1, 0.0}));
  EXPECT_EQ(parse_splits("1"), (std::array<double, 3>{1, 0, 0}));
  for (const std::string text : {"", "a,b,c", "1,2,3,4", "-1,2,3", "0,0,0", "1,,2", "nan,1,1"}) {
    expect_parts(user_error_of([&] { parse_splits(text); }), {"model.data.splits_string"});
  }
}

}  // namespace
}  // namespace megalith::config
