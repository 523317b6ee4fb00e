#pragma once

#include <string>
#include <vector>

#include "cli/launch/launch_draft.h"
#include "cli/launch/launch_words.h"
#include "launch/storage.h"

namespace megalith::cli {

// Whether these verbs are stages of data, of which each starts when the one before has ended well. User error for
// several verbs that are none.
bool are_stages(const std::vector<LaunchedVerb>& verbs, const std::string& kind);

// Adds the stages to the draft, what is wrong with them, and the list of the first one's inputs to the launch's files:
// all tasks must see the same. The launch has its folder.
void draft_stages(const std::vector<LaunchedVerb>& verbs, const LaunchOptions& options, const launch::Storage& storage,
                  LaunchDraft& draft);

}  // namespace megalith::cli
