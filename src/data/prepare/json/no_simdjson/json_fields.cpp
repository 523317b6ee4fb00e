#include "data/prepare/json/json_fields.h"

#include "core/error.h"

namespace megalith::data {

struct JsonFields::Implementation {};

void require_json_reader() {
  user_error("this build of megalith has no JSON reader: install simdjson (libsimdjson-dev) and build again");
}

JsonFields::JsonFields(const std::vector<std::string>&, BadText) {
  require_json_reader();
}
JsonFields::~JsonFields() = default;
JsonFields::JsonFields(JsonFields&&) noexcept = default;

std::optional<JsonProblem> JsonFields::read(std::string_view) {
  return JsonProblem{};
}

const std::vector<JsonValue>& JsonFields::values() const {
  static const std::vector<JsonValue> none;
  return none;
}

}  // namespace megalith::data
