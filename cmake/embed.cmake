# cmake -DSOURCE=page.css -DOUTPUT=page_css.h -DNAME=kPageCss -P embed.cmake: a text file as a constant in a header.
file(READ ${SOURCE} text)
file(WRITE ${OUTPUT} "#pragma once\n#include <string_view>\nnamespace megalith {\n"
  "constexpr std::string_view ${NAME} = R\"embedded(${text})embedded\";\n}\n")
