#include "launch/kubernetes/kubernetes_state.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "expect_error.h"

namespace megalith::launch {
namespace {

using Json = nlohmann::ordered_json;
using Phase = JobState::Phase;

KubernetesState state_of(const char* job, const char* pods = R"({"items": []})") {
  return read_kubernetes_state(Json::parse(job), Json::parse(pods));
}

TEST(KubernetesState, SaysWhyAPodDoesNotStart) {
  const char* const job = R"({"metadata": {"name": "gpt-1"}, "spec": {"suspend": false}, "status": {"active": 1}})";
  const KubernetesState unscheduled = state_of(job, R"({"items": [{"metadata": {"name": "gpt-1-0-a"}, "status": {
    "phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}]}}]})");
  EXPECT_EQ(unscheduled.job.phase, Phase::waiting);
  EXPECT_EQ(unscheduled.job.why, "pod gpt-1-0-a waits: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.");
  const KubernetesState no_image = state_of(job, R"({"items": [{"metadata": {"name": "gpt-1-0-a"}, "status": {
    "phase": "Pending", "initContainerStatuses": [{"name": "plugin", "state": {"terminated": {"exitCode": 0}}}],
    "containerStatuses": [{"name": "megalith", "state": {"waiting": {"reason": "ImagePullBackOff",
    "message": "no such image"}}}]}}]})");
  EXPECT_EQ(no_image.job.why, "pod gpt-1-0-a waits: ImagePullBackOff: no such image");
  EXPECT_EQ(no_image.ending, std::nullopt);
}

TEST(KubernetesState, ALateAnswerAboutAnOldPodIsNotTaken) {
  const Json pods = Json::parse(R"({"items": [
    {"metadata": {"name": "new", "creationTimestamp": "2026-01-02T00:00:00Z",
     "annotations": {"batch.kubernetes.io/job-completion-index": "0"}}, "status": {"phase": "Running"}},
    {"metadata": {"name": "old", "creationTimestamp": "2026-01-01T00:00:00Z",
     "annotations": {"batch.kubernetes.io/job-completion-index": "0"}}, "status": {"phase": "Failed"}}]})");
  EXPECT_EQ(newest_pod(pods, 0), "new");
  EXPECT_EQ(newest_pod(pods, 1), "");
  EXPECT_EQ(newest_pod(Json(), 0), "");
}

TEST(KubernetesState, ManyNodesAreCounted) {
  Json pods = {{"items", Json::array()}};
  for (int i = 0; i < 32; ++i) {
    pods["items"].push_back(
        {{"metadata",
          {{"name", "p"}, {"annotations", {{"batch.kubernetes.io/job-completion-index", std::to_string(i)}}}}},
         {"spec", {{"nodeName", fmt::format("n{}", 10 + i)}}},
         {"status", {{"phase", "Running"}}}});
  }
  const KubernetesState state = read_kubernetes_state(Json::parse(R"({"metadata": {"name": "gpt-1"}})"), pods);
  EXPECT_EQ(state.job.phase, Phase::running);
  EXPECT_EQ(state.job.nodes, "n10, n11, n12, n13 and 28 more");
}

TEST(KubernetesState, AnEndSaysItsCodeAndReason) {
  const KubernetesState killed =
      state_of(R"({"metadata": {"name": "gpt-1"}, "status": {"conditions": [{"type": "Failed",
    "status": "True", "reason": "DeadlineExceeded", "message": "Job was active longer than specified deadline"}]}})");
  ASSERT_TRUE(killed.ending);
  EXPECT_EQ(killed.ending->code, 1);
  EXPECT_EQ(killed.ending->reason, "failed: Job was active longer than specified deadline");
  const KubernetesState memory =
      state_of(R"({"metadata": {"name": "gpt-1"}, "status": {"conditions": [{"type": "Failed",
    "status": "True", "reason": "BackoffLimitExceeded", "message": "limit"}]}})",
               R"({"items": [{"metadata": {"name": "gpt-1-3-a"}, "spec": {"nodeName": "n3"},
    "status": {"phase": "Failed", "containerStatuses": [{"name": "megalith", "state": {"terminated":
    {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-01T00:00:00Z"}}}]}}]})");
  ASSERT_TRUE(memory.ending);
  EXPECT_EQ(memory.ending->code, 137);
  expect_parts(memory.ending->reason, {"limit", "gpt-1-3-a on n3 failed with exit code 137: OOMKilled"});
}

TEST(KubernetesState, WhatIsNotThereIsNotSaid) {
  EXPECT_EQ(state_of("{}", "{}").job.phase, Phase::waiting);
  EXPECT_EQ(state_of(R"({"status": {"conditions": "odd"}})", R"({"items": [{"status": 3}, null]})").ending,
            std::nullopt);
  EXPECT_EQ(why_not_admitted(Json(), "x"), "");
  EXPECT_EQ(why_not_admitted(Json::parse(R"({"items": [{"metadata": {}}]})"), "x"), "");
}

}  // namespace
}  // namespace megalith::launch
