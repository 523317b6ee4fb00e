#include <gtest/gtest.h>

#include <cstdio>

#include "observe/example_run.h"
#include "observe/files.h"
#include "observe/report/report.h"
#include "temp_dir.h"

namespace megalith::observe {
namespace {

using testing::TempDir;

std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  while (const size_t count = std::fread(buffer, 1, sizeof(buffer), pipe)) output.append(buffer, count);
  ::pclose(pipe);
  return output;
}

std::string browser() {
  const std::string found = output_of("command -v chromium || command -v chromium-browser || command -v google-chrome");
  return found.substr(0, found.find('\n'));
}

// What a reader's browser says about the page once it is open: counted by a script of the test's own.
constexpr const char* kProbe = R"(<script>
addEventListener('load', () => {
  const seen = figure => {
    const area = [...figure.querySelectorAll('.area')].find(one => one.getBoundingClientRect().width > 100);
    return area && area.querySelector('path, rect');
  };
  const figures = [...document.querySelectorAll('figure')];
  const plot = document.querySelector('#loss .sheet'), box = plot.getBoundingClientRect();
  plot.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width / 2, clientY: box.top + 20}));
  document.querySelector('#loss button.log').click();
  // Where a reader would get a file, the probe looks at it.
  HTMLAnchorElement.prototype.click = function() {
    document.title = 'probe figures=' + figures.filter(seen).length + '/' + figures.length +
        ' tip=' + plot.querySelector('.tip').textContent +
        ' log=' + document.querySelector('#loss').classList.contains('log') +
        ' wide=' + (document.documentElement.scrollWidth > innerWidth) +
        ' fetched=' + performance.getEntriesByType('resource').filter(one => !one.name.startsWith('data:')).length +
        ' saved=' + this.download + ' ' + this.href.slice(0, 21) + ' end';
  };
  document.querySelector('#loss button.save').click();
});
</script>)";

TEST(ReportInABrowser, ShowsItsPlotsFetchesNothingAndComplainsOfNothing) {
  const std::string chromium = browser();
  if (chromium.empty()) GTEST_SKIP() << "skipped: there is no chromium";
  const TempDir directory;
  test::write_example_run(directory.path());
  const std::string html = test::bytes_of(write_report(directory.path()));
  std::ofstream(directory / "probed.html") << html << kProbe;
  for (const int width : {1280, 500}) {
    const std::string command = chromium + " --headless --no-sandbox --disable-gpu --disable-background-networking " +
                                "--user-data-dir=" + (directory / "profile").string() +
                                " --log-net-log=" + (directory / "net.json").string() +
                                " --window-size=" + std::to_string(width) +
                                ",900 --enable-logging=stderr --virtual-time-budget=10000 --dump-dom file://" +
                                (directory / "probed.html").string() + " 2>" + (directory / "stderr").string();
    const std::string page = output_of(command);
    const std::string log = test::bytes_of(directory / "stderr");
    ASSERT_NE(page.find("<title>probe "), std::string::npos) << log;
    const size_t at = page.find("probe ");
    const std::string probe = page.substr(at, page.find(" end", at) - at);
    EXPECT_NE(probe.find("figures=8/8"), std::string::npos) << probe;
    EXPECT_NE(probe.find("tip=step "), std::string::npos) << probe;
    EXPECT_NE(probe.find("log=true wide=false fetched=0 saved=loss.png data:image/png;base64"), std::string::npos)
        << probe;
    EXPECT_EQ(log.find("CONSOLE"), std::string::npos) << log;
    // A page from a file has no origin; what the browser asks for by itself has another initiator.
    EXPECT_EQ(test::bytes_of(directory / "net.json").find("\"initiator\":\"null\""), std::string::npos);
  }
}

}  // namespace
}  // namespace megalith::observe
