#include "server/service/kept_listener.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"

namespace fusiond::server {
namespace {

constexpr absl::Duration kBetweenRefusals = absl::Seconds(10);

}  // namespace

void KeptListener::Keep(absl::FunctionRef<void(int fd)> unwatch,
                        absl::FunctionRef<absl::Status(int fd)> watch) {
  std::string problem;
  if (!listener_.InPlace()) {
    const int before = listener_.fd();
    unwatch(before);
    absl::Status made = listener_.Rebind();
    if (absl::Status watched = watch(listener_.fd()); made.ok()) made = watched;
    if (made.ok()) {
      log_("warning", absl::StrCat(listener_.path(), " was removed; it is there again"));
    } else {
      problem =
          absl::StrCat(listener_.path(), " was removed, and nobody can connect: ", made.message());
    }
  }
  bool begins, ends;
  {
    base::MutexLock lock(&mutex_);
    begins = problem_.empty() && !problem.empty();
    ends = !problem_.empty() && problem.empty();
    problem_ = problem;
  }
  if (begins) log_("error", problem);
  if (ends) log_("info", absl::StrCat(listener_.path(), " leads here again"));
}

void KeptListener::TellRefusal(const absl::Status& why) {
  const absl::Duration now = base::Clock::System().Now();
  if (now < next_told_) return;
  next_told_ = now + kBetweenRefusals;
  log_("warning",
       absl::StrCat("a connection to ", listener_.path(), " is closed: ", why.message()));
}

std::string KeptListener::problem() const {
  base::MutexLock lock(&mutex_);
  return problem_;
}

}  // namespace fusiond::server
