#include "comm/emulated/link_share.h"

#include <algorithm>
#include <limits>

namespace megalith::comm {

namespace {

// Below these, what is left is an error of rounding.
constexpr double kNoSeconds = 1e-15;
constexpr double kNoBytes = 1e-3;

bool is_over(const CallCost& left) {
  return left.latency == 0.0 && std::all_of(left.bytes.begin(), left.bytes.end(), [](double b) { return b == 0.0; });
}

}  // namespace

LinkShare::LinkShare(const Wire& wire) {
  for (size_t link = 0; link < rates_.size(); ++link) rates_[link] = wire.links[link].bytes_per_second;
}

int64_t LinkShare::add(const CallCost& cost, double now, int64_t after) {
  state_.advance(rates_, now, kNone);
  const bool waits = after != kNone && !state_.ends.contains(after);
  state_.moving.push_back({.call = calls_, .after = waits ? after : kNone, .left = cost});
  state_.retire();
  return calls_++;
}

double LinkShare::end_of(int64_t call) const {
  const auto known = state_.ends.find(call);
  if (known != state_.ends.end()) return known->second;
  State later = state_;
  later.advance(rates_, std::numeric_limits<double>::infinity(), call);
  return later.ends.at(call);
}

void LinkShare::State::advance(const std::array<double, kLinkKinds>& rates, double until, int64_t call) {
  while (!moving.empty() && !ends.contains(call) && now < until) {
    const std::array<double, kLinkKinds> now_shares = shares(rates);
    pass(std::min(next_event(now_shares), until - now), now_shares);
    retire();
  }
  if (!ends.contains(call) && until < std::numeric_limits<double>::infinity()) now = std::max(now, until);
}

std::array<double, kLinkKinds> LinkShare::State::shares(const std::array<double, kLinkKinds>& rates) const {
  std::array<double, kLinkKinds> each = rates;
  for (size_t link = 0; link < each.size(); ++link) {
    const auto sharers = std::count_if(moving.begin(), moving.end(), [&](const Moving& one) {
      return has_begun(one) && one.left.latency == 0.0 && one.left.bytes[link] > 0.0;
    });
    if (sharers > 1) each[link] /= static_cast<double>(sharers);
  }
  return each;
}

double LinkShare::State::next_event(const std::array<double, kLinkKinds>& shares) const {
  double soonest = std::numeric_limits<double>::infinity();
  for (const Moving& one : moving) {
    if (!has_begun(one)) continue;
    if (one.left.latency > 0.0) {
      soonest = std::min(soonest, one.left.latency);
      continue;
    }
    for (size_t link = 0; link < shares.size(); ++link) {
      if (one.left.bytes[link] > 0.0) soonest = std::min(soonest, one.left.bytes[link] / shares[link]);
    }
  }
  return soonest;
}

void LinkShare::State::pass(double seconds, const std::array<double, kLinkKinds>& shares) {
  now += seconds;
  for (Moving& one : moving) {
    if (!has_begun(one)) continue;
    if (one.left.latency > 0.0) {
      one.left.latency -= seconds;
      if (one.left.latency < kNoSeconds) one.left.latency = 0.0;
      continue;
    }
    for (size_t link = 0; link < shares.size(); ++link) {
      double& bytes = one.left.bytes[link];
      bytes -= seconds * shares[link];
      if (bytes < kNoBytes) bytes = 0.0;
    }
  }
}

void LinkShare::State::retire() {
  // One that has waited for another may have nothing to do itself.
  for (bool changed = true; changed;) {
    changed = false;
    std::erase_if(moving, [&](const Moving& one) {
      if (!has_begun(one) || !is_over(one.left)) return false;
      ends.emplace(one.call, now);
      changed = true;
      return true;
    });
  }
}

}  // namespace megalith::comm
