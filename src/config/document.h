#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::config {

// A value as the user wrote it, and where: "gpt3.yaml:12" or "override 'a=b'".
struct Value {
  enum class Kind { null, scalar, list, other };  // other: a mapping inside a list
  Kind kind = Kind::null;
  std::string text;  // of a scalar
  std::vector<Value> items;
  std::string origin;
};

// What the recipe files and overrides say together, flat: "model.optim.lr" -> value.
class Document {
 public:
  // Both throw a user error that names the place. What is read later overrides what was read before.
  void read_yaml(const std::string& text, const std::string& name);
  void read_override(const std::string& text);

  const std::map<std::string, Value>& values() const { return values_; }
  const Value* find(const std::string& path) const;

 private:
  void set(const std::string& path, Value value);

  std::map<std::string, Value> values_;
};

// The name that a key has here. NeMo's launcher calls the tree `training.*`, and NeMo writes data by split as
// `data_prefix: {train: [...], validation: [...], test: [...]}`.
std::string own_name(std::string_view path);

// A value as text, for messages, cut to a readable length.
std::string display(const Value& value);

}  // namespace megalith::config
