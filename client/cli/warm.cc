// fusionctl warm: many graphs for many targets.
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/support.h"
#include "runtime/base/utf8.h"

namespace fusiond::cli {
namespace {

void Print(const Common& common, const v1::WarmEvent& event) {
  if (common.json) {
    PrintJson(event);
  } else if (event.has_item()) {
    const v1::WarmEvent::Item& item = event.item();
    std::cout << (item.code() == 0 ? SourceName(item.source()) : "failed") << "\t" << item.target()
              << "\t" << item.name() << "\t" << Duration(item.total_ns());
    if (item.code() != 0) {
      const auto code = static_cast<absl::StatusCode>(item.code());
      std::cout << "\t" << absl::Status(code, item.message()).ToString();
    }
    std::cout << std::endl;
  } else {
    const v1::WarmEvent::Summary& summary = event.summary();
    std::cout << Counted(summary.total(), "item") << ": " << summary.compiled() << " compiled, "
              << summary.cached() << " cached, " << summary.failed() << " failed"
              << (summary.draining() ? "; ended early because the daemon drains, run it again" : "")
              << std::endl;
  }
}

// What the daemon is asked for, and what it is not because it failed here.
class WarmRun {
 public:
  WarmRun(const Common& common, const WarmArguments& arguments)
      : common_(common), arguments_(arguments) {
    request_.mutable_targets()->Assign(arguments.targets.begin(), arguments.targets.end());
  }

  // A graph that cannot be asked for is told at once and stops no other.
  void Add(uint32_t index) {
    const std::string& file = arguments_.files[index];
    absl::StatusOr<LoadedGraph> loaded = LoadGraph(SplitExtents(file, arguments_.extents));
    if (!loaded.ok()) return Refuse(index, loaded.status());
    v1::CompileRequest compile =
        client::Client::MakeRequest(loaded->graph, "", loaded->layouts, arguments_.options);
    v1::WarmItem* item = request_.add_items();
    item->set_name(base::ToUtf8(file));
    item->set_graph(std::move(*compile.mutable_graph()));
    item->mutable_inputs()->Swap(compile.mutable_inputs());
    item->mutable_options()->swap(*compile.mutable_options());
    indices_.push_back(index);
  }

  absl::Status Run(client::Client& client) {
    if (request_.items_size() == 0) {
      v1::WarmEvent event;
      event.mutable_summary();
      Show(std::move(event));
      return absl::OkStatus();
    }
    return client.Warm(request_, [&](const v1::WarmEvent& event) { Show(event); });
  }

  int ExitCode() const { return draining_ ? kExitNoDaemon : failed_ == 0 ? kExitOk : kExitFailed; }

 private:
  void Refuse(uint32_t index, const absl::Status& status) {
    for (const std::string& target : arguments_.targets) {
      v1::WarmEvent event;
      v1::WarmEvent::Item* item = event.mutable_item();
      item->set_item(index);
      item->set_name(base::ToUtf8(arguments_.files[index]));
      item->set_target(target);
      item->set_code(static_cast<int32_t>(status.code()));
      item->set_message(std::string(status.message()));
      Print(common_, event);
      ++failed_;
    }
  }

  // The daemon counts what it was asked for; the user, what stands on the command line.
  void Show(v1::WarmEvent event) {
    if (event.has_item() && event.item().item() < indices_.size())
      event.mutable_item()->set_item(indices_[event.item().item()]);
    if (event.has_summary()) {
      v1::WarmEvent::Summary* summary = event.mutable_summary();
      summary->set_total(summary->total() + failed_);
      summary->set_failed(summary->failed() + failed_);
      failed_ = summary->failed();
      draining_ = summary->draining();
    }
    Print(common_, event);
  }

  const Common& common_;
  const WarmArguments& arguments_;
  v1::WarmRequest request_;
  std::vector<uint32_t> indices_;  // of the items, on the command line
  uint32_t failed_ = 0;
  bool draining_ = false;  // it ended early
};

}  // namespace

int Warm(const Common& common, const WarmArguments& arguments) {
  auto client = Connect(common);
  if (!client.ok()) return Fail(common, client.status());
  WarmRun run(common, arguments);
  for (uint32_t i = 0; i < arguments.files.size(); ++i) run.Add(i);
  const absl::Status status = run.Run(**client);
  if (!status.ok()) return Fail(common, status);
  return run.ExitCode();
}

}  // namespace fusiond::cli
