#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/document.h"
#include "config/run_config.h"

namespace megalith::config {

// OmegaConf's interpolations: ${model.hidden_size}, ${.sibling}, ${..of_the_parent}, ${multiply:4, ${.hidden_size}} and
// NeMo's other arithmetic (sum, divide_floor, divide_ceil). A key that nobody set has its default.
class Resolver {
 public:
  explicit Resolver(const Document& document) : document_(document) {}

  // `value` of the key `path` with every interpolation replaced. Throws a user error that names the value's place.
  Value resolve(const std::string& path, const Value& value);

 private:
  Value evaluate(const std::string& path, std::string_view text);
  Value expression(const std::string& path, std::string_view body);
  Value reference(const std::string& path, std::string_view target);
  Value function(std::string_view name, const std::vector<std::string>& arguments);
  std::string scalar_text(const Value& value, std::string_view expression);

  const Document& document_;
  Run defaults_;
  std::vector<std::string> active_;  // keys being resolved, outermost first
  std::string origin_;
  int evaluations_ = 0;
};

}  // namespace megalith::config
