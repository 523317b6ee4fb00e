#include "data/prepare/json/json_line_stream.h"

#include <algorithm>

namespace megalith::data {

namespace {
bool is_json_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// simdjson takes form feed and substitute for a comma and a colon at first; as tokens they are rubbish later.
bool is_operator(char c) {
  return c == '{' || c == '}' || c == '[' || c == ']' || c == ',' || c == ':' || c == '\x0C' || c == '\x1A';
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20;
}

std::string_view type_of(char c) {
  switch (c) {
    case '{':
      return "object";
    case '[':
      return "array";
    case '"':
      return "string";
    case 'n':
      return "null";
    case 't':
    case 'f':
      return "boolean";
    default:
      return c == '-' || (c >= '0' && c <= '9') ? "number" : "";
  }
}

JsonProblem bad_structure() {
  return {BadLine::not_json,
          "The JSON document has an improper structure: missing or superfluous commas, braces, missing keys, etc."};
}
}  // namespace

JsonLineStream::JsonLineStream(const std::vector<std::string>& paths, BadText bad_text, size_t kept_bytes,
                               Receiver& receiver)
    : root_(json_path_tree(paths)),
      bad_text_(bad_text),
      kept_bytes_(std::max<size_t>(kept_bytes, 1)),
      receiver_(receiver),
      values_(paths.size()) {
  for (const std::string& path : paths) longest_key_ = std::max(longest_key_, path.size());
}

void JsonLineStream::add(std::string_view bytes) {
  if (bad_text_ == BadText::replace) {
    scan(replaced_.add(bytes));
  } else {
    utf8_.add(bytes);
    scan(bytes);
  }
  take_text();
}

std::optional<JsonProblem> JsonLineStream::finish() {
  if (bad_text_ == BadText::replace) scan(replaced_.finish());
  if (in_string_) return JsonProblem{BadLine::not_json, "a string does not end on the line"};
  if (control_) return JsonProblem{BadLine::control_character, ""};
  if (first_token_ == kNoToken) return JsonProblem{BadLine::not_json, "Empty: no JSON found"};
  if (!utf8_.valid()) return JsonProblem{BadLine::invalid_utf8, ""};
  end_token();
  take_text();
  const bool complete = first_token_ != '{' || last_token_ == '}';
  if (!complete) {
    return JsonProblem{BadLine::not_json, "JSON document ended early in the middle of an object or array."};
  }
  while (!problem_ && expect_ != Expect::nothing) walk(kNoToken);
  return problem_;
}

std::vector<JsonValue> JsonLineStream::values() const {
  std::vector<JsonValue> values;
  for (const Value& value : values_) values.push_back({value.type, value.text});
  return values;
}

void JsonLineStream::scan(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (in_string_) {
      at += scan_string(text.substr(at));
      continue;
    }
    const char c = text[at++];
    const bool quote = c == '"' && !escaped_;
    escaped_ = c == '\\' && !escaped_;
    if (is_operator(c)) {
      begin_token(c);
      in_scalar_ = false;
    } else if (is_json_space(c)) {
      keep({&c, 1});
      in_scalar_ = false;
    } else {
      if (!in_scalar_) {
        begin_token(c);
        if (!quote) keep({&c, 1});
      } else {
        keep({&c, 1});
      }
      in_scalar_ = !quote;
      in_string_ = quote;
    }
  }
}

// How much of the text belongs to the string; its closing quote is the last of it.
size_t JsonLineStream::scan_string(std::string_view text) {
  if (escaped_) {
    escaped_ = false;
    control_ = control_ || is_control(text[0]);
    if (use_ != Use::none) decoder_.add_escape(text[0], decoded_);
    keep(text.substr(0, 1));
    return 1;
  }
  size_t end = 0;
  while (end < text.size() && text[end] != '"' && text[end] != '\\' && !is_control(text[end])) ++end;
  if (end > 0) {
    const std::string_view run = text.substr(0, end);
    if (use_ != Use::none) decoder_.add(run, decoded_);
    keep(run);
    return end;
  }
  keep(text.substr(0, 1));
  if (text[0] == '\\') {
    escaped_ = true;
  } else if (text[0] == '"') {
    in_string_ = false;
    end_string();
  } else {
    control_ = true;
  }
  return 1;
}

// Hands on what was decoded, so that it does not gather.
void JsonLineStream::take_text() {
  if (use_ == Use::key) {
    key_.append(decoded_, 0, longest_key_ + 1 - std::min(key_.size(), longest_key_ + 1));
  } else if (use_ == Use::value && !decoded_.empty()) {
    std::string& text = value_of(value_path_).text;
    text.append(decoded_, 0, kept_bytes_ - std::min(text.size(), kept_bytes_));
    receiver_.add_text(static_cast<size_t>(value_path_), decoded_);
  }
  decoded_.clear();
}

void JsonLineStream::end_string() {
  if (use_ == Use::none) return;
  const bool good = decoder_.end(decoded_);
  take_text();
  if (use_ == Use::key) {
    key_good_ = good;
  } else if (!good) {
    fail({BadLine::bad_escape, ""});
  }
  use_ = Use::none;
  value_path_ = -1;
}

// Bytes of a number or a word that a path leads to, as they are written.
void JsonLineStream::keep(std::string_view bytes) {
  if (value_path_ < 0 || use_ != Use::none) return;
  std::string& text = value_of(value_path_).text;
  for (const char c : bytes) {
    if (text.size() < kept_bytes_) {
      text += c;
    } else if (!is_json_space(c)) {
      text.back() = c;  // white space at the end does not count: this is longer
    }
  }
}

void JsonLineStream::end_token() {
  if (value_path_ < 0) return;
  std::string& text = value_of(value_path_).text;
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  value_path_ = -1;
}

void JsonLineStream::begin_token(char c) {
  end_token();
  if (first_token_ == kNoToken) first_token_ = c;
  last_token_ = c;
  if (!problem_) walk(c);
}

void JsonLineStream::fail(JsonProblem problem) {
  if (!problem_) problem_ = std::move(problem);
  use_ = Use::none;
  value_path_ = -1;
}

void JsonLineStream::walk(char c) {
  switch (expect_) {
    case Expect::root:
      if (c != '{') return fail({BadLine::not_json, "the line holds something else"});
      objects_.push_back(&root_);
      expect_ = Expect::first_field;
      return;
    case Expect::first_field:
      if (c == '}') return leave_object();
      [[fallthrough]];
    case Expect::key:
      if (c != '"') return fail(bad_structure());
      use_ = Use::key;
      key_.clear();
      decoder_.begin(/*replace=*/false);
      expect_ = Expect::colon;
      return;
    case Expect::colon:
      return walk_colon(c);
    case Expect::value:
      return walk_value(c);
    case Expect::skip_string:
      // A string and a colon in the place of a value: taken for the begin of an object.
      expect_ = c == ':' ? Expect::skip_container : Expect::next_field;
      skip_depth_ = 1;
      if (c != ':') walk(c);
      return;
    case Expect::skip_container:
      if (c == kNoToken) return fail(bad_structure());
      if (c == '[' || c == '{') ++skip_depth_;
      if ((c == ']' || c == '}') && --skip_depth_ == 0) expect_ = Expect::next_field;
      return;
    case Expect::next_field:
      if (c == '}') return leave_object();
      if (c != ',') return fail(bad_structure());
      expect_ = Expect::key;
      return;
    case Expect::nothing:
      return fail({BadLine::not_json, "something follows the object"});
  }
}

void JsonLineStream::leave_object() {
  objects_.pop_back();
  expect_ = objects_.empty() ? Expect::nothing : Expect::next_field;
}

void JsonLineStream::walk_colon(char c) {
  if (c != ':') return fail(bad_structure());
  if (!key_good_) return fail({BadLine::bad_escape, ""});
  field_ = objects_.back()->find(key_);
  expect_ = Expect::value;
}

void JsonLineStream::walk_value(char c) {
  if (field_ == nullptr) return skip_value(c);
  forget(*field_);
  const std::string_view type = type_of(c);
  if (type.empty()) return fail(bad_structure());
  if (field_->path >= 0) {
    value_of(field_->path).type = type;
    if (type == "string") {
      use_ = Use::value;
      value_path_ = field_->path;
      decoder_.begin(bad_text_ == BadText::replace);
      expect_ = Expect::next_field;
      return;
    }
    if (type == "number" || type == "boolean") value_path_ = field_->path;
  }
  if (type == "object" && !field_->children.empty()) {
    objects_.push_back(field_);
    expect_ = Expect::first_field;
    return;
  }
  skip_value(c);
}

void JsonLineStream::skip_value(char c) {
  switch (c) {
    case '[':
    case '{':
    case ':':
    case ',':
      skip_depth_ = 1;
      expect_ = Expect::skip_container;
      return;
    case '"':
      expect_ = Expect::skip_string;
      return;
    default:
      expect_ = Expect::next_field;
  }
}

void JsonLineStream::forget(const JsonPathNode& node) {
  if (node.path >= 0) {
    value_of(node.path) = {};
    receiver_.forget(static_cast<size_t>(node.path));
  }
  for (const JsonPathNode& child : node.children) forget(child);
}

}  // namespace megalith::data
