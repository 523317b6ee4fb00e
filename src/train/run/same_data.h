#pragma once

#include <map>
#include <string>

#include "checkpoint/format/manifest.h"
#include "config/run_config.h"

namespace megalith::train {

// What a run learns from, by the keys of its lists of datasets (RunState::extra holds it under these). Datasets are
// told apart by what they hold, so that they may move to another folder.
using DataIdentity = std::map<std::string, std::string>;

// Opens every dataset: throws what is wrong with one.
DataIdentity identify_data(const config::Data& data);

// Makes it part of a run's state.
void remember_data(const DataIdentity& identity, checkpoint::RunState& state);

// What of the data differs from that of a checkpoint, with old and new, for people; empty: it is the same.
std::string data_changes(const checkpoint::RunState& before, const config::Data& now, const DataIdentity& identity);

}  // namespace megalith::train
