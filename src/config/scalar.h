#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace megalith::config {

// A value's text read as a type; empty when the text is not one.

// YAML 1.1: true, yes, on, false, no, off in any case.
std::optional<bool> read_bool(std::string_view text);

// 1000, 1_000, and what is whole though written as a fraction: 1e3, 20.0. Not 0123, which YAML 1.1 reads as octal.
std::optional<int64_t> read_int(std::string_view text);

// Finite numbers only.
std::optional<double> read_double(std::string_view text);

// The shortest text that reads back as the same number, with a point, as YAML 1.1 wants of a fraction: 1.0e-05.
std::string write_double(double value);

// Plain where YAML reads it back as the same string, quoted otherwise.
std::string write_string(std::string_view text);

bool is_utf8(std::string_view text);

std::string_view trimmed(std::string_view text);
std::string lower_case(std::string_view text);

}  // namespace megalith::config
