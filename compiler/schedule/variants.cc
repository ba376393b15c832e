#include "compiler/schedule/variants.h"

namespace fusiond::schedule {
namespace {

constexpr Variant kVariants[] = {
    {SchedulerId::kPointwise, "flat", "one dim; its extent is a multiple of the vector"},
    {SchedulerId::kPointwise, "flat_tail", "one dim; the last vector is cut"},
    {SchedulerId::kPointwise, "vector", "several dims; no vector leaves the innermost one"},
    {SchedulerId::kPointwise, "element",
     "several dims; vectors of dense tensors run over row ends"},
    {SchedulerId::kTranspose, "tile", "tiles fill both dims"},
    {SchedulerId::kTranspose, "tile_masked", "the last tiles are cut"},
    {SchedulerId::kRowPersistent, "part", "several rows a warp; every thread full"},
    {SchedulerId::kRowPersistent, "part_masked",
     "several rows a warp; some vectors lie behind the row"},
    {SchedulerId::kRowPersistent, "part_shifted", "several rows a warp; rows begin inside vectors"},
    {SchedulerId::kRowPersistent, "warp", "a row a warp; every thread full"},
    {SchedulerId::kRowPersistent, "warp_masked", "a row a warp; some vectors lie behind the row"},
    {SchedulerId::kRowPersistent, "warp_shifted", "a row a warp; rows begin inside vectors"},
    {SchedulerId::kRowPersistent, "cta", "a row a CTA; every thread full"},
    {SchedulerId::kRowPersistent, "cta_masked", "a row a CTA; some vectors lie behind the row"},
    {SchedulerId::kRowPersistent, "cta_shifted", "a row a CTA; rows begin inside vectors"},
    {SchedulerId::kRowPersistent, "cluster", "a row a cluster of CTAs; every thread full"},
    {SchedulerId::kRowPersistent, "cluster_masked",
     "a row a cluster of CTAs; some vectors lie behind a CTA's columns"},
    {SchedulerId::kRowPersistent, "cluster_shifted",
     "a row a cluster of CTAs; rows begin inside vectors"},
    {SchedulerId::kRowStream, "cta", "a row a CTA, read in each pass; every thread full"},
    {SchedulerId::kRowStream, "cta_masked", "a row a CTA; some vectors lie behind the row"},
    {SchedulerId::kRowStream, "cta_shifted", "a row a CTA; rows begin inside vectors"},
    {SchedulerId::kRowStream, "split", "a row to several CTAs, a kernel a pass; every thread full"},
    {SchedulerId::kRowStream, "split_masked",
     "a row to several CTAs; some vectors lie behind the row"},
    {SchedulerId::kRowStream, "split_shifted", "a row to several CTAs; rows begin inside vectors"},
    {SchedulerId::kRowColumn, "bulk_warp", "a row a warp; rows come by bulk copies"},
    {SchedulerId::kRowColumn, "bulk_team", "several teams of warps; rows come by bulk copies"},
    {SchedulerId::kRowColumn, "bulk_cta", "a row a CTA; rows come by bulk copies"},
    {SchedulerId::kRowColumn, "bulk_cluster",
     "a row to a cluster of CTAs; rows come by bulk copies"},
    {SchedulerId::kRowColumn, "async_warp", "a row a warp; each thread copies what it reads"},
    {SchedulerId::kRowColumn, "async_team",
     "several teams of warps; each thread copies what it reads"},
    {SchedulerId::kRowColumn, "async_cta", "a row a CTA; each thread copies what it reads"},
    {SchedulerId::kRowColumn, "direct_warp", "a row a warp; rows come straight to registers"},
    {SchedulerId::kRowColumn, "direct_team",
     "several teams of warps; rows come straight to registers"},
    {SchedulerId::kRowColumn, "direct_cta", "a row a CTA; rows come straight to registers"},
    {SchedulerId::kColumn, "whole", "a tile's rows in one CTA; every thread has columns"},
    {SchedulerId::kColumn, "whole_masked",
     "a tile's rows in one CTA; some threads lie behind the columns"},
    {SchedulerId::kColumn, "split", "rows cut, finalise kernel; every thread has columns"},
    {SchedulerId::kColumn, "split_masked",
     "rows cut, finalise kernel; some threads lie behind the columns"},
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

const Variant* FindVariant(const KernelSchedule& schedule) {
  for (const Variant& variant : kVariants) {
    if (variant.scheduler == schedule.scheduler && variant.name == schedule.variant)
      return &variant;
  }
  return nullptr;
}

}  // namespace fusiond::schedule
