#include "checkpoint/nodes/part_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "checkpoint/example_ranks.h"
#include "checkpoint/nodes/remote_holders.h"
#include "core/hash/digest.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::ExampleRank;
using testing::TempDir;

constexpr int64_t kRanks = 2;
constexpr const char* kLoopback = "127.0.0.1";
constexpr double kDeadline = 20.0;

class PartServerTest : public ::testing::Test {
 protected:
  void keep(int64_t rank, int64_t step, const std::string& run = "run-1") const {
    const ExampleRank example({.rank = rank, .ranks = kRanks}, step);
    RunState state = example.state();
    state.run_id = run;
    PartStore(node_.local).save(state, example.place(), example.content(), 1);
  }

  TempDir directory_;
  NodeDirectories node_{.memory = {}, .local = directory_ / "node", .copies = {}};
};

TEST_F(PartServerTest, OthersReadWhatTheNodeHolds) {
  for (const int64_t rank : {0, 1}) keep(rank, 20);
  keep(0, 30, "run-2");
  PartServer server(node_, "run-1", kLoopback);
  RemoteHolders holders({{"spare", server.place()}}, kDeadline);
  EXPECT_EQ(holders.nodes(), std::vector<std::string>{"spare"});
  expect_error(ErrorKind::io, {"spare", "not, or no longer, offered"}, [&] { holders.list("spare"); });
  server.offer();
  const std::vector<RemoteHolders::ListedPart> listed = holders.list("spare");
  ASSERT_EQ(listed.size(), 2U) << "another run's is not offered";
  std::vector<Manifest> parts;
  for (const RemoteHolders::ListedPart& part : listed) parts.push_back(holders.manifest("spare", part));
  const auto places = [&](const ShardInfo& shard) { return std::vector{holders.place("spare", shard.digests)}; };
  Loaded loaded("spare", merge(parts, "spare"), places);
  EXPECT_TRUE(test::holds_example(loaded, 20, kRanks));

  keep(0, 40);
  EXPECT_EQ(holders.list("spare").size(), 2U) << "not before it is offered";
  server.offer();
  EXPECT_EQ(holders.list("spare").size(), 3U);
  server.withdraw();
  expect_error(ErrorKind::io, {"spare"}, [&] { holders.list("spare"); });
}

TEST_F(PartServerTest, AShardThatGoesOrChangesIsNotBelieved) {
  for (const int64_t rank : {0, 1}) keep(rank, 20);
  PartServer server(node_, "run-1", kLoopback);
  server.offer();
  RemoteHolders holders({{"spare", server.place()}}, kDeadline);
  for (const HeldPart& part : parts_on(node_)) {
    const bool goes = part.manifest.part->rank == 0;
    if (goes) fs::remove(part.shard);
    if (!goes) fs::resize_file(part.shard, fs::file_size(part.shard) - 1);
    if (!goes) fs::resize_file(part.shard, fs::file_size(part.shard) + 1);
    const auto places = [&](const ShardInfo& shard) { return std::vector{holders.place("spare", shard.digests)}; };
    Loaded loaded("spare", part.manifest, places);
    expect_error(goes ? ErrorKind::io : ErrorKind::data, {"spare"}, [&] { loaded.verify(); });
  }
}

TEST_F(PartServerTest, AHolderThatIsGoneOrUnknownIsAnIoError) {
  comm::ByteServerAddress place;
  {
    const PartServer server(node_, "run-1", kLoopback);
    place = server.place();
  }
  RemoteHolders holders({{"gone", place}}, 0.2);
  expect_error(ErrorKind::io, {"gone"}, [&] { holders.list("gone"); });
  expect_error(ErrorKind::io, {"not told", "other"}, [&] { holders.list("other"); });
}

TEST_F(PartServerTest, WhoDoesNotKnowTheSecretReadsNothing) {
  PartServer server(node_, "run-1", kLoopback);
  server.offer();
  comm::ByteServerAddress place = server.place();
  place.secret.back() = static_cast<char>(place.secret.back() ^ 1);
  RemoteHolders holders({{"spare", place}}, kDeadline);
  expect_error(ErrorKind::io, {"spare"}, [&] { holders.list("spare"); });
}

// What a holder says may be anything.
class LyingHolder {
 public:
  LyingHolder() : server_(kLoopback), holders_({{"liar", server_.address()}}, kDeadline) {}

  void offer(const std::string& name, const std::string& text) {
    server_.offer(name, static_cast<int64_t>(text.size()), [text](int64_t offset, std::span<std::byte> into) {
      std::memcpy(into.data(), text.data() + offset, into.size());
    });
  }
  void offer_list(const std::string& list) {
    std::string head = fmt::format("{} {}", list.size(), digest_of(list));
    head.resize(served::kListHeadBytes, ' ');
    offer(served::kListHead, head);
    offer(served::list_name(digest_of(list)), list);
  }
  RemoteHolders& holders() { return holders_; }

 private:
  comm::ByteServer server_;
  RemoteHolders holders_;
};

TEST(RemoteHolders, RefuseAListThatIsNone) {
  LyingHolder liar;
  for (std::string head : {"", "nonsense", "12", "99999999999 0123456789abcdef", "-1 0123456789abcdef", "4 xyz"}) {
    head.resize(served::kListHeadBytes, ' ');
    liar.offer(served::kListHead, head);
    expect_error(ErrorKind::data, {"node liar", "no list"}, [&] { liar.holders().list("liar"); });
  }
  const std::string id = "20-2-1-0123456789abcdef";
  for (const std::string& line :
       {std::string("x"), id, id + " 0", id + " 2 10", id + " -1 10", id + " 0 0", id + " 0 999999999999",
        id + " 0 10 more", std::string("20-0-1-0123456789abcdef 0 10"), std::string(1000, '9'), std::string(" ")}) {
    liar.offer_list(line + "\n");
    expect_error(ErrorKind::data, {"node liar"}, [&] { liar.holders().list("liar"); });
  }
  liar.offer(served::list_name(digest_of("a\n")), "b\n");
  std::string head = fmt::format("2 {}", digest_of("a\n"));
  head.resize(served::kListHeadBytes, ' ');
  liar.offer(served::kListHead, head);
  expect_error(ErrorKind::data, {"another list than it says"}, [&] { liar.holders().list("liar"); });
}

TEST(RemoteHolders, RefuseAManifestThatIsNotWhatItsNameSays) {
  LyingHolder liar;
  const ExampleRank example({.rank = 1, .ranks = kRanks}, 20);
  ThreadPool pool(1);
  const Manifest part =
      manifest_of_part(example.state(), example.place(),
                       {.file = "shard-g1-r00001.safetensors", .digests = digests_of(example.image().memory(), pool)},
                       example.image().pieces());
  const std::string text = encode(part);
  const auto ask = [&](const SaveId& save, int64_t rank, const std::string& given) {
    liar.offer(served::manifest_name(save, rank), given);
    liar.holders().manifest("liar", {.save = save, .part = rank, .manifest_bytes = static_cast<int64_t>(given.size())});
  };
  const SaveId save = SaveId::of(part);
  EXPECT_NO_THROW(ask(save, 1, text));
  expect_error(ErrorKind::data, {"not what its name says"}, [&] { ask(save, 0, text); });
  SaveId other = save;
  other.step = 30;
  expect_error(ErrorKind::data, {"not what its name says"}, [&] { ask(other, 1, text); });
  expect_error(ErrorKind::data, {"node liar"}, [&] { ask(save, 1, text.substr(0, text.size() / 2)); });
}

TEST(HoldersFile, KeepsSecretsForItsOwner) {
  const TempDir directory;
  const fs::path file = directory / "holders";
  std::string secret(32, '\0');
  secret[3] = '\n';
  secret[4] = static_cast<char>(0xff);
  write_holders(file, {{"a", {.address = "10.0.0.1", .port = 4711, .secret = secret}},
                       {"b", {.address = "::1", .port = 1, .secret = "x"}}});
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const std::vector<RemoteHolder> holders = read_holders(file);
  ASSERT_EQ(holders.size(), 2U);
  EXPECT_EQ(holders[0].node, "a");
  EXPECT_EQ(holders[0].place.address, "10.0.0.1");
  EXPECT_EQ(holders[0].place.port, 4711);
  EXPECT_EQ(holders[0].place.secret, secret);
  fs::permissions(file, fs::perms::group_read, fs::perm_options::add);
  expect_error(ErrorKind::user, {"holders", "0640", "0600"}, [&] { read_holders(file); });
  write_holders(file, {});
  EXPECT_TRUE(read_holders(file).empty());
}

TEST(HoldersFile, RefusesNonsenseByLine) {
  const TempDir directory;
  const fs::path file = directory / "holders";
  for (const char* line : {"a", "a 10.0.0.1", "a 10.0.0.1 80", "a 10.0.0.1 0 ff", "a 10.0.0.1 99999 ff",
                           "a 10.0.0.1 80 f", "a 10.0.0.1 80 fx", "../a 10.0.0.1 80 ff", "a 10.0.0.1 80 ff more", ""}) {
    write_holders(file, {{"good", {.address = "10.0.0.1", .port = 80, .secret = "x"}}});
    File::open_for_appending(file).write(std::string(line) + "\n");
    expect_error(ErrorKind::user, {"line 2 of", "holders"}, [&] { read_holders(file); });
  }
  fs::remove(file);
  expect_error(ErrorKind::io, {"holders"}, [&] { read_holders(file); });
  fs::create_symlink("/dev/null", file);
  expect_error(ErrorKind::data, {"holders"}, [&] { read_holders(file); });
}

}  // namespace
}  // namespace megalith::checkpoint
