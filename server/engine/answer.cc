#include "server/engine/answer.h"

#include "runtime/executable/binding.h"
#include "runtime/executable/serialise.h"

namespace fusiond::server {
namespace {

// The first variant whose guards hold and whose executable is there.
std::optional<CompileAnswer> Choose(cache::Cache& cache, const cache::RequestLookup& lookup,
                                    const PreparedRequest& request) {
  for (const cache::Variant& variant : lookup.entry.variants) {
    absl::StatusOr<std::vector<executable::Guard>> guards =
        executable::DeserialiseGuards(variant.guards);
    if (!guards.ok() || !executable::CheckInputGuards(*guards, request.arguments).ok()) continue;
    auto bytes = cache.FindExecutable(variant.executable);
    if (!bytes) continue;
    CompileAnswer answer;
    answer.key = lookup.key;
    answer.executable = variant.executable;
    answer.revision = lookup.entry.revision;
    // The slower of the two look-ups is what the caller has waited for.
    answer.source = lookup.tier == cache::Tier::kDisk ? AnswerSource::kDisk : SourceOf(bytes->tier);
    answer.bytes = bytes->value;
    return answer;
  }
  return std::nullopt;
}

}  // namespace

std::optional<absl::StatusOr<CompileAnswer>> FindAnswer(cache::Cache& cache,
                                                        const PreparedRequest& request) {
  const cache::RequestLookup lookup = cache.Lookup(request.encoded);
  if (lookup.state == cache::LookupState::kNegative)
    return absl::StatusOr<CompileAnswer>(lookup.failure);
  if (lookup.state != cache::LookupState::kHit) return std::nullopt;
  std::optional<CompileAnswer> answer = Choose(cache, lookup, request);
  if (!answer) return std::nullopt;
  return absl::StatusOr<CompileAnswer>(*std::move(answer));
}

std::optional<CompileAnswer> PeekAnswer(cache::Cache& cache, const PreparedRequest& request) {
  const cache::RequestLookup lookup = cache.PeekRequest(request.encoded);
  if (lookup.state != cache::LookupState::kHit) return std::nullopt;
  return Choose(cache, lookup, request);
}

}  // namespace fusiond::server
