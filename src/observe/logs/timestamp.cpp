#include "observe/logs/timestamp.h"

#include <chrono>

namespace megalith::observe {

namespace {
constexpr int64_t kMicrosPerSecond = 1'000'000;

class Digits {
 public:
  explicit Digits(std::string_view text) : text_(text) {}

  // Exactly `count` digits; -1 where there are others.
  int64_t take(size_t count) {
    if (text_.size() < count) return -1;
    int64_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      if (text_[i] < '0' || text_[i] > '9') return -1;
      value = value * 10 + (text_[i] - '0');
    }
    text_.remove_prefix(count);
    return value;
  }

  bool take_one_of(std::string_view characters) {
    if (text_.empty() || characters.find(text_.front()) == std::string_view::npos) return false;
    text_.remove_prefix(1);
    return true;
  }

  // Digits of a fraction, as millionths; what is finer is cut off.
  int64_t take_millionths() {
    int64_t value = 0;
    int64_t unit = kMicrosPerSecond;
    while (!text_.empty() && text_.front() >= '0' && text_.front() <= '9') {
      unit /= 10;
      value += (text_.front() - '0') * unit;
      text_.remove_prefix(1);
    }
    return value;
  }

  bool empty() const { return text_.empty(); }
  char front() const { return text_.empty() ? '\0' : text_.front(); }

 private:
  std::string_view text_;
};

std::optional<int64_t> take_offset_seconds(Digits& digits) {
  if (digits.empty() || digits.take_one_of("Zz")) return 0;
  const int64_t sign = digits.front() == '-' ? -1 : 1;
  if (!digits.take_one_of("+-")) return std::nullopt;
  const int64_t hours = digits.take(2);
  digits.take_one_of(":");
  const int64_t minutes = digits.empty() ? 0 : digits.take(2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return std::nullopt;
  return sign * (hours * 3600 + minutes * 60);
}
}  // namespace

std::optional<int64_t> parse_timestamp(std::string_view text) {
  namespace chrono = std::chrono;
  Digits digits(text);
  const int64_t year = digits.take(4);
  if (year < 0 || !digits.take_one_of("-")) return std::nullopt;
  const int64_t month = digits.take(2);
  if (month < 0 || !digits.take_one_of("-")) return std::nullopt;
  const int64_t day = digits.take(2);
  const chrono::year_month_day date{chrono::year(static_cast<int>(year)), chrono::month(static_cast<unsigned>(month)),
                                    chrono::day(static_cast<unsigned>(day))};
  if (day < 0 || !date.ok() || !digits.take_one_of("T ")) return std::nullopt;
  const int64_t hour = digits.take(2);
  if (hour < 0 || hour > 23 || !digits.take_one_of(":")) return std::nullopt;
  const int64_t minute = digits.take(2);
  if (minute < 0 || minute > 59 || !digits.take_one_of(":")) return std::nullopt;
  const int64_t second = digits.take(2);
  if (second < 0 || second > 60) return std::nullopt;
  const int64_t micros = digits.take_one_of(".,") ? digits.take_millionths() : 0;
  const std::optional<int64_t> offset = take_offset_seconds(digits);
  if (!offset || !digits.empty()) return std::nullopt;
  const int64_t days = chrono::sys_days(date).time_since_epoch().count();
  return (((days * 24 + hour) * 60 + minute) * 60 + second - *offset) * kMicrosPerSecond + micros;
}

}  // namespace megalith::observe
