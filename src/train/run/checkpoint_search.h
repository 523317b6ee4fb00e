#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/nodes/part_store.h"
#include "checkpoint/nodes/peers.h"
#include "checkpoint/nodes/remote_holders.h"
#include "comm/world.h"
#include "core/error.h"
#include "train/run/tiers.h"

namespace megalith::train {

// Looks for what a run can go on from, together with the other ranks: the newest step of which every shard is
// somewhere, in memory, on the nodes' disks or on the persistent tier; under a supervisor the step that its roster
// names, and no other. Every rank makes the same calls. The first rank of each node tells what the node has, and gives
// it to other nodes until this is destroyed; nodes without ranks are asked by rank 0.
class CheckpointSearch {
 public:
  struct Options {
    Tiers tiers;
    std::string run_id;
    std::string run_name = {};                 // for messages
    bool owns_persistent = false;              // the persistent tier is the run's own directory, no other run has it
    std::filesystem::path lost_identity = {};  // the file that should have said which run this is; empty: it did
    comm::World& world;
    int ranks_per_node = 1;
    checkpoint::Peers* peers = nullptr;  // the way to other nodes; null: each has only its own and what is persistent
    double deadline = 600.0;             // seconds, for the others to say what they have
    checkpoint::Lineage lineage = {};
    checkpoint::RemoteHolders* holders = nullptr;  // nodes without ranks; null: none that hold anything
  };
  explicit CheckpointSearch(Options options);

  // The newest of those not yet given, the same step on every rank; nothing where there is none left. An error, on
  // every rank, where the persistent tier holds another run's, or where all that was saved is lost or damaged.
  std::optional<checkpoint::Loaded> next();
  // What was seen and cannot be used, on rank 0.
  const std::vector<checkpoint::PassedOver>& passed_over() const { return passed_over_; }

 private:
  // A step that all shards are there of.
  struct Candidate {
    int64_t step = 0;
    int64_t generation = 0;
    bool on_nodes = false;  // else persistent
    std::string text;       // as rank 0 tells it
  };

  int rank() const { return options_.world.rank(); }
  // The first rank on this rank's node.
  int teller() const { return rank() - rank() % options_.ranks_per_node; }
  bool is_ours(const checkpoint::RunState& state) const;
  void set_foreign_aside();
  void refuse(ErrorKind kind, const std::string& reason);
  void refuse_foreign(const checkpoint::StepInfo& step);
  void refuse_to_lose_work();
  void keep_named_step();
  std::string why_not_there(int64_t step) const;
  // Of each save by its id, and of each of its parts, who has it: ranks that tell of it, and "@<node>" without ranks.
  using Saves = std::map<std::string, std::map<int64_t, std::set<std::string>>>;
  void list_saves_on_nodes();
  void add_told_by_ranks(Saves& saves, std::vector<std::string>& foreign);
  void add_held_by_nodes_without_ranks(Saves& saves);
  bool fetch_parts_without_ranks(const std::string& save, std::map<int64_t, std::set<std::string>>& holders);
  bool fetch_part(const std::string& save, int64_t part, const std::string& node);
  void list_persistent();
  void report_held();
  void offer_held();
  void list_candidates();
  std::string choose() const;
  checkpoint::Loaded open_save(const std::string& choice) const;
  checkpoint::Manifest part_of(const std::string& save, int64_t part, const std::string& holder) const;
  checkpoint::Loaded open_persistent(int64_t step) const;
  // `holders`: of each shard, by its file's name, who has it.
  using Holders = std::map<std::string, std::vector<std::string>>;
  checkpoint::Loaded with_places(const std::string& name, checkpoint::Manifest manifest, const Holders& holders) const;
  std::string await(const std::string& key, const std::string& what, int from) const;

  Options options_;
  mutable StatusPage::Group waits_;         // for the words of other ranks
  std::vector<checkpoint::HeldPart> held_;  // by this rank's node: memory first
  std::vector<std::string> foreign_;        // what this rank's node holds of other runs
  std::vector<checkpoint::Offer> offers_;
  std::vector<Candidate> candidates_;  // on rank 0
  // On rank 0: those parts of candidates that nodes without ranks have, and nobody else.
  std::map<std::pair<std::string, int64_t>, checkpoint::RemoteHolders::ListedPart> listed_;
  std::map<std::pair<std::string, int64_t>, checkpoint::Manifest> fetched_;
  std::vector<checkpoint::PassedOver> passed_over_;
  std::string refusal_;  // as rank 0 tells it; empty: none
  size_t given_ = 0;
};

}  // namespace megalith::train
