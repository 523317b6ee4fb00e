#include "comm/processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "comm/store/store.h"

namespace megalith::comm {

namespace {
struct Pipe {
  Pipe() {
    if (::pipe(ends.data()) != 0) io_error_errno("making a pipe");
  }
  std::array<int, 2> ends{};
};

void write_all(int descriptor, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(descriptor, text.data() + done, text.size() - done);
    if (count <= 0) ::_exit(3);
    done += static_cast<size_t>(count);
  }
}

std::string read_all(int descriptor) {
  std::string text;
  char chunk[4096];
  for (ssize_t count = 0; (count = ::read(descriptor, chunk, sizeof chunk)) > 0;) {
    text.append(chunk, static_cast<size_t>(count));
  }
  return text;
}

// What `body` returns or throws, as a child whose text can be read.
struct Child {
  pid_t process = -1;
  int text = -1;
};

Child start(const std::function<std::string()>& body) {
  const Pipe pipe;
  const pid_t process = ::fork();
  if (process == 0) {
    ::close(pipe.ends[0]);
    int code = 0;
    std::string text;
    try {
      text = body();
    } catch (const std::exception& error) {
      code = 1;
      text = error.what();
    }
    write_all(pipe.ends[1], text);
    ::_exit(code);
  }
  ::close(pipe.ends[1]);
  return {process, pipe.ends[0]};
}

Outcome finish(const Child& child) {
  Outcome outcome;
  outcome.text = read_all(child.text);
  ::close(child.text);
  ::waitpid(child.process, &outcome.status, 0);
  return outcome;
}

// The store of a run in a process of its own, so that the parent forks without threads.
class StoreProcess {
 public:
  StoreProcess() {
    const Pipe port;
    process_ = ::fork();
    if (process_ == 0) {
      const StoreServer server({});
      const uint16_t number = server.port();
      write_all(port.ends[1], std::string(reinterpret_cast<const char*>(&number), sizeof number));
      while (true) ::pause();
    }
    if (::read(port.ends[0], &port_, sizeof port_) != sizeof port_) ADD_FAILURE() << "no store";
    ::close(port.ends[0]);
    ::close(port.ends[1]);
  }
  ~StoreProcess() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  uint16_t port() const { return port_; }

 private:
  pid_t process_ = -1;
  uint16_t port_ = 0;
};
}  // namespace

void await_end(pid_t process) {
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOWAIT);
}

std::vector<Outcome> run_processes(const ProcessRun& run) {
  const StoreProcess store;
  std::vector<Child> children;
  for (int rank = 0; rank < run.ranks; ++rank) {
    children.push_back(start([&] {
      StoreClient client({.port = store.port(), .rank = rank});
      const auto world =
          run.join({.rank = rank, .size = run.ranks, .start_deadline = run.start_deadline, .store = &client});
      return run.body(*world);
    }));
  }
  std::vector<pid_t> processes;
  for (const Child& child : children) processes.push_back(child.process);
  if (run.meanwhile) run.meanwhile(processes);
  std::vector<Outcome> outcomes;
  for (const Child& child : children) outcomes.push_back(finish(child));
  return outcomes;
}

}  // namespace megalith::comm
