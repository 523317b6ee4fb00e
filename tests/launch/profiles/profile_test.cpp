#include "launch/profiles/profile.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/file.h"
#include "expect_error.h"
#include "launch/profiles/profile_reader.h"
#include "repository.h"
#include "temp_dir.h"

namespace megalith::launch {
namespace {

std::vector<std::filesystem::path> own_folders() {
  return {in_repository("recipes/clusters")};
}

Profile load(const std::string& name, const std::vector<std::string>& set = {}) {
  return load_profile(name, set, own_folders());
}

TEST(Profile, EveryOneOfTheHouseLoads) {
  const std::vector<std::string> names = profile_names(own_folders());
  EXPECT_EQ(names, (std::vector<std::string>{"aws-parallelcluster", "azure-ndm-a100", "azure-ndv5", "dgx-cloud",
                                             "generic-kubernetes", "generic-slurm", "gke-a3-mega", "gke-a3-ultra"}));
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Profile profile = load(name);
    EXPECT_TRUE(read_text(in_repository("recipes/clusters/" + name + ".yaml")).starts_with("# "));
    EXPECT_EQ(profile.number("gpus_per_node"), 8);
    EXPECT_EQ(profile.seconds("save_margin"), 300.0);
    const Profile again = parse_profile(profile.to_yaml(), name);
    for (const ProfileKey& key : profile_keys()) {
      const bool is_of_item = key.path.find('[') != std::string_view::npos;
      if (is_of_item) continue;
      EXPECT_EQ(again.text(key.path), profile.text(key.path)) << key.path;
    }
    EXPECT_EQ(again.map("environment"), profile.map("environment"));
    EXPECT_EQ(again.map("kubernetes.annotations"), profile.map("kubernetes.annotations"));
    EXPECT_EQ(again.mounts().size(), profile.mounts().size());
  }
}

TEST(Profile, InheritsAndSaysWhereEachValueCameFrom) {
  const Profile profile = load("azure-ndm-a100", {"slurm.partition=hpc", "environment.NCCL_DEBUG=INFO"});
  EXPECT_EQ(profile.text("slurm.partition"), "hpc");
  const std::string yaml = profile.to_yaml();
  expect_parts(yaml, {"kind: slurm  # generic-slurm.yaml:4\n", "partition: hpc  # --set slurm.partition=hpc\n",
                      "NCCL_TOPO_FILE: /opt/microsoft/ndv4-topo.xml  # azure-ndm-a100.yaml:4\n",
                      "NCCL_PXN_DISABLE: \"1\"  # azure-ndv5.yaml:",
                      "NCCL_DEBUG: INFO  # --set environment.NCCL_DEBUG=INFO\n", "account: \"\"  # default\n"});
}

TEST(Profile, SetReadsWhatHelmReads) {
  const Profile profile = load("generic-slurm", {"mounts[1].source=/data,mounts[1].target=/d", "mounts[0].source=/a",
                                                 "slurm.sbatch={--comment=x y,--nice}", "slurm.time=1-12:30:00",
                                                 "environment.LIST=a\\,b\\\\c=d", "gpus_per_node=null"});
  ASSERT_EQ(profile.mounts().size(), 2U);
  EXPECT_EQ(profile.mounts()[0].target, "/a");
  EXPECT_EQ(profile.mounts()[1].target, "/d");
  EXPECT_EQ(profile.texts("slurm.sbatch"), (std::vector<std::string>{"--comment=x y", "--nice"}));
  EXPECT_EQ(profile.text("slurm.time"), "1-12:30:00");
  EXPECT_EQ(profile.map("environment"), (Profile::Map{{"LIST", "a,b\\c=d"}}));
  EXPECT_EQ(profile.number("gpus_per_node"), 0);
  const Profile dotted = load("generic-kubernetes", {"kubernetes.annotations.networking\\.gke\\.io/x=eth0"});
  EXPECT_EQ(dotted.map("kubernetes.annotations"), (Profile::Map{{"networking.gke.io/x", "eth0"}}));
}

TEST(Profile, BadSetIsRefused) {
  for (const std::string bad : {"", "slurm", "slurm.time", "=x", ".a=x", "a[=x", "a[x]=1", "a[99999]=1", "a[0]b=1",
                                "slurm.sbatch={a", "slurm.sbatch={a}b", "a,b=c"}) {
    SCOPED_TRACE(bad);
    EXPECT_NE(user_error_of([&] { load("generic-slurm", {bad}); }).find("--set"), std::string::npos);
  }
}

TEST(Profile, UnknownKeysGetTheNearestOne) {
  const std::string message = user_error_of([] {
    load("generic-slurm", {"slurm.partiton=x", "patition=y", "gpus_per_node=many", "slurm.tasks=core", "slurm=1"});
  });
  expect_parts(message, {"did you mean `slurm.partition`?"});
  const std::string all = user_error_of([] {
    load("generic-slurm", {"slurm.partiton=x", "partition=y", "gpus_per_node=many", "slurm.tasks=core"});
  });
  expect_parts(all, {"4 problems", "`slurm.partiton`; did you mean `slurm.partition`?",
                     "`partition`; did you mean `slurm.partition`?", "`gpus_per_node` must be a whole number",
                     "`slurm.tasks` must be one of node/gpu", "--set slurm.tasks=core"});
  expect_parts(user_error_of([] { load("generic-slurm", {"kubernetes.que.x[0]=1"}); }),
               {"--set kubernetes.que.x[0]=1: there is no key `kubernetes.que`; did you mean `kubernetes.queue`?"});
}

TEST(Profile, BadFilesAreRefused) {
  const testing::TempDir folder;
  const auto refused = [&](const std::string& text) {
    std::ofstream(folder / "mine.yaml") << text;
    return user_error_of([&] { load_profile((folder / "mine.yaml").string(), {}, own_folders()); });
  };
  expect_parts(refused("inherit: mine\n"), {"inherits itself"});
  expect_parts(refused("inherit: generic-slurmm\n"), {"'generic-slurmm'", "did you mean 'generic-slurm'?"});
  expect_parts(refused("gpus_per_node: 4\n"), {"does not say its `kind`"});
  expect_parts(refused("kind: slurm\nenvironment: {MEGALITH_STORE_SECRET: x}\n"), {"secret", "its own file"});
  expect_parts(refused("kind: slurm\nenvironment: {a-b: x}\n"), {"not the name of a variable"});
  expect_parts(refused("kind: slurm\nmounts: [x]\n"), {"mine.yaml:2", "list of maps"});
  expect_parts(refused("kind: slurm\nmounts: [{sorce: x}]\n"), {"`mounts[].sorce`; did you mean `mounts[].source`?"});
  expect_parts(refused("- a\n"), {"mine.yaml:1", "key: value"});
  expect_parts(user_error_of([] { load("nowhere"); }),
               {"there is no profile 'nowhere'", "generic-slurm", "gke-a3-mega"});
  expect_parts(user_error_of([] { load("./none.yaml"); }), {"no such file"});
  expect_parts(user_error_of([&] {
                 load_profile("generic-slurm", {}, {folder / "a", folder / "b"});
               }),
               {"'generic-slurm'", "no profile is found in", "/a, ", "/b; give a file"});
}

TEST(Profile, AFileInheritsAProfileOfTheHouse) {
  const testing::TempDir folder;
  std::ofstream(folder / "mine.yaml") << "inherit: dgx-cloud\nslurm: {account: me}\nmounts: [{source: /lustre}]\n";
  const Profile profile = load_profile((folder / "mine.yaml").string(), {}, own_folders());
  EXPECT_EQ(profile.name(), "mine");
  EXPECT_EQ(profile.text("slurm.account"), "me");
  EXPECT_EQ(profile.text("slurm.tasks"), "gpu");
  EXPECT_TRUE(profile.flag("slurm.singleton"));
}

}  // namespace
}  // namespace megalith::launch
