#include "cli/prompts.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "core/file.h"
#include "data/prepare/json/utf8_check.h"

namespace megalith::cli {

namespace {

std::string text_of(const std::string& line, const std::string& place) {
  const auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) data_error("{}: not a JSON object", place);
  for (const char* key : {"prompt", "text"}) {
    const auto found = object.find(key);
    if (found == object.end()) continue;
    if (!found->is_string()) data_error("{}: \"{}\" is not a string", place, key);
    return found->get<std::string>();
  }
  data_error("{}: neither \"prompt\" nor \"text\" is there", place);
}

std::string whole_text(const std::string& file) {
  if (file == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) {
    user_error("cannot read prompts from {}: it is no file; --prompts-file - reads them from standard input", file);
  }
  return read_text(file);
}

// As the text of data: what is not UTF-8 becomes other tokens than was meant.
void check_utf8(const std::string& text, const std::string& name) {
  data::Utf8Check check;
  check.add(text);
  if (check.valid()) return;
  const int64_t line = 1 + std::count(text.begin(), text.begin() + check.bad_offset(), '\n');
  data_error("{}:{}: byte {}: invalid UTF-8", name, line, check.bad_offset());
}

bool is_blank(const std::string& line) {
  return std::all_of(line.begin(), line.end(), [](unsigned char c) { return std::isspace(c) != 0; });
}

}  // namespace

std::vector<std::string> read_prompts(const std::string& file) {
  const std::string name = file == "-" ? "standard input" : file;
  const std::string text = whole_text(file);
  check_utf8(text, name);
  std::istringstream lines(text);
  std::vector<std::string> prompts;
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (is_blank(line)) continue;
    prompts.push_back(name.ends_with(".jsonl") ? text_of(line, fmt::format("{}:{}", name, number)) : line);
  }
  if (prompts.empty()) {
    user_error("{} holds no prompt: give one a line, or --prompt TEXT (--prompt '' writes a document from its start)",
               name);
  }
  return prompts;
}

}  // namespace megalith::cli
