#pragma once

// The names of events in every log; docs/sinks.md says what each one means.
namespace megalith::event {

constexpr const char* kJobStarted = "job_started";
constexpr const char* kJobTerminated = "job_terminated";
constexpr const char* kCheckpointLoaded = "checkpoint_loaded";
constexpr const char* kCheckpointSaved = "checkpoint_saved";
constexpr const char* kCheckpointFailed = "checkpoint_failed";
constexpr const char* kNonFinite = "non_finite";
constexpr const char* kEventsLost = "events_lost";
constexpr const char* kStartLaps = "start_laps";  // seconds of what came before the first step
constexpr const char* kMetrics = "metrics";       // the numbers of a step or of a validation

// In the logs of Google's resiliency library, which names the others alike.
constexpr const char* kUserScheduled = "user_scheduled";
constexpr const char* kUserTerminated = "user_terminated";

// What a supervisor was told, in its journal (resilience/record/journal.h).
constexpr const char* kFact = "fact";

// Spans.
constexpr const char* kCheckpointLoad = "checkpoint_load";
constexpr const char* kCheckpointSave = "checkpoint_save";
constexpr const char* kValidation = "validation";

// Fields that are read back.
constexpr const char* kKind = "kind";        // of metrics: metric::kTrain or kValidation
constexpr const char* kCount = "count";      // of events_lost
constexpr const char* kProgram = "program";  // of job_started, as the next three
constexpr const char* kProcessor = "processor";
constexpr const char* kAccelerator = "accelerator";
constexpr const char* kPeakTflops = "peak_tflops";

// Of job_terminated after an error (core/error.h); left out where unknown.
constexpr const char* kError = "error";  // its kind
constexpr const char* kRanks = "ranks";  // "1, 2"
constexpr const char* kGroup = "group";
constexpr const char* kCall = "call";
constexpr const char* kParameter = "parameter";

}  // namespace megalith::event
