#include "observe/report/report.h"

#include "core/error.h"
#include "core/file.h"
#include "observe/draw/png/png_plot.h"
#include "observe/report/report_page.h"
#include "observe/report/report_pictures.h"

namespace megalith::observe {

namespace fs = std::filesystem;

namespace {

std::vector<ReportedRun> read_runs(const std::vector<fs::path>& directories) {
  std::vector<ReportedRun> runs;
  const std::vector<std::string> names = names_of(directories);
  for (size_t i = 0; i < directories.size(); ++i) {
    check_holds_run(directories[i]);
    runs.push_back(reported_run(directories[i], names[i]));
    if (runs.back().history.last_step || !runs.back().history.spans.empty() || !runs.back().history.config.empty())
      continue;
    user_error("{} holds no run to report on: its logs have no readable record ({} lines could not be read)",
               directories[i].string(), runs.back().history.unreadable_lines);
  }
  return runs;
}

}  // namespace

std::vector<fs::path> write_report(const ReportRequest& request) {
  const std::vector<ReportedRun> runs = read_runs(request.runs);
  const std::vector<Picture> pictures = pictures_of(runs);
  std::vector<fs::path> written;
  if (!request.page.empty()) {
    replace_file(request.page, report_page(runs, pictures));
    written.push_back(request.page);
  }
  if (request.pictures.empty()) return written;
  make_directory(request.pictures);
  for (const Picture& picture : pictures) {
    std::visit(
        [&](const auto& drawn) {
          written.push_back(request.pictures / (drawn.name + ".png"));
          replace_file(written.back(), png_picture(drawn, request.dark_pictures));
        },
        picture.drawn);
  }
  return written;
}

fs::path write_report(const fs::path& run_directory) {
  return write_report({.runs = {run_directory}, .page = run_directory / "report.html"}).front();
}

}  // namespace megalith::observe
