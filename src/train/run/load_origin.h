#pragma once

#include "core/telemetry.h"
#include "engine/rank_talk.h"
#include "train/run/origin.h"
#include "train/state/rank_state.h"

namespace megalith::train {

// Fills the engine with the state that `origin` names, or where that is damaged, with an older one: `origin` then says
// which. Every byte of what is loaded is verified, by some rank. A damaged file is set aside and named in the log.
void load_origin(RankState& state, engine::RankTalk& talk, OriginFinder& finder, Origin& origin, Telemetry& telemetry);

}  // namespace megalith::train
