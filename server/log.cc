#include "server/log.h"

#include <poll.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <ctime>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/file.h"
#include "runtime/base/mutex.h"
#include "runtime/base/utf8.h"
#include "server/lifecycle/systemd.h"

namespace fusiond::server {
namespace {

// The level as the journal reads it at the start of a line: sd-daemon(3).
class JournalLevel : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    const absl::string_view level = message.level >= spdlog::level::err    ? "<3>"
                                    : message.level == spdlog::level::warn ? "<4>"
                                    : message.level == spdlog::level::info ? "<6>"
                                                                           : "<7>";
    line.append(level.begin(), level.end());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JournalLevel>();
  }
};

// What a pipe that is ready to be written takes without waiting: PIPE_BUF, less the line's head.
constexpr size_t kMaxLine = 3900;

// Standard error. A reader that has stopped reading must not stop the daemon: lines that would wait
// for it are left out, and counted.
class Stderr : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
  void sink_it_(const spdlog::details::log_msg& message) override {
    const base::MutexLock lock(&mutex_);
    pollfd ready = {STDERR_FILENO, POLLOUT, 0};
    if (::poll(&ready, 1, 0) == 0) {
      ++left_out_;
      return;
    }
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string text(line.data(), line.size());
    if (left_out_ > 0)
      absl::StrAppend(&text, left_out_, " lines of log before this were not read\n");
    left_out_ = 0;
    base::WriteAll(STDERR_FILENO, text).IgnoreError();
  }
  void flush_() override {}

  base::Mutex mutex_;
  size_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Lines quote what came from disk, drivers and clients: none of it may begin a line of its own or
// speak to a terminal.
std::string OnOneLine(absl::string_view text) {
  std::string line;
  for (const char c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      line += absl::CEscape(absl::string_view(&c, 1));
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace

void SetUpLog(const std::string& level, const std::string& journal_stream) {
  ::tzset();
  auto logger = std::make_shared<spdlog::logger>("fusiond", std::make_shared<Stderr>());
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<JournalLevel>('*');
  // The journal adds time and process.
  formatter->set_pattern(IsJournal(journal_stream, STDERR_FILENO) ? "%*%v"
                                                                  : "%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger->set_formatter(std::move(formatter));
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(logger);
}

void Log(const std::string& level, const std::string& line) {
  spdlog::log(spdlog::level::from_str(level), "{}", base::ToUtf8(OnOneLine(line), kMaxLine));
}

bool LogsDebug() { return spdlog::should_log(spdlog::level::debug); }

}  // namespace fusiond::server
