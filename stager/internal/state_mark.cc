#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {
namespace {

std::array<std::atomic<uint64_t>, kMarkCount> hits{};

constexpr std::array<std::string_view, kMarkCount> kNames = {
    "ring full",
    "would block",
    "waited for a slot",
    "compared anew after a wait",
    "several slots freed by one completion",
    "growth",
    "growth under pressure",
    "growth refused by the device",
    "growth ahead",
    "idle slab retired",
    "quarantine",
    "quarantine ended",
    "quarantined slot recorded once more",
    "failed copy guarded",
    "lease dropped",
    "lease outlived its stager",
    "capture refused",
    "skip",
    "skip across streams",
    "trim at the front",
    "trim at the back",
    "trim at both ends",
    "padding differs",
    "stream made to wait",
    "stream had waited before",
    "origin known complete",
    "origin covered by a later record",
    "origin of unknown order",
    "forget while in flight",
    "forgotten by a plain copy",
    "mirror recorded",
    "mirror rebound",
    "step unchanged",
    "step covered equal bytes",
    "step split at unknown bytes",
    "step sent in several spans",
    "step sent span by span",
    "step looked at anew after a wait",
    "step's writes joined",
    "step not sent",
    "step overwritten by a plain copy",
    "batch",
    "batch sent one by one",
    "batch compared anew after a wait",
    "batch skipped",
    "batch not sent",
};

}  // namespace

std::string_view Name(Mark mark) noexcept { return kNames[static_cast<size_t>(mark)]; }

void EnableMarks(bool enabled) noexcept { marks_enabled.store(enabled, std::memory_order_relaxed); }

uint64_t MarkHits(Mark mark) noexcept {
  return hits[static_cast<size_t>(mark)].load(std::memory_order_relaxed);
}

void ResetMarks() noexcept {
  for (auto& hit : hits) hit.store(0, std::memory_order_relaxed);
}

void CountMark(Mark mark) noexcept {
  hits[static_cast<size_t>(mark)].fetch_add(1, std::memory_order_relaxed);
}

}  // namespace h2d::internal
