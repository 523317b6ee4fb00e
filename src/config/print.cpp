#include "config/print.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/keys.h"
#include "config/known_keys.h"
#include "config/load.h"
#include "config/validate.h"
#include "core/error.h"

namespace megalith::config {
namespace {

using nlohmann::ordered_json;

struct ToJson {
  template <class T>
  ordered_json operator()(const T* value) const {
    return *value;
  }
  ordered_json operator()(const std::string* text) const {
    return text->empty() ? ordered_json() : ordered_json(*text);
  }
  ordered_json operator()(const Choice& choice) const {
    const std::string_view word = choice.word(choice.value);
    return word.empty() ? ordered_json() : ordered_json(word);
  }
};

std::vector<std::string_view> words_of(std::string_view path) {
  std::vector<std::string_view> words;
  for (size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    words.push_back(path.substr(0, dot));
    path.remove_prefix(dot + 1);
  }
  words.push_back(path);
  return words;
}

// Keys of a section stand together in the list of keys, so that each section is opened once.
std::string nested_yaml(const std::vector<Key>& keys, const std::map<std::string, std::string>& derived) {
  std::string text;
  std::vector<std::string_view> open;
  for (const Key& key : keys) {
    const auto words = words_of(key.path);
    const size_t sections = words.size() - 1;
    const auto common = std::mismatch(open.begin(), open.end(), words.begin(), words.end() - 1);
    for (auto section = common.second; section != words.end() - 1; ++section) {
      text += fmt::format("{:{}}{}:\n", "", 2 * (section - words.begin()), *section);
    }
    std::string value = value_text(key.field);
    if (const auto written = derived.find(std::string(key.path)); written != derived.end())
      value = fmt::format("{}  # {}", written->second, value);
    text += fmt::format("{:{}}{}: {}\n", "", 2 * sections, words.back(), value);
    open.assign(words.begin(), words.end() - 1);
  }
  return text;
}

}  // namespace

std::string to_yaml(const Run& run) {
  Run copy = run;
  return fmt::format("{}: {}\n", kVersionKey, kConfigVersion) + nested_yaml(keys_of(copy), run.derived);
}

std::string changes_to_yaml(const Run& run) {
  Run copy = run;
  Run defaults;
  const std::vector<Key> keys = keys_of(copy);
  const std::vector<Key> default_keys = keys_of(defaults);
  std::vector<Key> changed;
  for (size_t i = 0; i < keys.size(); ++i) {
    const bool was_set = !run.derived.contains(std::string(keys[i].path));
    if (was_set && value_text(keys[i].field) != value_text(default_keys[i].field)) changed.push_back(keys[i]);
  }
  return nested_yaml(changed, {});
}

std::map<std::string, std::string> derived_values(const std::string& yaml) {
  std::map<std::string, std::string> values;
  try {
    Run run = load(std::vector<Source>{{.name = "hparams.yaml", .text = yaml}}, {});
    validate(run);
    for (const Key& key : keys_of(run)) {
      if (const std::string path(key.path); run.derived.contains(path)) values.emplace(path, value_text(key.field));
    }
  } catch (const Error&) {
    values.clear();
  }
  return values;
}

std::vector<std::pair<std::string, ordered_json>> flatten(const Run& run) {
  constexpr std::string_view kModel = "model.";
  Run copy = run;
  std::vector<std::pair<std::string, ordered_json>> record;
  for (const Key& key : keys_of(copy)) {
    if (!key.path.starts_with(kModel)) continue;
    std::string name = "cfg/" + std::string(key.path.substr(kModel.size()));
    std::replace(name.begin(), name.end(), '.', '/');
    record.emplace_back(std::move(name), std::visit(ToJson{}, key.field));
  }
  record.emplace_back("cfg/precision", word_of(run.trainer.precision));
  return record;
}

std::string describe_keys() {
  Run defaults;
  std::string text = "Keys, with their defaults (in a recipe, or as key=value):\n\n";
  for (const Key& key : keys_of(defaults)) {
    text += fmt::format("  {}: {}\n      {} ({})\n", key.path, value_text(key.field), key.help, type_name(key.field));
  }
  text += "\nKeys of NeMo that are accepted and ignored:\n\n";
  for (const KnownKey& key : known_keys()) {
    if (key.fate == KnownKey::Fate::ignored) text += fmt::format("  {}: {}\n", key.pattern, key.reason);
  }
  text += "\nKeys of NeMo that are refused, except with null or the value in brackets:\n\n";
  for (const KnownKey& key : known_keys()) {
    if (key.fate != KnownKey::Fate::refused) continue;
    text += fmt::format("  {}{}: {}\n", key.pattern, key.harmless.empty() ? "" : fmt::format(" [{}]", key.harmless),
                        key.reason);
  }
  return text;
}

}  // namespace megalith::config
