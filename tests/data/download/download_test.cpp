#include "data/download/download.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "core/hash/crypto.h"
#include "data/data_testing.h"

namespace megalith::data {
namespace {

std::string sha256(std::string_view text) {
  Sha256 hash;
  hash.add(text);
  return hash.hex();
}

// A server on the loopback interface that answers with exactly the bytes that it is told to.
class Server {
 public:
  struct Request {
    std::string method;
    std::string path;
    std::string text;    // all of it
    int64_t range = -1;  // where the client wants to go on; -1: from the beginning
    int number = 0;      // of the requests for this path, from 0 on
  };
  struct Reply {
    std::string bytes;
    int64_t pause_after = -1;  // bytes, behind which it falls silent for as long as the test runs
  };
  using Handler = std::function<Reply(const Request&)>;

  explicit Server(Handler handler) : handler_(std::move(handler)), socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(socket_, 64) != 0 ||
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("cannot listen");
    }
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/";
    thread_ = std::thread([this] { accept_all(); });
  }
  ~Server() {
    stopping_ = true;
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    for (std::thread& thread : connections_) thread.join();
    ::close(socket_);
  }

  std::string url(const std::string& path) const { return url_ + path; }
  int requests(const std::string& path) {
    const std::lock_guard lock(mutex_);
    return counts_["/" + path];
  }

 private:
  void accept_all() {
    for (int client = ::accept(socket_, nullptr, nullptr); client >= 0; client = ::accept(socket_, nullptr, nullptr)) {
      connections_.emplace_back([this, client] {
        serve(client);
        ::close(client);
      });
    }
  }

  void serve(int client) {
    std::string text;
    char buffer[4096];
    while (text.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = ::recv(client, buffer, sizeof(buffer), 0);
      if (got <= 0) return;
      text.append(buffer, static_cast<size_t>(got));
    }
    Request request;
    request.text = text;
    request.method = text.substr(0, text.find(' '));
    request.path =
        text.substr(request.method.size() + 1, text.find(' ', request.method.size() + 1) - request.method.size() - 1);
    if (const size_t at = text.find("Range: bytes="); at != std::string::npos) {
      request.range = std::stoll(text.substr(at + 13));
    }
    {
      const std::lock_guard lock(mutex_);
      if (request.method == "GET") request.number = counts_[request.path]++;
    }
    const Reply reply = handler_(request);
    std::string_view rest = reply.bytes;
    if (reply.pause_after >= 0) rest = rest.substr(0, static_cast<size_t>(reply.pause_after));
    while (!rest.empty()) {
      const ssize_t sent = ::send(client, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      rest.remove_prefix(static_cast<size_t>(sent));
    }
    while (reply.pause_after >= 0 && !stopping_) {
      if (::recv(client, buffer, sizeof(buffer), MSG_DONTWAIT) == 0) return;  // the client has left
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  Handler handler_;
  int socket_;
  std::string url_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::map<std::string, int> counts_;
  std::vector<std::thread> connections_;
  std::thread thread_;
};

std::string reply(const std::string& status, const std::string& headers, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nConnection: close\r\n" + headers + "\r\n" + body;
}
std::string whole(const std::string& body) {
  return reply("200 OK", "Content-Length: " + std::to_string(body.size()) + "\r\n", body);
}
std::string part(const std::string& body, int64_t begin) {
  const std::string rest = body.substr(static_cast<size_t>(begin));
  return reply("206 Partial Content",
               "Content-Length: " + std::to_string(rest.size()) + "\r\nContent-Range: bytes " + std::to_string(begin) +
                   "-" + std::to_string(body.size() - 1) + "/" + std::to_string(body.size()) + "\r\n",
               rest);
}
// As a good server answers, whatever was asked for.
std::string good(const std::string& body, const Server::Request& request) {
  return request.range < 0 ? whole(body) : part(body, request.range);
}

class Download : public ::testing::Test {
 protected:
  Download() {
    for (int64_t i = 0; i < 300000; ++i) body_ += static_cast<char>('a' + i * i % 23);
  }

  DownloadReport run(const Server& server, const std::vector<std::string>& names, const std::string& hash = "") {
    std::string list;
    for (const std::string& name : names) list += (hash.empty() ? "" : hash + "  ") + server.url(name) + "\n";
    log_.clear();
    return download(parse_download_list(list, "list"),
                    {.directory = directory_.path(),
                     .jobs = 4,
                     .attempts = 4,
                     .first_wait = 0.001,
                     .longest_wait = 0.01,
                     .stall_seconds = 0.5,
                     .log = [this](const std::string& text) { log_ += text + "\n"; }});
  }
  // One file, from a server that behaves as told, arrives whole in the end.
  void expect_arrives(const Server::Handler& handler, int requests, const std::string& said) {
    Server server(handler);
    const DownloadReport report = run(server, {"file"}, sha256(body_));
    ASSERT_TRUE(report.failures.empty()) << report.failures[0].reason;
    EXPECT_EQ(report.fetched, 1);
    EXPECT_TRUE(read_bytes(directory_ / "file") == body_);
    EXPECT_EQ(directory_.files(), 1);
    EXPECT_EQ(server.requests("file"), requests) << log_;
    EXPECT_NE(log_.find(said), std::string::npos) << log_;
  }
  void expect_fails(const Server::Handler& handler, int requests, const std::string& reason,
                    const std::string& hash = "") {
    Server server(handler);
    const DownloadReport report = run(server, {"file"}, hash);
    ASSERT_EQ(report.failures.size(), 1u);
    EXPECT_EQ(report.failures[0].url, server.url("file"));
    EXPECT_NE(report.failures[0].reason.find(reason), std::string::npos) << report.failures[0].reason;
    EXPECT_EQ(server.requests("file"), requests);
    EXPECT_FALSE(std::filesystem::exists(directory_ / "file"));
  }

  TempDir directory_;
  std::string body_;
  std::string log_;
};

TEST_F(Download, FetchesManyAndSkipsWhatIsThere) {
  Server server([this](const auto& request) { return Server::Reply{good(body_ + request.path, request)}; });
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back("file" + std::to_string(i) + "?key=1");
  DownloadReport report = run(server, names);
  EXPECT_EQ(report.fetched, 20);
  EXPECT_GT(report.bytes, 20 * 300000);
  EXPECT_TRUE(read_bytes(directory_ / "file7") == body_ + "/file7?key=1");
  report = run(server, names);
  EXPECT_EQ(report.skipped, 20);
  EXPECT_EQ(report.bytes, 0);
  EXPECT_EQ(server.requests("file7?key=1"), 1);
}

TEST_F(Download, GoesOnAfterTruncatedBodies) {
  expect_arrives(
      [this](const auto& request) {
        const std::string bytes = good(body_, request);
        return Server::Reply{request.number < 5 ? bytes.substr(0, 50000) : bytes};
      },
      6, "after");
}

TEST_F(Download, GoesOnWhereAnEarlierRunStopped) {
  write_bytes(directory_ / "file.part", body_.substr(0, 100000));
  int64_t begin = -1;
  expect_arrives(
      [&](const auto& request) {
        begin = request.range;
        return Server::Reply{good(body_, request)};
      },
      1, "");
  EXPECT_EQ(begin, 100000);
}

TEST_F(Download, FinishesWhatWasWholeButNotRenamed) {
  write_bytes(directory_ / "file.part", body_);
  expect_arrives(
      [this](const auto&) {
        return Server::Reply{
            reply("416 Range Not Satisfiable",
                  "Content-Length: 0\r\nContent-Range: bytes */" + std::to_string(body_.size()) + "\r\n", "")};
      },
      1, "");
}

TEST_F(Download, WaitsWhenToldToAndAfterErrors) {
  expect_arrives(
      [this](const auto& request) {
        if (request.number == 0) {
          return Server::Reply{reply("429 Too Many Requests", "Retry-After: 0\r\nContent-Length: 4\r\n", "wait")};
        }
        if (request.number == 1) return Server::Reply{reply("500 Oops", "Content-Length: 3\r\n", "bad")};
        if (request.number == 2) return Server::Reply{reply("503 Later", "Content-Length: 0\r\n", "")};
        return Server::Reply{good(body_, request)};
      },
      4, "answered 429; again in 0 s");
}

TEST_F(Download, StartsOverWhereRangesAreIgnoredOrWrong) {
  write_bytes(directory_ / "file.part", std::string(1000, 'x'));
  expect_arrives([this](const auto&) { return Server::Reply{whole(body_)}; }, 1, "");
  std::filesystem::remove(directory_ / "file");
  write_bytes(directory_ / "file.part", body_.substr(0, 1000));
  expect_arrives(
      [this](const auto& request) {
        return Server::Reply{request.range > 0 ? part(body_, request.range + 7) : whole(body_)};
      },
      2, "another part");
  std::filesystem::remove(directory_ / "file");
  write_bytes(directory_ / "file.part", body_ + "more");
  expect_arrives(
      [this](const auto& request) {
        if (request.range < 0) return Server::Reply{whole(body_)};
        return Server::Reply{reply("416 No", "Content-Range: bytes */300000\r\nContent-Length: 0\r\n", "")};
      },
      2, "longer than the file");
}

TEST_F(Download, LeavesASilentConnection) {
  expect_arrives(
      [this](const auto& request) {
        return Server::Reply{good(body_, request), request.number == 0 ? 100000 : -1};
      },
      2, "no byte came");
}

TEST_F(Download, FetchesAgainWhatHasAnotherHash) {
  write_bytes(directory_ / "file", "old");
  write_bytes(directory_ / "file.part", std::string(1000, 'x'));
  expect_arrives([this](const auto& request) { return Server::Reply{good(body_, request)}; }, 2, "SHA-256");
}

TEST_F(Download, SaysWhatCouldNotBeFetched) {
  expect_fails([](const auto&) { return Server::Reply{reply("404 Not Found", "Content-Length: 2\r\n", "no")}; }, 1,
               "answered 404");
  expect_fails([](const auto&) { return Server::Reply{reply("502 Bad", "Content-Length: 0\r\n", "")}; }, 4,
               "answered 502");
  expect_fails([](const auto&) { return Server::Reply{""}; }, 4, "after 0 bytes");
  // A size that is never reached. What is thrown away and fetched again is no progress.
  expect_fails(
      [this](const auto& request) {
        return Server::Reply{request.range < 0 ? whole(body_).substr(0, 1000) : "HTTP/1.1 206 Partial\r\n\r\n"};
      },
      4, "another part");
  EXPECT_EQ(directory_.files(), 0) << "empty .part files stay behind";
  expect_fails([this](const auto& request) { return Server::Reply{good(body_, request)}; }, 2, "twice the same",
               std::string(64, '0'));
  expect_fails(
      [this](const auto& request) { return Server::Reply{whole(body_ + std::string(1, "xyz"[request.number % 3]))}; },
      4, "SHA-256", std::string(64, '0'));
}

TEST_F(Download, FetchesAgainWhatHasAnotherSize) {
  Server server([this](const auto& request) { return Server::Reply{good(body_, request)}; });
  write_bytes(directory_ / "file", body_.substr(1));
  EXPECT_EQ(run(server, {"file"}).fetched, 1);
  EXPECT_NE(log_.find("299999 bytes, and the server has 300000"), std::string::npos) << log_;
  EXPECT_TRUE(read_bytes(directory_ / "file") == body_);
  EXPECT_EQ(run(server, {"file"}).skipped, 1);
  EXPECT_EQ(server.requests("file"), 1);
}

TEST_F(Download, SendsHeaders) {
  Server server([this](const auto& request) {
    const bool known = request.text.find("Authorization: Bearer secret\r\n") != std::string::npos;
    return Server::Reply{known ? whole(body_) : reply("401 Unauthorized", "Content-Length: 0\r\n", "")};
  });
  const auto items = parse_download_list(server.url("file"), "list");
  EXPECT_EQ(download(items, {.directory = directory_.path()}).failures.at(0).reason, "the server answered 401");
  const DownloadReport report =
      download(items, {.directory = directory_.path(), .headers = {"Authorization: Bearer secret"}});
  EXPECT_EQ(report.fetched, 1);
}

TEST(DownloadList, ReadsUrlsAndHashes) {
  const std::string hash(64, 'A');
  const auto items =
      parse_download_list("# a list\n\nhttps://a.b/c/d.zst\r\n" + hash + "  http://x/y?z=/w#f\n", "list");
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].name, "d.zst");
  EXPECT_EQ(items[0].sha256, "");
  EXPECT_EQ(items[1].name, "y");
  EXPECT_EQ(items[1].sha256, std::string(64, 'a'));
  for (const char* bad : {"ftp://a/b", "a b", "file:///etc/passwd", "https://a.b", "https://a.b/", "https://a/..",
                          "abc https://a/b", "https://a/b c"}) {
    expect_error(ErrorKind::user, {"list, line 1"}, [bad] { parse_download_list(bad, "list"); });
  }
  expect_error(ErrorKind::user, {"both become", "file c"},
               [] { parse_download_list("https://a/c\nhttps://b/c\n", "list"); });
}

}  // namespace
}  // namespace megalith::data
