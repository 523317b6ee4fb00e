#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace megalith::comm {

class StoreClient;

// Where ranks leave texts for each other, of any length, without waiting for anybody. Any thread may use it: it is no
// collective.
class Board {
 public:
  virtual ~Board() = default;

  void post(const std::string& key, const std::string& text);
  // Nothing while nobody has posted it.
  std::optional<std::string> read(const std::string& key);
  // Comm error, which names `what`, where nobody posts it in time. `seconds_left` is asked again and again.
  using SecondsLeft = std::function<double()>;
  std::string await(const std::string& key, const SecondsLeft& seconds_left, const std::string& what);
  std::string await(const std::string& key, double seconds, const std::string& what);
  // Forgets every key that begins with it.
  virtual void remove(const std::string& prefix) = 0;

 private:
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Empty where there is none.
  virtual std::string get(const std::string& key) = 0;
};

// For the threads of one process.
class LocalBoard final : public Board {
 public:
  void remove(const std::string& prefix) override;

 private:
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;

  std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

// Over the store through which the ranks of a run have met; it must outlive the board.
class StoreBoard final : public Board {
 public:
  explicit StoreBoard(StoreClient& store) : store_(store) {}
  void remove(const std::string& prefix) override;

 private:
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;

  StoreClient& store_;
};

}  // namespace megalith::comm
