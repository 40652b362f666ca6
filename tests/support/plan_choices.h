// The simulated device's choices, taken from a plan's bytes.
#ifndef H2D_TESTS_SUPPORT_PLAN_CHOICES_H_
#define H2D_TESTS_SUPPORT_PLAN_CHOICES_H_

#include <cstdint>
#include <vector>

#include "h2d/device/fake/choice.h"
#include "h2d/tests/support/plan.h"

namespace h2d::testing {

// An operation's four choice bytes are its own source of randomness. The last says in eighths how
// often it is unkind; four zeros choose what is kindest. The operation's place in the plan is not
// part of it, so that removing another operation changes nothing here.
class PlanChoices final : public ChoiceSource {
 public:
  explicit PlanChoices(const Plan& plan);

  // From now on the kindest.
  void Calm() noexcept { calm_ = true; }

 private:
  uint32_t Draw(const ChoicePoint& point, uint32_t n) override;

  std::vector<uint32_t> seeds_;
  bool calm_ = false;
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_PLAN_CHOICES_H_
