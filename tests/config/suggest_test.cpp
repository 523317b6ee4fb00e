#include "config/suggest.h"

#include <gtest/gtest.h>

namespace megalith::config {
namespace {

TEST(Suggest, EditDistanceCountsSwapsOnce) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", "abc"), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("abc", "acb"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(Suggest, FindsMisspelledKeys) {
  EXPECT_EQ(nearest_key("trainer.max_step"), "trainer.max_steps");
  EXPECT_EQ(nearest_key("model.num_layer"), "model.num_layers");
  EXPECT_EQ(nearest_key("model.optim.sched.warmup_step"), "model.optim.sched.warmup_steps");
  EXPECT_EQ(nearest_key("model.transfomer_engine"), "model.transformer_engine");
}

TEST(Suggest, FindsKeysInOtherSections) {
  EXPECT_EQ(nearest_key("max_steps"), "trainer.max_steps");
  EXPECT_EQ(nearest_key("lr"), "model.optim.lr");
  EXPECT_EQ(nearest_key("trainer.micro_batch_size"), "model.micro_batch_size");
  EXPECT_EQ(nearest_key("model.explicit_log_dir"), "exp_manager.explicit_log_dir");
}

TEST(Suggest, FindsNamesThatAreMisspelledOrBegun) {
  const std::vector<std::string> verbs{"train", "generate", "evaluate", "run"};
  EXPECT_EQ(nearest_name("trian", verbs), "train");
  EXPECT_EQ(nearest_name("eval", verbs), "evaluate");
  EXPECT_EQ(nearest_name("foo", verbs), std::nullopt);
  EXPECT_EQ(nearest_name("rx", verbs), "run");
  EXPECT_EQ(nearest_name("xy", {"ab"}), std::nullopt);  // nothing of it is left
  EXPECT_EQ(nearest_name("", verbs), std::nullopt);
}

TEST(Suggest, SaysNothingAboutNonsense) {
  EXPECT_FALSE(nearest_key("zzzzzzzzzzqq"));
  EXPECT_FALSE(nearest_key(""));
  EXPECT_FALSE(nearest_key(std::string(1000, 'm')));
}

}  // namespace
}  // namespace megalith::config
