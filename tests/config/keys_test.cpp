#include "config/keys.h"

#include <gtest/gtest.h>

#include <set>

#include "config/known_keys.h"

namespace megalith::config {
namespace {

TEST(Keys, EachKeyAndFieldOnce) {
  config::Run run;
  std::set<std::string_view> paths;
  std::set<const void*> fields;
  for (const Key& key : keys_of(run)) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
    const auto address_of = []<class T>(const T& field) -> const void* {
      if constexpr (std::is_same_v<T, Choice>) {
        return field.value;
      } else {
        return field;
      }
    };
    const void* address = std::visit(address_of, key.field);
    EXPECT_TRUE(fields.insert(address).second) << key.path;
    EXPECT_FALSE(key.help.empty()) << key.path;
  }
}

// Printing opens a section where its first key stands, so its keys must follow each other.
TEST(Keys, SectionsAreContiguous) {
  config::Run run;
  std::set<std::string> closed;
  std::string previous;
  for (const Key& key : keys_of(run)) {
    const std::string path(key.path);
    for (size_t dot = previous.find('.'); dot != std::string::npos; dot = previous.find('.', dot + 1)) {
      const std::string section = previous.substr(0, dot + 1);
      if (!path.starts_with(section)) closed.insert(section);
    }
    for (const auto& section : closed) EXPECT_FALSE(path.starts_with(section)) << path;
    previous = path;
  }
}

TEST(Keys, NoImplementedKeyIsAlsoIgnoredOrRefused) {
  config::Run run;
  for (const Key& key : keys_of(run)) EXPECT_EQ(find_known(key.path), nullptr) << key.path;
}

TEST(KnownKeys, AreListedOnceWithAReason) {
  std::set<std::string_view> patterns;
  for (const KnownKey& key : known_keys()) {
    EXPECT_TRUE(patterns.insert(key.pattern).second) << key.pattern;
    EXPECT_FALSE(key.reason.empty()) << key.pattern;
  }
}

TEST(KnownKeys, ExactWinsOverPrefixAndLongOverShort) {
  EXPECT_EQ(find_known("exp_manager.ema.enable")->fate, KnownKey::Fate::refused);
  EXPECT_EQ(find_known("exp_manager.ema.decay")->fate, KnownKey::Fate::ignored);
}

}  // namespace
}  // namespace megalith::config
