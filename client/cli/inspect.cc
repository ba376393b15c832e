// fusionctl status, devices, cache.
#include <algorithm>
#include <iostream>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/cli/support.h"

namespace fusiond::cli {
namespace {

constexpr size_t kKeyDigits = 64;

// Connects, calls, and prints as JSON or by `print`.
template <typename Call, typename Print>
int Show(const Common& common, Call call, Print print) {
  auto client = Connect(common);
  if (!client.ok()) return Fail(common, client.status());
  auto response = call(**client);
  if (!response.ok()) return Fail(common, response.status());
  if (common.json) {
    PrintJson(*response);
  } else {
    print(*response);
  }
  return kExitOk;
}

void PrintEntry(const v1::CacheListResponse::Entry& entry) {
  std::cout << Hex(entry.key()).substr(0, 16) << "  " << entry.arch() << "/" << entry.profile()
            << "  graph " << Hex(entry.graph_hash()).substr(0, 8) << "  " << entry.signature();
  const std::map<std::string, std::string> options(entry.options().begin(), entry.options().end());
  for (const auto& [name, value] : options) std::cout << "  " << name << "=" << value;
  std::cout << "  " << Bytes(entry.bytes()) << "  " << Counted(entry.requests(), "request") << "\n";
}

// As it is sent: lower case.
absl::StatusOr<std::string> KeyDigits(const std::string& key) {
  std::string digits = absl::AsciiStrToLower(key);
  if (digits.empty())
    return absl::InvalidArgumentError("say which: a key or its first digits, or --all");
  if (digits.size() > kKeyDigits ||
      digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", absl::CHexEscape(key), "' is neither a key nor its first digits: 1 to ", kKeyDigits,
        " hexadecimal digits expected, ", Counted(key.size(), "character"), " given"));
  }
  return digits;
}

}  // namespace

int Status(const Common& common) {
  return Show(
      common, [](client::Client& c) { return c.GetStatus(); },
      [](const v1::StatusResponse& s) {
        std::cout << "state       " << v1::StatusResponse::State_Name(s.state()) << "\n"
                  << "version     " << s.version() << ", compiler "
                  << s.compiler_version().substr(0, 12) << "\n"
                  << "process     " << s.pid() << ", up " << Duration(s.uptime_ns()) << "\n"
                  << "NVRTC       "
                  << (s.nvrtc_version().empty() ? "none" : s.nvrtc_version() + " " + s.nvrtc_path())
                  << "\n"
                  << "compile     " << Counted(s.pool().processes(), "process", "processes") << ", "
                  << s.pool().busy() << " busy, " << s.pool().queued() << " queued; "
                  << Counted(s.pool().jobs(), "job") << ", " << s.pool().crashes() << " crashes, "
                  << s.pool().timeouts() << " timeouts, " << s.pool().out_of_memory()
                  << " out of memory, " << s.pool().forbidden_calls()
                  << " forbidden calls; processes: " << s.pool().retired() << " retired, "
                  << s.pool().cancelled() << " cancelled, " << s.pool().start_failures()
                  << " not started, " << s.pool().ended_idle() << " ended idle\n"
                  << (s.pool().last_end().empty()
                          ? ""
                          : absl::StrCat("last end    ", s.pool().last_end(), "\n"))
                  << "calls       " << s.calls().active() << " active, " << s.calls().ended()
                  << " ended, " << s.calls().failed() << " failed, " << s.calls().refused()
                  << " refused by quota; " << Counted(s.calls().connections(), "connection") << "\n"
                  << "workers     " << s.workers_started() << " started, " << s.workers_lost()
                  << " lost\n"
                  << "fallbacks   " << s.fallbacks() << "\n"
                  << "leases      " << s.leases() << "\n";
        if (s.cache_dropped_bytes() > 0)
          std::cout << "cache lost  " << Bytes(s.cache_dropped_bytes()) << " of a damaged log\n";
        for (const v1::StatusResponse::Worker& w : s.workers()) {
          std::cout << "worker      " << w.device() << " for " << w.identity() << ", process "
                    << w.pid() << "\n";
        }
        for (const v1::StatusResponse::EndedWorker& w : s.ended_workers()) {
          std::cout << "ended       " << w.device() << " for " << w.identity() << ", process "
                    << w.pid() << ", " << Duration(w.ago_ns()) << " ago: " << w.how() << "\n";
        }
        for (const std::string& degraded : s.degraded())
          std::cout << "degraded    " << degraded << "\n";
      });
}

int Devices(const Common& common) {
  return Show(
      common, [](client::Client& c) { return c.Devices(); },
      [](const v1::DevicesResponse& r) {
        for (const v1::DevicesResponse::Device& d : r.devices()) {
          std::cout << d.uuid() << "  " << d.name() << "  " << d.arch() << ", profile "
                    << d.profile()
                    << (d.default_profile()
                            ? " (the arch's default: this card has no profile of its own)"
                            : "");
          if (d.sm_count() > 1) std::cout << ", " << d.sm_count() << " SMs";
          if (d.memory_bytes() > 0)
            std::cout << ", " << Bytes(static_cast<uint64_t>(d.memory_bytes()));
          if (!d.problem().empty()) std::cout << "  NOT USABLE: " << d.problem();
          std::cout << "\n";
        }
        if (!r.problem().empty()) std::cout << "no GPU: " << r.problem() << "\n";
      });
}

int CacheStats(const Common& common) {
  return Show(
      common, [](client::Client& c) { return c.CacheStats(); },
      [](const v1::CacheStatsResponse& s) {
        std::cout << "path        " << s.path() << "\n"
                  << "entries     " << s.entries() << "; " << Bytes(s.memory_bytes())
                  << " in memory, " << Bytes(s.disk_bytes()) << " on disk\n"
                  << "hits        " << s.hits_memory() << " memory, " << s.hits_disk() << " disk, "
                  << s.hits_remote() << " remote; " << s.hits_canonical() << " by canonical form, "
                  << s.hits_image() << " images\n"
                  << "memo        " << s.hits_memo() << " requests known byte for byte; "
                  << s.memo_entries() << " kept, " << Bytes(s.memo_bytes()) << "\n"
                  << "misses      " << s.misses() << "; " << s.negative_hits()
                  << " answered from a kept failure\n"
                  << "commits     " << s.commits() << ", write errors " << s.write_errors()
                  << ", bad records " << s.bad_records() << "\n";
        if (!s.degraded().empty()) std::cout << "degraded    " << s.degraded() << "\n";
      });
}

int CacheList(const Common& common, uint32_t limit) {
  auto client = Connect(common);
  if (!client.ok()) return Fail(common, client.status());
  v1::CacheListRequest request;
  uint32_t listed = 0;
  bool more = false;  // pages
  do {
    // People are told whether there is an entry behind the last one.
    const uint32_t wanted = limit - listed + (common.json ? 0 : 1);
    request.set_page_size(std::min<uint32_t>(wanted, 1000));
    absl::StatusOr<v1::CacheListResponse> page = (*client)->CacheList(request);
    if (!page.ok()) return Fail(common, page.status());
    if (common.json) PrintJson(*page);
    for (const v1::CacheListResponse::Entry& entry : page->entries()) {
      if (!common.json && listed < limit) PrintEntry(entry);
      ++listed;
    }
    more = !page->next_page_token().empty();
    request.set_page_token(page->next_page_token());
  } while (more && (common.json ? listed < limit : listed <= limit));
  if (common.json) return kExitOk;
  if (listed == 0) std::cout << "no entries\n";
  if (listed > limit) std::cout << "and more; --limit says how many to list\n";
  return kExitOk;
}

int CacheEvict(const Common& common, const std::string& key, bool all) {
  v1::CacheEvictRequest request;
  if (all) {
    request.set_all(true);
  } else {
    const absl::StatusOr<std::string> digits = KeyDigits(key);
    if (!digits.ok()) return Fail(common, WrongUsage(digits.status()));
    request.set_key_prefix(*digits);
  }
  bool kept = false;
  const int code = Show(
      common,
      [&](client::Client& c) {
        absl::StatusOr<v1::CacheEvictResponse> response = c.CacheEvict(request);
        kept = response.ok() && response->pinned() > 0;
        return response;
      },
      [](const v1::CacheEvictResponse& r) {
        std::cout << r.evicted() << " evicted, " << r.pinned() << " kept because leased\n";
      });
  // --all means what is not leased.
  return code == kExitOk && kept && !all ? kExitFailed : code;
}

}  // namespace fusiond::cli
