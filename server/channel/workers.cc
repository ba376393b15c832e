#include "server/channel/workers.h"

#include <signal.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/memfd.h"
#include "runtime/base/status_macros.h"
#include "runtime/channel/socket.h"
#include "runtime/worker/executable_source.h"

namespace fusiond::server {
namespace {

// A worker that ends sooner than this after its start counts as a quick failure.
constexpr absl::Duration kQuick = absl::Seconds(30);
// Answered in one turn of the loop; a worker that asks for more waits for the next.
constexpr int kFetchesPerTurn = 16;

absl::Duration Now() { return base::Clock::System().Now(); }

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
    if (!request.ok()) return Kill(worker);  // talks nonsense
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
    if (!sent.ok()) return Kill(worker);  // it would wait for this answer for ever
  }
}

void Workers::Retire(Worker& worker) {
  if (std::exchange(worker.ending, true)) return;
  unwatch_(worker.fetch.get());
}

void Workers::Kill(Worker& worker) {
  Retire(worker);
  worker.child->Kill();
}

void Workers::OnEnded(uint64_t number) {
  const std::unique_ptr<Worker> worker = std::move(workers_[number]);
  workers_.erase(number);
  const std::optional<ExitStatus> exit = worker->child->Reap();
  const bool clean = exit.has_value() && exit->signal == 0 && exit->exit_code == 0;
  options_.log(
      clean ? "info" : "warning",
      absl::StrCat("worker ended: device=", worker->device, " identity=", worker->identity.Name(),
                   " pid=", worker->child->pid(), " ", exit.has_value() ? exit->ToString() : "?"));
  NoteEnd(*worker, clean);
  if (!clean) {
    base::MutexLock lock(&mutex_);
    ++counts_.lost;
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
