#include "data/prepare/json/json_fields.h"

#include <simdjson.h>

#include <deque>

#include "data/prepare/json/json_text.h"
#include "data/prepare/read/text_buffer.h"
#include "data/tokenizer/utf8_stream.h"

namespace megalith::data {

static_assert(TextBuffer::kPadding >= simdjson::SIMDJSON_PADDING);

namespace {
namespace ondemand = simdjson::ondemand;

// Above this the parser gives its memory back after the line.
constexpr size_t kKeptCapacity = size_t{8} << 20;

std::string_view type_name(ondemand::json_type type) {
  switch (type) {
    case ondemand::json_type::array:
      return "array";
    case ondemand::json_type::object:
      return "object";
    case ondemand::json_type::number:
      return "number";
    case ondemand::json_type::string:
      return "string";
    case ondemand::json_type::boolean:
      return "boolean";
    case ondemand::json_type::null:
      return "null";
  }
  return "?";
}

JsonProblem problem_of(simdjson::error_code error) {
  switch (error) {
    case simdjson::UTF8_ERROR:
      return {BadLine::invalid_utf8, ""};
    case simdjson::UNESCAPED_CHARS:
      return {BadLine::control_character, ""};
    case simdjson::STRING_ERROR:
      return {BadLine::bad_escape, ""};
    case simdjson::UNCLOSED_STRING:
      return {BadLine::not_json, "a string does not end on the line"};
    case simdjson::INCORRECT_TYPE:
      return {BadLine::not_json, "the line holds something else"};
    default:
      return {BadLine::not_json, simdjson::error_message(error)};
  }
}

// The message of an error inside of a line, kept apart from the library's codes.
struct Failure {
  JsonProblem problem;
};

template <class T>
T value_or_throw(simdjson::simdjson_result<T>&& result) {
  T value;
  const auto error = std::move(result).get(value);
  if (error != simdjson::SUCCESS) throw Failure{problem_of(error)};
  return value;
}

std::string_view trimmed(std::string_view token) {
  return token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
}
}  // namespace

struct JsonFields::Implementation {
  JsonPathNode root;
  BadText bad_text = BadText::reject;
  std::vector<JsonValue> values;
  ondemand::parser parser;
  TextBuffer replaced_line;
  std::deque<std::string> replaced_texts;

  void read_line(std::string_view line) {
    for (JsonValue& value : values) value = {};
    replaced_texts.clear();
    ondemand::document document =
        value_or_throw(parser.iterate(line.data(), line.size(), line.size() + simdjson::SIMDJSON_PADDING));
    read_object(value_or_throw(document.get_object()), root);
    if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
      throw Failure{{BadLine::not_json, "something follows the object"}};
    }
  }

  // The node's key, or null when no path goes there.
  const JsonPathNode* find_child(const JsonPathNode& node, ondemand::field& field) {
    const char* raw = field.key().raw();
    size_t length = 0;
    while (raw[length] != '"' && raw[length] != '\\') ++length;
    std::string_view key(raw, length);
    if (raw[length] == '\\') key = value_or_throw(field.unescaped_key());
    return node.find(key);
  }

  void forget(const JsonPathNode& node) {
    if (node.path >= 0) values[static_cast<size_t>(node.path)] = {};
    for (const JsonPathNode& child : node.children) forget(child);
  }

  void read_object(ondemand::object object, const JsonPathNode& node) {
    for (auto result : object) {
      ondemand::field field = value_or_throw(std::move(result));
      const JsonPathNode* child = find_child(node, field);
      if (child == nullptr) continue;
      forget(*child);  // of equal keys the last one counts, whatever stands under the earlier ones
      ondemand::value value = field.value();
      const ondemand::json_type type = value_or_throw(value.type());
      if (child->path >= 0) read_value(value, type, values[static_cast<size_t>(child->path)]);
      if (!child->children.empty() && type == ondemand::json_type::object) {
        read_object(value_or_throw(value.get_object()), *child);
      }
    }
  }

  void read_value(ondemand::value& value, ondemand::json_type type, JsonValue& into) {
    into.type = type_name(type);
    if (type == ondemand::json_type::number || type == ondemand::json_type::boolean) {
      into.text = trimmed(value.raw_json_token());
    } else if (type == ondemand::json_type::string) {
      const std::string_view token = value.raw_json_token();
      const auto error = value.get_string().get(into.text);
      if (error == simdjson::STRING_ERROR && bad_text == BadText::replace) {
        auto text = unescape_with_replacement(token);
        if (!text) throw Failure{problem_of(error)};
        into.text = replaced_texts.emplace_back(std::move(*text));
      } else if (error != simdjson::SUCCESS) {
        throw Failure{problem_of(error)};
      }
    }
  }

  std::optional<JsonProblem> try_line(std::string_view line) {
    try {
      read_line(line);
      return std::nullopt;
    } catch (const Failure& failure) {
      return failure.problem;
    }
  }
};

void require_json_reader() {}

JsonFields::JsonFields(const std::vector<std::string>& paths, BadText bad_text)
    : implementation_(std::make_unique<Implementation>()) {
  implementation_->bad_text = bad_text;
  implementation_->values.resize(paths.size());
  implementation_->root = json_path_tree(paths);
}
JsonFields::~JsonFields() = default;
JsonFields::JsonFields(JsonFields&&) noexcept = default;

std::optional<JsonProblem> JsonFields::read(std::string_view line) {
  Implementation& self = *implementation_;
  if (self.parser.capacity() > kKeptCapacity && line.size() < kKeptCapacity) self.parser = ondemand::parser();
  auto problem = self.try_line(line);
  if (problem && problem->kind == BadLine::invalid_utf8 && self.bad_text == BadText::replace) {
    self.replaced_line.shrink(0);
    self.replaced_line.append(replace_ill_formed_utf8(line));
    problem = self.try_line(self.replaced_line.view());
  }
  return problem;
}

const std::vector<JsonValue>& JsonFields::values() const {
  return implementation_->values;
}

}  // namespace megalith::data
