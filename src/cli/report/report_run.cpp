#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/paths.h"
#include "cli/report/report_verbs.h"
#include "observe/report/report.h"

namespace megalith::cli {

namespace {

struct Options {
  std::filesystem::path directory;
  std::vector<std::filesystem::path> others;
  observe::ReportRequest request;
};

int run_report(const Options& options) {
  observe::ReportRequest request = options.request;
  check_output_file("--output", request.page.string());
  request.runs = {options.directory};
  request.runs.insert(request.runs.end(), options.others.begin(), options.others.end());
  if (request.page.empty())
    request.page = options.directory / (options.others.empty() ? "report.html" : "compare.html");
  for (const std::filesystem::path& path : observe::write_report(request)) std::cout << path.string() << '\n';
  return kExitComplete;
}

}  // namespace

void add_report_run(CLI::App& report, Action& run) {
  CLI::App* verb = report.add_subcommand(
      "run",
      "One page about a run: loss, throughput, step times, where the time went, memory, config.\n\n"
      "  megalith report run runs/demo\n"
      "  megalith report run runs/demo --compare runs/demo-lr2 runs/demo-lr4 -o lr.html\n"
      "  megalith report run runs/demo --png figures --dark\n\n"
      "The page needs nothing but itself: send it, keep it, open it on a phone.");
  const auto options = std::make_shared<Options>();
  verb->add_option("directory", options->directory, "the run's directory")->required();
  verb->add_option("--compare", options->others, "further runs, their curves laid over those of the first");
  verb->add_option("-o,--output", options->request.page,
                   "the HTML file (default: report.html, or compare.html, in the directory)");
  verb->add_option("--png", options->request.pictures, "also write each plot as a PNG file into this directory");
  verb->add_flag("--dark", options->request.dark_pictures, "PNG files for dark pages");
  verb->callback(
      [options, &run] { run = [options] { return report_or_explain([&] { return run_report(*options); }); }; });
}

}  // namespace megalith::cli
