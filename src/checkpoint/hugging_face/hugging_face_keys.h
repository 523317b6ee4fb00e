#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "checkpoint/format/strict_json.h"
#include "checkpoint/hugging_face/hugging_face_names.h"
#include "config/run_config.h"

namespace megalith::checkpoint {

// The keys of config.json, as data. Included by .cpp files only: nlohmann's header is heavy.

using ModelField = std::variant<int64_t config::Model::*, double config::Model::*, bool config::Model::*>;

// A key of theirs and the field of ours that says the same.
struct KeyRule {
  const char* theirs;
  ModelField ours;
  nlohmann::json absent = {};  // what absence, or null, means; null: it must be there
};

// A key that must have one of these values. The first is what absence means and what we write, unless it is null.
struct FixedKey {
  const char* theirs;
  std::vector<nlohmann::json> accepted;
};

struct FamilyKeys {
  std::vector<KeyRule> rules;
  std::vector<FixedKey> fixed;
  void (*set_choices)(config::Model& model);  // what the family itself says
};

const FamilyKeys& keys_of(HuggingFaceFamily family);

// Reads the keys of an object, in which null is as good as absence, and remembers which.
class KeyReader {
 public:
  KeyReader(const nlohmann::json& object, std::string where);

  const std::string& where() const { return where_; }
  [[noreturn]] void refuse(const std::string& reason) const;

  // Nothing where the key is absent or null.
  const nlohmann::json* find(const char* key);
  int64_t integer(const char* key);
  double number(const char* key, std::optional<double> absent = std::nullopt);
  std::string text(const char* key, const std::string& absent);
  void must_be(const char* key, const std::vector<nlohmann::json>& accepted);
  void read(const KeyRule& rule, config::Model& model);
  void must_agree(const KeyRule& one, const KeyRule& other);

  std::vector<std::string> unused() const;

 private:
  const nlohmann::json& value_of(const char* key, const nlohmann::json& absent);

  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string> used_;
};

}  // namespace megalith::checkpoint
