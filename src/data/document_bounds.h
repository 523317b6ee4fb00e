#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace megalith::data {

// A document ends with its eod token; the token after it begins the next one, and so does the first of a sample, in
// which a document may have been cut. All arrays are (batch, length), row by row.

// For each token the position, in its sample, at which its document begins.
std::vector<int32_t> document_starts(std::span<const int32_t> tokens, int64_t length, int32_t eod);

// Positions that count from the beginning of each document.
std::vector<int32_t> document_positions(std::span<const int32_t> starts, int64_t length);

// Where documents begin in the batch as one row of tokens, and its end: 0, ..., batch x length. The form in which flash
// attention takes sequences of different lengths; each next entry is larger.
std::vector<int32_t> cu_seqlens(std::span<const int32_t> starts, int64_t length);

}  // namespace megalith::data
