#pragma once

#include <signal.h>

#include <chrono>
#include <cstdio>
#include <list>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "comm/store/socket.h"
#include "core/clock.h"
#include "launch/ranks/rank_process.h"

namespace megalith::cli::testing {

// Started as torchrun would, by nobody who ends the others when one is gone.
class Ranks {
 public:
  Ranks(int count, const std::string& arguments) {
    std::istringstream words(arguments);
    for (std::string word; words >> word;) command_.push_back(word);
    const int port = comm::listen_on("127.0.0.1", 0).local_port();
    for (int rank = 0; rank < count; ++rank) {
      outputs_.push_back(std::tmpfile());
      ranks_.emplace_back(launch::RankProcess::Options{
          .rank = rank,
          .command = &command_,
          .environment = {"RANK=" + std::to_string(rank), "LOCAL_RANK=" + std::to_string(rank),
                          "WORLD_SIZE=" + std::to_string(count), "MASTER_ADDR=127.0.0.1",
                          "MASTER_PORT=" + std::to_string(port)},
          .output = outputs_.back(),
          .errors = outputs_.back()});
    }
  }
  ~Ranks() {
    for (launch::RankProcess& rank : ranks_) rank.send(SIGKILL);
    wait_for([&] { return all_ended_but(-1); }, 10.0);
    for (std::FILE* output : outputs_) std::fclose(output);
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  void send(int rank, int signal) { at(rank).send(signal); }
  int exit_code(int rank) { return at(rank).ending()->exit_code; }
  // Until rank 0, which speaks for all, has said so.
  bool wait_until_told(const std::string& text) {
    return wait_for([&] { return text_of(0).find(text) != std::string::npos; }, 60.0);
  }
  bool wait_for_all_but(int rank, double seconds) {
    return wait_for([&] { return all_ended_but(rank); }, seconds);
  }

  std::string text_of(int rank) {
    std::FILE* output = outputs_[static_cast<size_t>(rank)];
    std::string text;
    std::rewind(output);
    char chunk[4096];
    for (size_t count = 0; (count = std::fread(chunk, 1, sizeof chunk, output)) > 0;) text.append(chunk, count);
    std::fseek(output, 0, SEEK_END);
    return text;
  }

 private:
  launch::RankProcess& at(int rank) { return *std::next(ranks_.begin(), rank); }

  bool all_ended_but(int who) {
    for (launch::RankProcess& rank : ranks_) {
      if (rank.rank() != who && rank.running()) return false;
    }
    return true;
  }

  template <class Condition>
  bool wait_for(Condition condition, double seconds) {
    const double until = monotonic_seconds() + seconds;
    while (!condition()) {
      if (monotonic_seconds() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      for (launch::RankProcess& rank : ranks_) {
        rank.reap();
        rank.output().pump();
        rank.errors().pump();
      }
    }
    return true;
  }

  std::vector<std::string> command_ = {MEGALITH_PROGRAM};
  std::vector<std::FILE*> outputs_;
  std::list<launch::RankProcess> ranks_;
};

}  // namespace megalith::cli::testing
