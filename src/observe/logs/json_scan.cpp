#include "observe/logs/json_scan.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace megalith::observe {

namespace {
constexpr int kDeepest = 64;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Scanner {
 public:
  Scanner(std::string_view text, std::vector<JsonMember>& members)
      : at_(text.data()), end_(text.data() + text.size()), members_(members) {}

  bool whole() {
    skip_space();
    if (!object("", 0)) return false;
    skip_space();
    return at_ == end_;
  }

 private:
  void skip_space() {
    while (at_ != end_ && is_space(*at_)) ++at_;
  }

  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  bool word(std::string_view wanted) {
    if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }

  bool escape() {
    if (at_ == end_) return false;
    const char c = *at_++;
    if (c != 'u') return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_ == end_ || std::isxdigit(static_cast<unsigned char>(*at_)) == 0) return false;
    }
    return true;
  }

  // From behind the opening quote.
  bool string(std::string_view& content) {
    const char* begin = at_;
    while (at_ != end_) {
      const char c = *at_++;
      if (c == '"') {
        content = {begin, static_cast<size_t>(at_ - 1 - begin)};
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\' && !escape()) return false;
    }
    return false;
  }

  bool digits() {
    const char* begin = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != begin;
  }

  bool number() {
    take('-');
    if (word("Infinity")) return true;
    const bool zero = at_ != end_ && *at_ == '0';
    const char* begin = at_;
    if (!digits() || (zero && at_ - begin > 1)) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      return digits();
    }
    return true;
  }

  bool value(JsonMember& member, int depth) {
    skip_space();
    if (at_ == end_) return false;
    if (take('"')) {
      member.kind = JsonKind::string;
      return string(member.text);
    }
    const char* begin = at_;
    bool good = false;
    if (*at_ == '{') {
      member.kind = JsonKind::object;
      good = object(member.key, depth + 1);
    } else if (*at_ == '[') {
      member.kind = JsonKind::array;
      good = array(depth + 1);
    } else if (*at_ == '-' || is_digit(*at_) || *at_ == 'I' || *at_ == 'N') {
      member.kind = JsonKind::number;
      good = word("NaN") || number();
    } else {
      member.kind = JsonKind::literal;
      good = word("true") || word("false") || word("null");
    }
    member.text = {begin, static_cast<size_t>(at_ - begin)};
    return good;
  }

  bool object(std::string_view parent, int depth) {
    if (depth > kDeepest || !take('{')) return false;
    skip_space();
    if (take('}')) return true;
    while (true) {
      JsonMember member{.parent = parent};
      skip_space();
      if (!take('"') || !string(member.key)) return false;
      skip_space();
      if (!take(':')) return false;
      if (!value(member, depth)) return false;
      if (depth <= 1) members_.push_back(member);
      skip_space();
      if (take('}')) return true;
      if (!take(',')) return false;
    }
  }

  bool array(int depth) {
    if (depth > kDeepest || !take('[')) return false;
    skip_space();
    if (take(']')) return true;
    while (true) {
      // Objects in an array lie too deep to be listed.
      JsonMember element;
      if (!value(element, std::max(depth, 2))) return false;
      skip_space();
      if (take(']')) return true;
      if (!take(',')) return false;
    }
  }

  const char* at_;
  const char* end_;
  std::vector<JsonMember>& members_;
};
}  // namespace

bool scan_json_object(std::string_view text, std::vector<JsonMember>& members) {
  members.clear();
  return Scanner(text, members).whole();
}

std::optional<double> number_of(const JsonMember& member) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string_view text = member.text;
  if (text == "NaN" || text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity" || text == "inf") return kInfinity;
  if (text == "-Infinity" || text == "-inf") return -kInfinity;
  if (member.kind != JsonKind::number) return std::nullopt;
  double value = 0.0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> whole_number_of(const JsonMember& member) {
  // Beyond 2^53 neighbouring whole numbers are the same float.
  constexpr double kLargest = 9007199254740992.0;
  const std::optional<double> number = number_of(member);
  if (!number || !(std::abs(*number) <= kLargest) || *number != std::floor(*number)) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::string text_of(const JsonMember& member) {
  if (member.kind != JsonKind::string || member.text.find('\\') == std::string_view::npos)
    return std::string(member.text);
  const auto decoded = nlohmann::json::parse('"' + std::string(member.text) + '"', nullptr, false);
  return decoded.is_string() ? decoded.get<std::string>() : std::string(member.text);
}

}  // namespace megalith::observe
