#include "observe/report/html.h"

#include <fmt/format.h>

#include "observe/draw/palette.h"
#include "report_css.h"
#include "report_js.h"

namespace megalith::observe {

namespace {

constexpr std::string_view kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

std::string style() {
  return ":root{color-scheme:light dark;" + css_variables(false) + "}\n" + "@media (prefers-color-scheme:dark){:root{" +
         css_variables(true) + "}}\n" + std::string(kReportCss);
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string html_page(const std::string& title, const std::string& body, const std::string& footer) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n<title>{} - Megalith</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<style>\n{}</style>\n</head>\n<body>\n<main>\n{}"
      "<footer>{}</footer>\n</main>\n<script>\n{}</script>\n</body>\n</html>\n",
      kPolicy, escape_html(title), style(), body, footer, kReportJs);
}

void FactCards::add(const std::string& name, const std::string& value, const std::string& detail) {
  html_ += fmt::format("<div class=\"fact\"><dt>{}</dt><dd>{}</dd>{}</div>\n", escape_html(name), escape_html(value),
                       detail.empty() ? "" : "<p>" + escape_html(detail) + "</p>");
}

}  // namespace megalith::observe
