#include "data/indexed_dataset_writer.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "core/failpoint.h"

namespace megalith::data {

static_assert(std::endian::native == std::endian::little, "the files are little-endian and written as they are");

namespace {
constexpr size_t kBufferBytes = size_t{1} << 20;

bool is_named(const File& file, const std::string& path) {
  struct stat here {};
  struct stat there {};
  return ::fstat(file.descriptor(), &here) == 0 && ::stat(path.c_str(), &there) == 0 && here.st_ino == there.st_ino &&
         here.st_dev == there.st_dev;
}

// A fresh `.part` file. One that a killed writer left behind is emptied; one that a living writer holds is refused,
// since two writers would give each other's half-made file its final name.
File open_part(const std::string& path) {
  File file = File::open_for_appending(path);
  const bool locked = ::flock(file.descriptor(), LOCK_EX | LOCK_NB) == 0;
  const bool no_locks_here = !locked && errno != EWOULDBLOCK;  // some file systems have none
  if (!(locked || no_locks_here) || !is_named(file, path)) user_error("{} is being written by another process", path);
  if (::ftruncate(file.descriptor(), 0) != 0) io_error_errno(fmt::format("cannot empty {}", path));
  return file;
}

template <class T>
void append(std::vector<std::byte>& bytes, const T& value) {
  const auto* raw = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof(T));
}

void rename_or_throw(const std::string& from, const std::string& to) {
  pass_failpoint("file.rename");
  if (::rename(from.c_str(), to.c_str()) != 0) io_error_errno(fmt::format("cannot rename {} to {}", from, to));
}
}  // namespace

IndexedDatasetWriter::IndexedDatasetWriter(std::string prefix, int64_t vocab_size)
    : prefix_(std::move(prefix)), vocab_size_(vocab_size), type_(token_type_for_vocab(vocab_size)) {
  tokens_file_.emplace(open_part(prefix_ + ".bin.part"));
  buffer_.reserve(kBufferBytes + sizeof(int32_t));
}

IndexedDatasetWriter::~IndexedDatasetWriter() {
  if (finished_) return;
  ::unlink((prefix_ + (tokens_named_ ? ".bin" : ".bin.part")).c_str());
  if (index_file_) ::unlink((prefix_ + ".idx.part").c_str());
}

void IndexedDatasetWriter::add_document(std::span<const int32_t> tokens) {
  MEGALITH_CHECK(!finished_, "a document was added to {} after its end", prefix_);
  if (std::ssize(tokens) > std::numeric_limits<int32_t>::max()) {
    data_error("a document of {} tokens is too long: the format counts a sequence in 32 bits", tokens.size());
  }
  for (const int32_t token : tokens) {
    MEGALITH_CHECK(token >= 0 && token < vocab_size_, "token id {} outside of the vocabulary of {}", token,
                   vocab_size_);
    if (type_ == TokenType::uint16) {
      append(buffer_, static_cast<uint16_t>(token));
    } else {
      append(buffer_, token);
    }
    if (buffer_.size() >= kBufferBytes) flush();
  }
  if (!tokens.empty()) lengths_.push_back(static_cast<int32_t>(tokens.size()));
  document_begins_.push_back(std::ssize(lengths_));
  tokens_ += std::ssize(tokens);
}

void IndexedDatasetWriter::flush() {
  tokens_file_->write(buffer_);
  buffer_.clear();
}

void IndexedDatasetWriter::write_index() {
  index_file_.emplace(open_part(prefix_ + ".idx.part"));
  std::vector<std::byte> header;
  for (const char c : std::string_view("MMIDIDX\0\0", 9)) append(header, c);
  append(header, uint64_t{1});
  append(header, megatron_code(type_));
  append(header, static_cast<uint64_t>(lengths_.size()));
  append(header, static_cast<uint64_t>(document_begins_.size()));
  index_file_->write(header);
  index_file_->write(std::as_bytes(std::span(lengths_)));
  std::vector<int64_t> pointers;
  pointers.reserve(lengths_.size());
  int64_t at = 0;
  for (const int32_t length : lengths_) {
    pointers.push_back(at);
    at += length * size_of(type_);
  }
  index_file_->write(std::as_bytes(std::span(pointers)));
  index_file_->write(std::as_bytes(std::span(document_begins_)));
  index_file_->sync();
}

void IndexedDatasetWriter::finish() {
  MEGALITH_CHECK(!finished_, "{} was finished twice", prefix_);
  flush();
  tokens_file_->sync();
  write_index();
  // An old index must not meet the new tokens: it goes first, and the new one comes last.
  ::unlink((prefix_ + ".idx").c_str());
  rename_or_throw(prefix_ + ".bin.part", prefix_ + ".bin");
  tokens_named_ = true;
  rename_or_throw(prefix_ + ".idx.part", prefix_ + ".idx");
  finished_ = true;
  sync_directory(std::filesystem::path(prefix_).parent_path());
}

}  // namespace megalith::data
