#include "train/run/same_data.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "config/derived.h"
#include "config/load.h"
#include "core/file.h"
#include "core/hash/digest.h"
#include "data/files/indexed_dataset.h"
#include "data/order/blend.h"
#include "train/run/run_files.h"

namespace megalith::train {

namespace {

constexpr const char* kUnknown = "unknown";

// The digest of the tokens, as the sidecar of a dataset says it; empty without one.
std::string digest_in_sidecar(const std::string& prefix) {
  std::error_code ignored;
  if (!std::filesystem::exists(prefix + ".json", ignored)) return {};
  const auto sidecar = nlohmann::json::parse(read_text(prefix + ".json"), nullptr, /*allow_exceptions=*/false);
  const auto digest = nlohmann::json::json_pointer("/bin/xxh3");
  const bool known = sidecar.is_object() && sidecar.contains(digest) && sidecar.at(digest).is_string();
  return known ? sidecar.at(digest).get<std::string>() : std::string();
}

// Of a list of datasets. The content is known only where all have a sidecar, which may be left behind in a move.
struct ListIdentity {
  std::string shape;    // hash of the weights and of the lengths of all sequences
  std::string content;  // hash of the digests of the tokens, or kUnknown

  std::string to_text() const { return fmt::format("shape {} content {}", shape, content); }
  static ListIdentity from_text(const std::string& text) {
    ListIdentity identity;
    std::string word;
    std::istringstream(text) >> word >> identity.shape >> word >> identity.content;
    return identity;
  }
  bool matches(const ListIdentity& other) const {
    const bool comparable = content != kUnknown && other.content != kUnknown;
    return shape == other.shape && (!comparable || content == other.content);
  }
};

ListIdentity identify(const DataList& list) {
  const data::DataSources sources = data::parse_data_prefix(list.entries, list.key);
  std::string shapes = fmt::format("{}\n", fmt::join(sources.weights, " "));
  std::string contents;
  bool content_is_known = true;
  for (const std::string& prefix : sources.prefixes) {
    const data::IndexedDataset dataset{prefix};
    shapes += dataset.content_hash().hex() + "\n";
    const std::string digest = digest_in_sidecar(prefix);
    content_is_known = content_is_known && !digest.empty();
    contents += digest + "\n";
  }
  return {.shape = hash128(shapes).hex(), .content = content_is_known ? hash128(contents).hex() : kUnknown};
}

std::string show(const std::vector<std::string>& list) {
  constexpr size_t kShown = 4;
  const size_t shown = std::min(kShown, list.size());
  return fmt::format("[{}{}]", fmt::join(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < list.size() ? fmt::format(", and {} more", list.size() - shown) : "");
}

class Comparison {
 public:
  Comparison(const checkpoint::RunState& before, const DataIdentity& identity) : before_(before), identity_(identity) {}

  void list(const std::string& key, const std::vector<std::string>& old, const std::vector<std::string>& now) {
    const auto then = before_.extra.find(key);
    const auto here = identity_.find(key);
    const bool known = then != before_.extra.end() && here != identity_.end();
    if (!known) return value(key, show(old), show(now), old == now);
    if (ListIdentity::from_text(then->second).matches(ListIdentity::from_text(here->second))) return;
    if (old == now) {
      changes_.push_back(fmt::format("{} {}, whose files are not those of the checkpoint", key, show(now)));
    } else {
      value(key, show(old), show(now), false);
    }
  }
  void value(const std::string& key, const std::string& old, const std::string& now, bool same) {
    if (!same) changes_.push_back(fmt::format("{} from {} to {}", key, old, now));
  }
  std::string text() const { return fmt::format("{}", fmt::join(changes_, "; ")); }

 private:
  const checkpoint::RunState& before_;
  const DataIdentity& identity_;
  std::vector<std::string> changes_;
};

}  // namespace

DataIdentity identify_data(const config::Data& data) {
  DataIdentity identity;
  for (const DataList& list : data_lists(data)) identity[list.key] = identify(list).to_text();
  return identity;
}

void remember_data(const DataIdentity& identity, checkpoint::RunState& state) {
  for (const char* key : {kTrainList, kValidationList, kTestList}) state.extra.erase(key);
  state.extra.insert(identity.begin(), identity.end());
}

std::string data_changes(const checkpoint::RunState& before, const config::Data& now, const DataIdentity& identity) {
  const std::vector<config::Source> sources{{.name = "checkpoint", .text = before.config}};
  const config::Data old = config::load(sources, {}).model.data;
  const bool was_made_up = learns_made_up_tokens(old);
  const bool is_made_up = learns_made_up_tokens(now);
  if (was_made_up && is_made_up) return {};
  const auto impl = [](bool made_up) { return made_up ? "mock" : "mmap"; };
  Comparison comparison(before, identity);
  comparison.value("model.data.data_impl", impl(was_made_up), impl(is_made_up), was_made_up == is_made_up);
  comparison.list(kTrainList, old.data_prefix, now.data_prefix);
  comparison.list(kValidationList, old.validation_prefix, now.validation_prefix);
  comparison.list(kTestList, old.test_prefix, now.test_prefix);
  if (was_made_up || is_made_up) return comparison.text();
  const auto number = [&](const char* key, int64_t then, int64_t here) {
    comparison.value(key, std::to_string(then), std::to_string(here), then == here);
  };
  comparison.value("model.data.splits_string", old.splits_string, now.splits_string,
                   config::parse_splits(old.splits_string) == config::parse_splits(now.splits_string));
  number("model.data.validation_files", old.validation_files, now.validation_files);
  number("model.data.test_files", old.test_files, now.test_files);
  return comparison.text();
}

}  // namespace megalith::train
