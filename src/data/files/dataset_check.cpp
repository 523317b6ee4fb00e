#include "data/files/dataset_check.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/hash/digest.h"
#include "core/thread_pool.h"
#include "data/files/indexed_dataset.h"
#include "data/files/token_scan.h"
#include "data/prepare/read/input_list.h"
#include "data/prepare/read/source_check.h"
#include "data/tokenizer/data_tokenizer.h"

namespace megalith::data {

namespace {
constexpr int64_t kBlockBytes = int64_t{4} << 20;
constexpr int64_t kQuickDocuments = 100;

int64_t size_of_file(const std::string& path) {
  std::error_code status;
  const auto size = std::filesystem::file_size(path, status);
  return status ? -1 : static_cast<int64_t>(size);
}

// What `<prefix>.json` says of a file.
struct Recorded {
  int64_t bytes = -1;
  std::string digest;
};

class Checker {
 public:
  Checker(const std::string& prefix, CheckOptions options) : options_(std::move(options)) { report_.prefix = prefix; }

  CheckReport run() {
    for (const char* ending : {".bin", ".idx"}) {
      report_.bytes += std::max<int64_t>(size_of_file(report_.prefix + ending), 0);
    }
    guard([this] { dataset_.emplace(report_.prefix); });
    guard([this] { read_sidecar(); });
    if (dataset_) {
      report_.documents = dataset_->documents();
      report_.sequences = dataset_->sequences();
      report_.tokens = dataset_->tokens();
      report_.token_type = name_of(dataset_->token_type());
      guard([this] { check_recorded_counts(); });
    }
    guard([this] { check_tokenizer(); });
    guard([this] { check_index_digest(); });
    if (options_.quick) {
      guard([this] { check_some_ends(); });
    } else {
      guard([this] { read_tokens(); });
    }
    if (options_.source_tokenizer != nullptr) guard([this] { encode_again(); });
    return std::move(report_);
  }

 private:
  template <class Action>
  void guard(Action action) {
    try {
      action();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      report_.problems.emplace_back(error.what());
    }
  }

  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    report_.problems.push_back(report_.prefix + ": " + fmt::format(format, std::forward<Args>(args)...));
  }

  void read_sidecar() {
    const std::string path = report_.prefix + ".json";
    if (size_of_file(path) < 0) return;
    sidecar_ = nlohmann::ordered_json::parse(read_text(path), nullptr, /*allow_exceptions=*/false);
    const auto recorded = [this](const char* key) {
      const auto& file = sidecar_.at(key);
      return Recorded{file.at("bytes").get<int64_t>(), file.at("xxh3").get<std::string>()};
    };
    try {
      bin_ = recorded("bin");
      idx_ = recorded("idx");
      if (sidecar_.contains("documents")) recorded_documents_ = sidecar_.at("documents").get<int64_t>();
      if (sidecar_.contains("tokens")) recorded_tokens_ = sidecar_.at("tokens").get<int64_t>();
      const auto& config = sidecar_.contains("config") ? sidecar_.at("config") : sidecar_;
      if (config.contains("tokenizer")) expect_what_was_promised(config);
      report_.has_sidecar = true;
    } catch (const nlohmann::ordered_json::exception&) {
      problem("its sidecar .json is damaged: it does not say how large .bin and .idx are and what their digests are");
    }
  }

  void expect_what_was_promised(const nlohmann::ordered_json& config) {
    const auto& tokenizer = config.at("tokenizer");
    if (options_.vocab_size == 0) options_.vocab_size = tokenizer.at("vocab_size").get<int64_t>();
    if (options_.eod < 0 && config.at("append_eod").get<bool>()) options_.eod = tokenizer.at("eod").get<int32_t>();
  }

  void check_recorded_counts() {
    if (recorded_documents_ && *recorded_documents_ != report_.documents) {
      problem("it holds {} documents, its sidecar says {}", report_.documents, *recorded_documents_);
    }
    if (recorded_tokens_ && *recorded_tokens_ != report_.tokens) {
      problem("it holds {} tokens, its sidecar says {}", report_.tokens, *recorded_tokens_);
    }
  }

  void check_tokenizer() {
    if (options_.tokenizer == nullptr || !report_.has_sidecar) return;
    const std::string found = tokenizer_problem(report_.prefix, *options_.tokenizer);
    if (!found.empty()) report_.problems.push_back(found);
  }

  void compare(const char* ending, const Recorded& recorded, int64_t bytes, const std::string& digest) {
    if (bytes != recorded.bytes) {
      problem("{} has {} bytes, its sidecar says {}", ending, bytes, recorded.bytes);
    } else if (!digest.empty() && digest != recorded.digest) {
      problem("{} is not as it was written: its XXH3 digest is {}, its sidecar says {}", ending, digest,
              recorded.digest);
    }
  }

  void check_index_digest() {
    if (!report_.has_sidecar || size_of_file(report_.prefix + ".idx") < 0) return;
    Digest digest;
    const int64_t bytes = for_each_block(report_.prefix + ".idx", [&](auto block, int64_t) { digest.add(block); });
    compare(".idx", *idx_, bytes, digest.hex());
  }

  template <class Action>
  int64_t for_each_block(const std::string& path, Action action) {
    const File file = File::open_for_reading(path);
    const int64_t size = file.size();
    std::vector<std::byte> buffer(static_cast<size_t>(std::min(kBlockBytes, size)));
    for (int64_t at = 0; at < size; at += kBlockBytes) {
      const auto block = std::span(buffer).first(static_cast<size_t>(std::min(kBlockBytes, size - at)));
      file.read_at(at, block);
      action(std::span<const std::byte>(block), at);
      if (options_.progress) options_.progress(std::ssize(block));
    }
    return size;
  }

  void read_tokens() {
    if (size_of_file(report_.prefix + ".bin") < 0) return;
    if (!dataset_ && !report_.has_sidecar) return;
    std::optional<TokenScan> scan;
    if (dataset_) scan.emplace(*dataset_, TokenScan::Options{options_.vocab_size, options_.eod});
    Digest digest;
    const int64_t bytes = for_each_block(report_.prefix + ".bin", [&](auto block, int64_t) {
      if (report_.has_sidecar) digest.add(block);
      if (scan) scan->add(block);
    });
    if (report_.has_sidecar) compare(".bin", *bin_, bytes, digest.hex());
    if (scan) report_scan(*scan);
  }

  void report_scan(const TokenScan& scan) {
    report_.largest_id = scan.largest_id();
    if (const auto& bad = scan.bad_ids(); bad.count > 0) {
      problem("{} token ids are outside of {}, the first is {} at position {} of sequence {}", bad.count,
              options_.vocab_size > 0 ? fmt::format("the vocabulary of {}", options_.vocab_size) : "what an id can be",
              bad.value, bad.position, bad.sequence);
    }
    if (const auto& open = scan.open_documents(); open.count > 0) {
      problem("{} documents do not end with the end-of-document token {}, the first is document {}, which ends with {}",
              open.count, options_.eod, open.sequence, open.value);
    }
    if (options_.eod_only_at_end && scan.inner_eods() > 0) {
      problem("{} end-of-document tokens ({}) stand within documents", scan.inner_eods(), options_.eod);
    }
  }

  void check_some_ends() {
    if (report_.has_sidecar && size_of_file(report_.prefix + ".bin") >= 0) {
      compare(".bin", *bin_, size_of_file(report_.prefix + ".bin"), "");
    }
    if (!dataset_ || options_.eod < 0) return;
    const int64_t step = std::max<int64_t>(report_.documents / kQuickDocuments, 1);
    for (int64_t document = 0; document < report_.documents; document += step) {
      const int64_t last = last_sequence_with_tokens(*dataset_, document);
      if (last < 0) continue;
      int32_t token = -1;
      dataset_->read(last, dataset_->length(last) - 1, std::span(&token, 1));
      if (token == options_.eod) continue;
      problem("document {} ends with {}, not with the end-of-document token {}", document, token, options_.eod);
      return;
    }
  }

  void encode_again() {
    if (!dataset_) return;
    if (!report_.has_sidecar) {
      problem("it has no sidecar .json that says from which text it was made");
      return;
    }
    const SourceComparison comparison =
        compare_with_source(*dataset_, sidecar_, *options_.source_tokenizer, options_.threads);
    report_.encoded_again = comparison.documents;
    if (!comparison.problem.empty()) problem("{}", comparison.problem);
  }

  CheckOptions options_;
  CheckReport report_;
  nlohmann::ordered_json sidecar_;
  std::optional<IndexedDataset> dataset_;
  std::optional<Recorded> bin_;
  std::optional<Recorded> idx_;
  std::optional<int64_t> recorded_documents_;
  std::optional<int64_t> recorded_tokens_;
};
}  // namespace

CheckReport check_dataset(const std::string& prefix, const CheckOptions& options) {
  return Checker(prefix, options).run();
}

std::vector<CheckReport> check_datasets(const std::vector<std::string>& prefixes, const CheckOptions& options) {
  std::vector<CheckReport> reports(prefixes.size());
  ThreadPool pool(options.threads);
  CheckOptions each = options;
  each.threads = std::max(1, options.threads / std::max(1, static_cast<int>(prefixes.size())));
  pool.run(std::ssize(prefixes),
           [&](int64_t i) { reports[static_cast<size_t>(i)] = check_dataset(prefixes[static_cast<size_t>(i)], each); });
  return reports;
}

std::vector<std::string> list_datasets(const std::vector<std::string>& paths) {
  std::vector<std::string> prefixes;
  for (const std::string& path : paths) {
    const std::filesystem::path file(path);
    if (!std::filesystem::is_directory(file)) {
      const bool ending = file.extension() == ".bin" || file.extension() == ".idx";
      prefixes.push_back(ending ? path.substr(0, path.size() - 4) : path);
      continue;
    }
    std::set<std::string, decltype(&natural_less)> found(&natural_less);
    for (const auto& entry : std::filesystem::directory_iterator(file)) {
      const auto ending = entry.path().extension();
      if (ending != ".bin" && ending != ".idx") continue;
      found.insert((entry.path().parent_path() / entry.path().stem()).string());
    }
    if (found.empty()) user_error("{} holds no .bin and .idx files", path);
    prefixes.insert(prefixes.end(), found.begin(), found.end());
  }
  return prefixes;
}

}  // namespace megalith::data
