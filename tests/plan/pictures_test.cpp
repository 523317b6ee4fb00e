#include "plan/pictures.h"

#include <gtest/gtest.h>

namespace megalith::plan {
namespace {

using parallel::Layout;

engine::StageRequest request_of(const Layout& layout, int64_t micro_batches) {
  return {.config = {.layers = 8}, .layout = layout, .micro_batches = micro_batches};
}

int64_t count(const std::string& text, std::string_view part) {
  int64_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

std::vector<std::string> files_of(const Layout& layout) {
  std::vector<std::string> files;
  for (const Picture& picture : draw_layout(request_of(layout, 8), 0)) files.push_back(picture.file);
  return files;
}

TEST(Pictures, ShowWhatALayoutHas) {
  EXPECT_EQ(files_of({.data = 2}), (std::vector<std::string>{"mesh.svg"}));
  EXPECT_EQ(files_of({.pipeline = 2}), (std::vector<std::string>{"mesh.svg", "schedule.svg"}));
  EXPECT_EQ(files_of({.context = 2}), (std::vector<std::string>{"mesh.svg", "context.svg"}));
}

TEST(Pictures, OfAScheduleHaveABoxForEachCompute) {
  const std::string plain = draw_schedule(request_of({.pipeline = 4}, 8));
  EXPECT_EQ(count(plain, ", forward: "), 32);
  EXPECT_EQ(count(plain, ", backward: "), 32);
  EXPECT_EQ(count(plain, "1F1B: 4 stages, 8 micro batches; 27.3 % idle"), 1);

  const std::string interleaved = draw_schedule(request_of({.pipeline = 4, .chunks = 2}, 8));
  EXPECT_EQ(count(interleaved, ", forward: "), 64);
  EXPECT_EQ(count(interleaved, "15.8 % idle"), 1);

  const Layout zero_bubble{.pipeline = 4, .schedule = parallel::PipelineSchedule::zero_bubble};
  const std::string split = draw_schedule(request_of(zero_bubble, 8));
  EXPECT_EQ(count(split, "gradient of the input: "), 32);
  EXPECT_EQ(count(split, "gradients of the weights: "), 32);
  EXPECT_EQ(count(split, "11.1 % idle"), 1);
}

TEST(Pictures, OfAMeshHaveACellForEachRank) {
  const std::string svg = draw_mesh({.tensor = 4, .pipeline = 2, .context = 2, .data = 2}, 5);
  EXPECT_EQ(count(svg, "<title>rank "), 32);
  EXPECT_EQ(count(svg, "<title>rank 5: tensor 1, context 1, data 0, stage 0</title>"), 1);
}

TEST(Pictures, OfASampleShowEqualWork) {
  const std::string svg = draw_context(4);
  EXPECT_EQ(count(svg, "<polygon"), 8);
  for (const char* rank : {"rank 0: blocks 0 and 7, 8 pairs", "rank 3: blocks 3 and 4, 8 pairs"})
    EXPECT_EQ(count(svg, rank), 1) << rank;
}

}  // namespace
}  // namespace megalith::plan
