#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/emulated/wire.h"
#include "cost/hardware.h"

namespace megalith::plan {

// A wire as users name it: "h100", machines of that accelerator with its usual network between them;
// "h100+roce-8x400", with another; or a file that `megalith bench comm --csv` wrote, or several such behind each other.
// A user error says what there is, or which line of the file cannot be.
comm::Wire find_wire(const std::string& name_or_file, const cost::Hardware& hardware);

// The calls of several such files together; those of machines with one number of ranks.
comm::Wire read_wires(const std::vector<std::string>& files);

// The text of such a file.
comm::Wire parse_wire(std::string_view text, const std::string& file);

}  // namespace megalith::plan
