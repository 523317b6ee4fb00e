#include "resilience/simulation/fake_directory.h"

#include <utility>

#include "core/error.h"
#include "resilience/record/journal.h"

namespace megalith::resilience::testing {

class FakeAppendedFile final : public AppendedFile {
 public:
  FakeAppendedFile(FakeDirectory& directory, std::string name) : directory_(directory), name_(std::move(name)) {}

  void append(std::string_view text) override {
    directory_.check();
    std::string& content = directory_.files_[name_];
    switch (directory_.fate()) {
      case FakeDirectory::Fate::done:
        content += text;
        return;
      case FakeDirectory::Fate::refused:
        throw Error(ErrorKind::io, "no space left");
      case FakeDirectory::Fate::torn:
        content += text.substr(0, text.size() / 2);
        throw Error(ErrorKind::io, "no space left");
      case FakeDirectory::Fate::lost_in_crash:
        content += text.substr(0, text.size() / 3);
        throw Crash{};
      default:
        content += text;
        throw Crash{};
    }
  }
  void sync() override { directory_.check(); }

 private:
  FakeDirectory& directory_;
  std::string name_;
};

void FakeDirectory::check() const {
  if (is_gone) throw Error(ErrorKind::io, "the run directory is not there");
}

std::vector<std::string> FakeDirectory::list() const {
  check();
  std::vector<std::string> names;
  names.reserve(files_.size());
  for (const auto& [name, content] : files_) names.push_back(name);
  return names;
}

std::optional<std::string> FakeDirectory::read(const std::string& name) const {
  check();
  const auto found = files_.find(name);
  return found == files_.end() ? std::nullopt : std::optional(found->second);
}

bool FakeDirectory::put(const std::string& name, std::string_view content) {
  const auto [entry, is_new] = files_.emplace(name, content);
  if (is_new) return true;
  if (is_exclusive) return false;
  if (entry->second != content) overwritten.push_back(name);
  entry->second = content;
  return true;
}

bool FakeDirectory::create(const std::string& name, std::string_view content) {
  check();
  switch (fate()) {
    case Fate::done:
      return put(name, content);
    case Fate::refused:
      throw Error(ErrorKind::io, "no space left");
    case Fate::torn:  // it is there, and its writer does not know
      put(name, content);
      throw Error(ErrorKind::io, "the connection to the file server broke");
    case Fate::lost_in_crash:
      throw Crash{};
    case Fate::done_in_crash:
      put(name, content);
      throw Crash{};
    case Fate::late_in_crash:
      late_.emplace_back(name, content);
      throw Crash{};
  }
  return false;
}

std::unique_ptr<AppendedFile> FakeDirectory::create_appended(const std::string& name) {
  check();
  if (!files_.emplace(name, "").second) return nullptr;
  newest_term_ = resilience::newest_term(*this);
  return std::make_unique<FakeAppendedFile>(*this, name);
}

void FakeDirectory::let_late_writes_arrive() {
  for (const auto& [name, content] : std::exchange(late_, {})) put(name, content);
}

}  // namespace megalith::resilience::testing
