#pragma once

#include <string>
#include <string_view>

namespace megalith::observe {

std::string escape_html(std::string_view text);

// A whole page: styles and a short script are inside, and a content security policy lets the browser fetch nothing.
// `body` and `footer` are HTML, `title` is text.
std::string html_page(const std::string& title, const std::string& body, const std::string& footer);

// The numbers that a page opens with, as cards.
class FactCards {
 public:
  void add(const std::string& name, const std::string& value, const std::string& detail = "");
  std::string to_html() const { return html_ + "</dl>\n"; }

 private:
  std::string html_ = "<dl class=\"facts\">\n";
};

}  // namespace megalith::observe
