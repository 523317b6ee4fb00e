#include "train/inference/evaluate_text.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace megalith::train {

double nats_of_document(TextModel& model, std::span<const int32_t> ids, const TextWindows& windows) {
  const int64_t length = model.context_length();
  const int64_t stride = windows.stride > 0 ? windows.stride : length;
  if (stride > length) user_error("a stride of {} tokens is more than the {} that the model reads", stride, length);
  std::vector<int32_t> tokens{windows.first};
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  const int64_t last = std::ssize(ids);  // tokens[last] is the last that is predicted
  double nats = 0.0;
  for (int64_t done = 0; done < last;) {
    const int64_t end = std::min(last, done == 0 ? length : done + stride);
    const int64_t begin = std::max<int64_t>(0, end - length);
    const std::vector<double> losses =
        model.losses(std::span(tokens).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin + 1)));
    nats += std::accumulate(losses.begin() + (done - begin), losses.end(), 0.0);
    done = end;
  }
  return nats;
}

}  // namespace megalith::train
