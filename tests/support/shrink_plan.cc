#include "h2d/tests/support/shrink_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace h2d::testing {
namespace {

class Shrinker {
 public:
  Shrinker(Plan plan, const std::function<bool(const Plan&)>& fails, uint64_t max_runs)
      : plan_(std::move(plan)), fails_(fails), runs_left_(max_runs) {}

  Plan Run() && {
    bool smaller = true;
    while (smaller && runs_left_ > 0) {
      smaller = RemoveOperations();
      smaller = ShrinkBytes() || smaller;
      if (!smaller) smaller = RemoveAPair();
    }
    return std::move(plan_);
  }

 private:
  bool Keep(Plan candidate) {
    if (runs_left_ == 0) return false;
    --runs_left_;
    if (!fails_(candidate)) return false;
    plan_ = std::move(candidate);
    return true;
  }

  // Halves, quarters, ... single operations; from the end, where less depends on them.
  bool RemoveOperations() {
    bool removed = false;
    for (size_t size = std::max<size_t>(plan_.ops.size() / 2, 1); size > 0; size /= 2) {
      for (size_t end = plan_.ops.size(); end > 0;) {
        const size_t begin = end - std::min(size, end);
        Plan without = plan_;
        without.ops.erase(without.ops.begin() + static_cast<std::ptrdiff_t>(begin),
                          without.ops.begin() + static_cast<std::ptrdiff_t>(end));
        removed = Keep(std::move(without)) || removed;
        end = std::min(begin, plan_.ops.size());
      }
    }
    return removed;
  }

  // Two that need each other, such as a hold and its release.
  bool RemoveAPair() {
    for (size_t second = plan_.ops.size(); second-- > 1;) {
      for (size_t first = second; first-- > 0;) {
        Plan without = plan_;
        without.ops.erase(without.ops.begin() + static_cast<std::ptrdiff_t>(second));
        without.ops.erase(without.ops.begin() + static_cast<std::ptrdiff_t>(first));
        if (Keep(std::move(without))) return true;
      }
    }
    return false;
  }

  // The choices first: what fails on a kind device is easier to read.
  bool ShrinkBytes() {
    bool smaller = false;
    for (size_t i = 0; i < plan_.ops.size(); ++i) {
      if (plan_.ops[i].choices == PlanOp().choices) continue;
      Plan kinder = plan_;
      kinder.ops[i].choices = {};
      smaller = Keep(std::move(kinder)) || smaller;
    }
    const size_t bytes = EncodePlan(plan_).size();
    for (size_t at = 0; at < bytes; ++at) smaller = ShrinkByte(at) || smaller;
    return smaller;
  }

  bool ShrinkByte(size_t at) {
    const std::vector<uint8_t> encoded = EncodePlan(plan_);
    const uint8_t value = encoded[at];
    for (const int candidate : {0, 1, 2, 3, 4, 5, value / 2}) {
      if (candidate >= value) break;
      std::vector<uint8_t> smaller = encoded;
      smaller[at] = static_cast<uint8_t>(candidate);
      if (Keep(DecodePlan(smaller))) return true;
    }
    return false;
  }

  Plan plan_;
  const std::function<bool(const Plan&)>& fails_;
  uint64_t runs_left_;
};

}  // namespace

Plan ShrinkPlan(Plan plan, const std::function<bool(const Plan&)>& fails, uint64_t max_runs) {
  return Shrinker(std::move(plan), fails, max_runs).Run();
}

}  // namespace h2d::testing
