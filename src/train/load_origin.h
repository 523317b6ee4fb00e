#pragma once

#include "core/telemetry.h"
#include "train/engine.h"
#include "train/origin.h"

namespace megalith::train {

// Fills the engine with the state that `origin` names, or where that is damaged, with an older one: `origin` then says
// which. Every byte of what is loaded is verified, by some rank. A damaged file is set aside and named in the log.
void load_origin(Engine& engine, OriginFinder& finder, Origin& origin, Telemetry& telemetry);

}  // namespace megalith::train
