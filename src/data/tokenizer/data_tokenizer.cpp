#include "data/tokenizer/data_tokenizer.h"

#include <nlohmann/json.hpp>
#include <tuple>

#include "core/error.h"
#include "core/file.h"
#include "data/order/make_dataset.h"

namespace megalith::data {

RecordedTokenizer recorded(const Tokenizer& tokenizer) {
  return {.identity = tokenizer.identity(), .vocab_size = tokenizer.vocab_size(), .eod = tokenizer.eod()};
}

std::optional<RecordedTokenizer> tokenizer_of_data(const std::string& prefix) {
  const std::string path = prefix + ".json";
  if (size_if_there(path) < 0) return std::nullopt;
  const auto json = nlohmann::json::parse(read_text(path), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) data_error("{}: the sidecar of the dataset is damaged: it is not a JSON object", path);
  // Datasets that were merged have no config, and name the tokenizer that all of them share.
  const auto& config = json.contains("config") ? json.at("config") : json;
  if (!config.is_object() || !config.contains("tokenizer")) return std::nullopt;
  try {
    const auto& tokenizer = config.at("tokenizer");
    return RecordedTokenizer{.identity = {.type = tokenizer.at("type").get<std::string>(),
                                          .grammar = tokenizer.at("grammar").get<std::string>(),
                                          .reference = tokenizer.at("reference").get<std::string>(),
                                          .unicode_version = tokenizer.at("unicode_version").get<std::string>(),
                                          .digest = tokenizer.at("digest").get<std::string>()},
                             .vocab_size = tokenizer.at("vocab_size").get<int64_t>(),
                             .eod = config.at("append_eod").get<bool>() ? tokenizer.at("eod").get<int32_t>() : -1};
  } catch (const nlohmann::json::exception&) {
    data_error("{}: the sidecar of the dataset is damaged: it does not say which tokenizer made it", path);
  }
}

std::string describe(const RecordedTokenizer& tokenizer) {
  const TokenizerIdentity& identity = tokenizer.identity;
  if (identity.digest.empty()) return identity.type;
  return fmt::format("{} (grammar {}, digest {})", identity.type, identity.grammar, identity.digest);
}

bool same_tokenizer(const RecordedTokenizer& a, const RecordedTokenizer& b) {
  const auto key = [](const TokenizerIdentity& id) { return std::tie(id.type, id.grammar, id.reference, id.digest); };
  return key(a.identity) == key(b.identity) && (a.eod == b.eod || a.eod < 0 || b.eod < 0);
}

std::string tokenizer_problem(const std::string& prefix, const Tokenizer& tokenizer) {
  const std::optional<RecordedTokenizer> made_with = tokenizer_of_data(prefix);
  if (!made_with) return {};
  const RecordedTokenizer given = recorded(tokenizer);
  if (same_tokenizer(*made_with, given)) return {};
  if (made_with->identity.digest == given.identity.digest && made_with->eod != given.eod && made_with->eod >= 0) {
    return fmt::format("{} ends its documents with id {}, the tokenizer given with id {}: name the token of the data",
                       prefix, made_with->eod, given.eod);
  }
  return fmt::format("{} was made with {}, the tokenizer given is {}: the same ids mean other text to it", prefix,
                     describe(*made_with), describe(given));
}

void check_tokenizer_of_data(const config::Data& data, const config::Tokenizer& tokenizer) {
  if (data.data_impl == config::DataImpl::mock || !can_make_tokenizer(tokenizer)) return;
  const auto made = make_tokenizer(tokenizer);
  for (const std::string& prefix : prefixes_of_all_splits(data)) {
    const std::string problem = tokenizer_problem(prefix, *made);
    if (problem.empty()) continue;
    user_error(
        "{}. Give model.tokenizer.* as the data were made, or, to train on ids as they are, no tokenizer files and "
        "model.tokenizer.vocab_size",
        problem);
  }
}

}  // namespace megalith::data
