#include "plan/pictures.h"

namespace megalith::plan {

std::vector<Picture> draw_layout(const engine::StageRequest& request, int rank) {
  const parallel::Layout& layout = request.layout;
  std::vector<Picture> pictures = {{"mesh.svg", draw_mesh(layout, rank)}};
  if (layout.pipeline > 1) pictures.push_back({"schedule.svg", draw_schedule(request)});
  if (layout.context > 1) pictures.push_back({"context.svg", draw_context(layout.context)});
  return pictures;
}

}  // namespace megalith::plan
