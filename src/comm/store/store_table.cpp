#include "comm/store/store_table.h"

#include <charconv>

namespace megalith::comm {

namespace {
Packet ok(std::string value = {}, int64_t number = 0) {
  return {.kind = PacketKind::ok, .number = number, .value = std::move(value)};
}

Packet refused(std::string reason) {
  return {.kind = PacketKind::refused, .value = std::move(reason)};
}

std::optional<int64_t> number_in(const std::string& text) {
  int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}
}  // namespace

std::optional<Packet> StoreTable::apply(const Packet& request) {
  switch (request.kind) {
    case PacketKind::set:
      return set(request.key, request.value);
    case PacketKind::get: {
      const auto found = values_.find(request.key);
      if (found == values_.end()) return std::nullopt;
      return ok(found->second);
    }
    case PacketKind::add:
      return add(request);
    case PacketKind::compare_and_set:
      return compare_and_set(request);
    case PacketKind::delete_prefix:
      return delete_prefix(request.key);
    default:
      return refused("not a request");
  }
}

Packet StoreTable::set(const std::string& key, const std::string& value) {
  const auto found = values_.find(key);
  const size_t before = found == values_.end() ? 0 : key.size() + found->second.size();
  const size_t after = bytes_ - before + key.size() + value.size();
  if (after > kMaxBytes) return refused("the store is full");
  values_[key] = value;
  bytes_ = after;
  return ok(value);
}

Packet StoreTable::add(const Packet& request) {
  const auto found = values_.find(request.key);
  const std::optional<int64_t> before = found == values_.end() ? 0 : number_in(found->second);
  int64_t sum = 0;
  if (!before || __builtin_add_overflow(*before, request.number, &sum)) {
    return refused("the value is no number to add to");
  }
  Packet answer = set(request.key, std::to_string(sum));
  answer.number = sum;
  return answer;
}

Packet StoreTable::compare_and_set(const Packet& request) {
  const auto found = values_.find(request.key);
  const std::string current = found == values_.end() ? "" : found->second;
  return current == request.expected ? set(request.key, request.value) : ok(current);
}

Packet StoreTable::delete_prefix(const std::string& prefix) {
  int64_t deleted = 0;
  auto each = values_.lower_bound(prefix);
  while (each != values_.end() && each->first.starts_with(prefix)) {
    bytes_ -= each->first.size() + each->second.size();
    each = values_.erase(each);
    ++deleted;
  }
  return ok({}, deleted);
}

}  // namespace megalith::comm
