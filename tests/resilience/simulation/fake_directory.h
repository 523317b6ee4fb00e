#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "resilience/record/control_directory.h"

namespace megalith::resilience::testing {

// A supervisor or monitor that dies in the middle of what it does. No Error, so that nothing catches it on the way.
struct Crash {};

// control/ in memory. Its owner decides before each write what happens to it.
class FakeDirectory final : public ControlDirectory {
 public:
  enum class Fate { done, refused, torn, lost_in_crash, done_in_crash, late_in_crash };
  using Decide = std::function<Fate()>;

  Decide fate = [] { return Fate::done; };
  bool is_gone = false;                  // every call is an I/O error
  bool is_exclusive = true;              // the guard that a test takes out
  std::vector<std::string> overwritten;  // names that got a second content

  std::vector<std::string> list() const override;
  std::optional<std::string> read(const std::string& name) const override;
  bool create(const std::string& name, std::string_view content) override;
  std::unique_ptr<AppendedFile> create_appended(const std::string& name) override;
  std::string path_of(const std::string& name) const override { return "control/" + name; }

  // Writes that were under way when their writer crashed arrive.
  void let_late_writes_arrive();
  bool has_late_writes() const { return !late_.empty(); }
  int64_t newest_term() const { return newest_term_; }

 private:
  friend class FakeAppendedFile;
  void check() const;
  bool put(const std::string& name, std::string_view content);

  std::map<std::string, std::string> files_;
  std::vector<std::pair<std::string, std::string>> late_;
  int64_t newest_term_ = 0;
};

}  // namespace megalith::resilience::testing
