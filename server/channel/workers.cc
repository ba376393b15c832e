#include "server/channel/workers.h"

#include <signal.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/memfd.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"
#include "runtime/channel/socket.h"
#include "runtime/worker/executable_source.h"

namespace fusiond::server {
namespace {

// A worker that ends sooner than this after its start counts as a quick failure.
constexpr absl::Duration kQuick = absl::Seconds(30);
// Answered in one turn of the loop; a worker that asks for more waits for the next.
constexpr int kFetchesPerTurn = 16;
constexpr size_t kMaxEnds = 64;         // remembered
constexpr size_t kMaxLastWords = 300;   // bytes, of what a worker says of its own end
constexpr size_t kMaxVmstat = 1 << 16;  // bytes of /proc/vmstat

absl::Duration Now() { return base::Clock::System().Now(); }

// How many processes the kernel has killed for want of memory, in all cgroups; 0 where it does not
// say.
uint64_t OomKills() {
  const absl::StatusOr<std::string> vmstat = base::ReadFile("/proc/vmstat", kMaxVmstat);
  uint64_t kills = 0;
  if (!vmstat.ok()) return 0;
  for (absl::string_view line : absl::StrSplit(*vmstat, '\n')) {
    if (absl::ConsumePrefix(&line, "oom_kill ") && absl::SimpleAtoi(line, &kills)) return kills;
  }
  return 0;
}

// What the worker sent before it ended. It may have been taken over by a client: one line of whole
// characters.
std::string LastWords(const ChildProcess& child) {
  const absl::StatusOr<channel::ReceivedMessage> said =
      channel::ReceiveMessage(child.socket(), absl::ZeroDuration());
  if (!said.ok()) return "";
  std::string words = base::ToUtf8({said->bytes, said->size}, kMaxLastWords);
  for (char& c : words) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  return words;
}

}  // namespace

Workers::Workers(WorkerOptions options, cache::Cache* cache, const Grants* grants, Watch watch,
                 Unwatch unwatch)
    : options_(std::move(options)),
      cache_(cache),
      grants_(grants),
      watch_(std::move(watch)),
      unwatch_(std::move(unwatch)) {}

void Workers::KillAll() {
  // All at once, so that waiting for one is waiting for all.
  for (auto& [number, worker] : workers_) worker->child->Kill();
  workers_.clear();
  Publish();
}

absl::Status Workers::Adopt(const std::string& device, const Identity& identity,
                            channel::SupervisorConnection& connection) {
  FUSIOND_ASSIGN_OR_RETURN(Worker * worker, FindOrStart(device, identity));
  if (channel::HasHungUp(worker->child->socket())) {
    // It is about to end, which will be seen. This client gets another one.
    Retire(*worker);
    FUSIOND_ASSIGN_OR_RETURN(worker, FindOrStart(device, identity));
  }
  absl::Status passed = std::move(connection).PassTo(worker->child->socket(), absl::ZeroDuration());
  if (absl::IsDeadlineExceeded(passed)) {
    return absl::UnavailableError(absl::StrCat("the worker of ", device, ", process ",
                                               worker->child->pid(), ", takes no connections now"));
  }
  return passed;
}

Workers::Worker* Workers::Find(const std::string& device, const std::string& identity) {
  for (auto& [number, worker] : workers_) {
    if (!worker->ending && worker->device == device && worker->identity.Name() == identity)
      return worker.get();
  }
  return nullptr;
}

absl::StatusOr<Workers::Worker*> Workers::FindOrStart(const std::string& device,
                                                      const Identity& identity) {
  if (Worker* worker = Find(device, identity.Name())) return worker;
  const auto pause = pauses_.find({device, identity.Name()});
  if (pause != pauses_.end() && Now() < pause->second.until) {
    return absl::UnavailableError(absl::StrCat("the worker of ", device,
                                               " ended too soon after its start; next try in ",
                                               absl::FormatDuration(pause->second.until - Now())));
  }
  FUSIOND_ASSIGN_OR_RETURN(std::unique_ptr<Worker> started, Start(device, identity));
  const uint64_t number = next_number_++;
  FUSIOND_RETURN_IF_ERROR(watch_(started->fetch.get(), Event::kFetch, number));
  FUSIOND_RETURN_IF_ERROR(watch_(started->child->pidfd(), Event::kEnd, number));
  Worker* worker = started.get();
  workers_[number] = std::move(started);
  {
    base::MutexLock lock(&mutex_);
    ++counts_.started;
  }
  Publish();
  return worker;
}

absl::StatusOr<std::unique_ptr<Workers::Worker>> Workers::Start(const std::string& device,
                                                                const Identity& identity) {
  auto worker = std::make_unique<Worker>();
  worker->device = device;
  worker->identity = identity;
  worker->started = Now();
  worker->oom_kills = OomKills();
  SpawnOptions spawn;
  spawn.arguments = {"--role=worker", absl::StrCat("--device=", device)};
  if (!options_.driver_path.empty())
    spawn.arguments.push_back(absl::StrCat("--driver=", options_.driver_path));
  spawn.arguments.insert(spawn.arguments.end(), options_.arguments.begin(),
                         options_.arguments.end());
  spawn.environment = options_.environment;
  spawn.socket_type = SOCK_SEQPACKET;
  FUSIOND_ASSIGN_OR_RETURN(worker->child, ChildProcess::Spawn(spawn));
  // The second socket travels over the first: the worker's first message.
  FUSIOND_ASSIGN_OR_RETURN(auto fetch, channel::SocketPair());
  worker->fetch = std::move(fetch.first);
  const int theirs = fetch.second.get();
  FUSIOND_RETURN_IF_ERROR(
      channel::SendMessage(worker->child->socket(), "fetch", {&theirs, 1}, absl::ZeroDuration()));
  options_.log("info", absl::StrCat("worker started: device=", device,
                                    " identity=", identity.Name(), " pid=", worker->child->pid()));
  return worker;
}

void Workers::OnEvent(Event event, uint64_t number) {
  const auto found = workers_.find(number);
  if (found == workers_.end()) return;
  if (event == Event::kEnd) return OnEnded(number);
  AnswerFetches(*found->second);
}

void Workers::AnswerFetches(Worker& worker) {
  const int socket = worker.fetch.get();
  for (int i = 0; i < kFetchesPerTurn; ++i) {
    absl::StatusOr<worker::FetchRequest> request = worker::ReceiveFetchRequest(socket);
    if (absl::IsDeadlineExceeded(request.status())) return;
    if (absl::IsUnavailable(request.status())) return Retire(worker);
    if (!request.ok()) return Kill(worker, request.status().message());
    base::Digest digest;
    std::copy(std::begin(request->digest), std::end(request->digest), digest.bytes.begin());
    auto bytes =
        grants_->Allow(worker.identity, digest) ? cache_->FindExecutable(digest) : std::nullopt;
    absl::StatusOr<base::UniqueFd> memfd =
        bytes ? base::CreateImmutable("fusiond-executable", *bytes->value)
              : absl::NotFoundError(absl::StrCat("no executable ", digest.Hex()));
    const absl::Status sent =
        memfd.ok() ? worker::SendFetchReply(socket, request->id, memfd->get(), bytes->value->size())
                   : worker::SendFetchError(socket, request->id, memfd.status());
    // It would wait for this answer for ever.
    if (!sent.ok()) return Kill(worker, "it did not take an executable that it asked for");
  }
}

void Workers::Retire(Worker& worker) {
  if (std::exchange(worker.ending, true)) return;
  unwatch_(worker.fetch.get());
}

void Workers::Kill(Worker& worker, absl::string_view why) {
  Retire(worker);
  worker.killed_for = std::string(why);
  worker.child->Kill();
}

std::string Workers::DescribeEnd(const Worker& worker, const std::optional<ExitStatus>& exit) {
  if (!exit.has_value()) return "ended, nobody knows how";
  if (!worker.killed_for.empty()) return absl::StrCat("killed by the daemon: ", worker.killed_for);
  std::string how = exit->ToString();
  if (exit->signal == 0 && exit->exit_code == 0) absl::StrAppend(&how, ", idle or drained");
  if (exit->signal == SIGKILL) absl::StrAppend(&how, ", not by the daemon");
  if (exit->signal == SIGKILL && OomKills() > worker.oom_kills) {
    absl::StrAppend(&how, "; since its start the kernel has killed for want of memory");
  }
  const std::string words = LastWords(*worker.child);
  if (!words.empty()) absl::StrAppend(&how, ": ", words);
  return how;
}

void Workers::OnEnded(uint64_t number) {
  const std::unique_ptr<Worker> worker = std::move(workers_[number]);
  workers_.erase(number);
  const std::optional<ExitStatus> exit = worker->child->Reap();
  const bool clean = exit.has_value() && exit->signal == 0 && exit->exit_code == 0;
  End end{{worker->device, worker->identity.Name(), worker->child->pid()},
          DescribeEnd(*worker, exit),
          Now()};
  options_.log(clean ? "info" : "warning", absl::StrCat("worker ended: device=", end.worker.device,
                                                        " identity=", end.worker.identity,
                                                        " pid=", end.worker.pid, " ", end.how));
  NoteEnd(*worker, clean);
  {
    base::MutexLock lock(&mutex_);
    counts_.lost += clean ? 0 : 1;
    ends_.push_back(std::move(end));
    if (ends_.size() > kMaxEnds) ends_.pop_front();
  }
  Publish();
}

void Workers::NoteEnd(const Worker& worker, bool clean) {
  const absl::Duration now = Now();
  absl::erase_if(pauses_, [&](const auto& entry) {
    return entry.second.until + options_.restart_pause_limit + kQuick < now;
  });
  const Key key{worker.device, worker.identity.Name()};
  if (clean || now - worker.started > kQuick) {
    pauses_.erase(key);
    return;
  }
  Pause& pause = pauses_[key];
  pause.length = pause.length == absl::ZeroDuration()
                     ? options_.restart_pause
                     : std::min(2 * pause.length, options_.restart_pause_limit);
  pause.until = now + pause.length;
}

void Workers::Terminate() {
  for (auto& [number, worker] : workers_) ::kill(worker->child->pid(), SIGTERM);
}

void Workers::Publish() {
  std::vector<Info> list;
  for (const auto& [number, worker] : workers_) {
    list.push_back({worker->device, worker->identity.Name(), worker->child->pid()});
  }
  base::MutexLock lock(&mutex_);
  list_ = std::move(list);
  changed_.SignalAll();
}

std::vector<Workers::Info> Workers::List() const {
  base::MutexLock lock(&mutex_);
  return list_;
}

std::deque<Workers::End> Workers::Ends() const {
  base::MutexLock lock(&mutex_);
  return ends_;
}

absl::StatusOr<std::string> Workers::HowEnded(const Identity& identity, int64_t pid) const {
  const auto is_it = [&, name = identity.Name()](const Info& worker) {
    return worker.identity == name && worker.pid == pid;
  };
  base::MutexLock lock(&mutex_);
  if (std::any_of(list_.begin(), list_.end(), is_it)) return absl::UnavailableError("it runs");
  const auto found =
      std::find_if(ends_.rbegin(), ends_.rend(), [&](const End& end) { return is_it(end.worker); });
  if (found != ends_.rend()) return found->how;
  return absl::NotFoundError(absl::StrCat("no worker with process id ", pid, " is remembered"));
}

Workers::Counts Workers::counts() const {
  base::MutexLock lock(&mutex_);
  return counts_;
}

bool Workers::WaitUntilNone(absl::Duration timeout) const {
  const absl::Duration deadline = Now() + timeout;
  base::MutexLock lock(&mutex_);
  while (!list_.empty()) {
    const absl::Duration left = deadline - Now();
    if (left <= absl::ZeroDuration()) return false;
    changed_.WaitWithTimeout(&mutex_, left);
  }
  return true;
}

}  // namespace fusiond::server
