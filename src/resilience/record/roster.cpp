#include "resilience/record/roster.h"

#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/format/strict_json.h"
#include "core/error.h"
#include "core/hash/digest.h"

namespace megalith::resilience {

using checkpoint::StrictObject;
using nlohmann::json;

namespace {
constexpr checkpoint::JsonLimits kLimits{.max_bytes = 8 << 20, .max_values = 1 << 20, .max_depth = 4};
constexpr int64_t kMaxRanks = int64_t{1} << 20;

// The end of the file: ,"digest":"0123456789abcdef"}
constexpr std::string_view kDigestKey = ",\"digest\":\"";
constexpr std::string_view kEnd = "\"}\n";
constexpr size_t kTail = kDigestKey.size() + Digest::kHexLength + kEnd.size();

std::string quoted(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

template <class Items, class Write>
std::string list_of(const Items& items, Write write) {
  std::string text(1, '[');
  for (const auto& item : items) {
    if (text.size() > 1) text += ',';
    text += write(item);
  }
  text += ']';
  return text;
}

// Written field by field: a roster of a thousand nodes is digested by each of them.
std::string body_of(const Roster& roster) {
  std::string text = fmt::format(
      R"({{"version":{},"run":{},"term":{},"generation":{},"world_size":{},"ranks_per_node":{})", Roster::kVersion,
      quoted(roster.run), roster.term, roster.generation, roster.world_size, roster.ranks_per_node);
  text += ",\"nodes\":" + list_of(roster.nodes, [](const RosterNode& node) {
            return fmt::format(R"({{"node":{},"index":{},"address":{}}})", quoted(node.node), node.index,
                               quoted(node.address));
          });
  text += ",\"spares\":" + list_of(roster.spares, quoted);
  text += ",\"out\":" + list_of(roster.out, [](const NodeOut& node) {
            return fmt::format(R"({{"node":{},"reason":{}}})", quoted(node.node), quoted(node.reason));
          });
  text += fmt::format(R"(,"config":{},"overrides":{},"from_step":{},"reason":{})", quoted(roster.config),
                      list_of(roster.overrides, quoted), roster.from_step, quoted(roster.reason));
  text += fmt::format(R"(,"in_job_restarts":{},"workload_restarts":{},"starts":{},"store_node":{})",
                      roster.budgets.in_job_restarts, roster.budgets.workload_restarts, roster.budgets.starts,
                      quoted(roster.store_node));
  return text;
}

std::vector<std::string> take_strings(StrictObject& object, const char* key) {
  std::vector<std::string> texts;
  for (const json& element : object.take_array(key)) {
    if (!element.is_string()) object.refuse(fmt::format("'{}' has an element that is no string", key));
    texts.push_back(element.get<std::string>());
  }
  return texts;
}

void check_digest(std::string_view text, const std::string& where) {
  if (text.size() < kTail || !text.ends_with(kEnd)) data_error("{}: torn: a roster ends with its digest", where);
  const size_t covered = text.size() - kTail;
  if (text.substr(covered, kDigestKey.size()) != kDigestKey) {
    data_error("{}: torn: a roster ends with its digest", where);
  }
  const std::string_view told = text.substr(covered + kDigestKey.size(), Digest::kHexLength);
  const std::string found = megalith::digest_of(text.substr(0, covered));
  if (told != found) data_error("{}: damaged: its digest says {}, its bytes have {}", where, told, found);
}

void take_nodes(StrictObject& object, const std::string& where, Roster& roster) {
  for (const json& element : object.take_array("nodes")) {
    StrictObject node(element, where + ": a node");
    roster.nodes.push_back({.node = node.take_string("node"),
                            .index = node.take_int("index", 0, kMaxRanks),
                            .address = node.take_string("address")});
    node.finish();
  }
  for (const json& element : object.take_array("out")) {
    StrictObject node(element, where + ": a node that is out");
    roster.out.push_back({.node = node.take_string("node"), .reason = node.take_string("reason")});
    node.finish();
  }
}

void check_roster(const Roster& roster, const StrictObject& object) {
  const auto nodes = static_cast<int64_t>(roster.nodes.size());
  if (nodes * roster.ranks_per_node != roster.world_size) {
    object.refuse(
        fmt::format("{} nodes of {} ranks are not {} ranks", nodes, roster.ranks_per_node, roster.world_size));
  }
  std::set<std::string_view> names;
  for (int64_t index = 0; index < nodes; ++index) {
    const RosterNode& node = roster.nodes[static_cast<size_t>(index)];
    if (node.index != index) object.refuse(fmt::format("node '{}' has index {}, not {}", node.node, node.index, index));
    if (node.node.empty() || !names.insert(node.node).second) {
      object.refuse(fmt::format("node '{}' has no name, or stands twice", node.node));
    }
  }
  for (const std::string& spare : roster.spares) {
    if (!names.insert(spare).second) object.refuse(fmt::format("spare '{}' stands twice", spare));
  }
  if (roster.node(roster.store_node) == nullptr) {
    object.refuse(fmt::format("the store's node '{}' has no ranks", roster.store_node));
  }
}
}  // namespace

const RosterNode* Roster::node(std::string_view name) const {
  for (const RosterNode& node : nodes) {
    if (node.node == name) return &node;
  }
  return nullptr;
}

std::string to_text(const Roster& roster) {
  const std::string body = body_of(roster);
  return fmt::format("{}{}{}{}", body, kDigestKey, megalith::digest_of(body), kEnd);
}

std::string digest_of(const Roster& roster) {
  return megalith::digest_of(body_of(roster));
}

Roster parse_roster(std::string_view text, const std::string& where) {
  check_digest(text, where);
  const json parsed = checkpoint::parse_strict_json(text, kLimits, where);
  StrictObject object(parsed, where);
  const int64_t version = object.take_int("version", 1);
  if (version != Roster::kVersion) {
    object.refuse(
        fmt::format("version {} of rosters; this program knows {}: use a newer megalith", version, Roster::kVersion));
  }
  Roster roster{.run = object.take_string("run"),
                .term = object.take_int("term", 1),
                .generation = object.take_int("generation", 1),
                .world_size = object.take_int("world_size", 1, kMaxRanks),
                .ranks_per_node = object.take_int("ranks_per_node", 1, kMaxRanks)};
  take_nodes(object, where, roster);
  roster.spares = take_strings(object, "spares");
  roster.config = object.take_string("config");
  roster.overrides = take_strings(object, "overrides");
  roster.from_step = object.take_int("from_step", -1);
  roster.reason = object.take_string("reason");
  roster.budgets = {.in_job_restarts = object.take_int("in_job_restarts"),
                    .workload_restarts = object.take_int("workload_restarts"),
                    .starts = object.take_int("starts")};
  roster.store_node = object.take_string("store_node");
  object.take_string("digest");
  object.finish();
  check_roster(roster, object);
  return roster;
}

std::string roster_file_name(int64_t generation) {
  return fmt::format("roster-{:06}.json", generation);
}

Claim claim_roster(ControlDirectory& directory, const Roster& roster) {
  const std::string name = roster_file_name(roster.generation);
  const std::string text = to_text(roster);
  directory.create(name, text);
  // Some file systems tell only on the second look who was first.
  const std::optional<std::string> found = directory.read(name);
  if (!found) throw Error(ErrorKind::io, fmt::format("{} was written and is not there", directory.path_of(name)));
  return *found == text ? Claim::taken : Claim::conflict;
}

int64_t newest_generation(const ControlDirectory& directory) {
  const std::vector<int64_t> generations = numbered_files(directory, "roster-", ".json");
  return generations.empty() ? 0 : generations.back();
}

std::optional<Roster> read_newest_roster(const ControlDirectory& directory, const std::string& run) {
  const int64_t generation = newest_generation(directory);
  if (generation == 0) return std::nullopt;
  const std::string name = roster_file_name(generation);
  const std::optional<std::string> text = directory.read(name);
  const std::string where = directory.path_of(name);
  if (!text) throw Error(ErrorKind::io, fmt::format("{} was there and cannot be read", where));
  Roster roster = parse_roster(*text, where);
  if (roster.run != run) data_error("{}: belongs to run '{}', not to '{}'", where, roster.run, run);
  if (roster.generation != generation) {
    data_error("{}: holds the roster of generation {}", where, roster.generation);
  }
  return roster;
}

}  // namespace megalith::resilience
