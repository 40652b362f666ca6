// A step's slab as its callers see it: the writer, its oracle, and the order that they owe it.
#ifndef H2D_TESTS_SUPPORT_SLAB_H_
#define H2D_TESTS_SUPPORT_SLAB_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "h2d/device/sync.h"
#include "h2d/stager/step_layout.h"
#include "h2d/stager/step_writer.h"
#include "h2d/tests/support/buffer.h"
#include "h2d/tests/support/byte_model.h"
#include "h2d/tests/support/step_oracle.h"

namespace h2d::testing {

// The layout of every slab of a plan: a padded field, a block table, a field that kernels write, a
// field without padding; gaps between them.
struct StepFields {
  static constexpr size_t kTokens = 0;
  static constexpr size_t kTables = 1;
  static constexpr size_t kState = 2;
  static constexpr size_t kScales = 3;

  static Expected<StepFields> Make();

  const StepLayout::FieldInfo& info(size_t field) const { return layout.fields()[field]; }

  StepLayout layout;
  Field<int32_t> tokens;
  RowsField<int16_t> tables;
  Field<int32_t> state;
  Field<float> scales;
};

struct Slab {
  // Before the slab, which must be aligned, and behind it.
  static constexpr uint64_t kGuardBytes = StepLayout::kMaxAlignment;

  // `guarded` holds `initial`: the slab between its guards.
  Slab(DevicePtr guarded, const Bytes& initial)
      : buffer(guarded, initial, kGuardBytes), content(initial) {}

  Mutex mutex;  // of the callers: a writer has one owner at a time (I8)
  Buffer buffer;
  ByteModel content;  // with the guards
  std::optional<StepWriter> writer;
  std::optional<StepOracle> oracle;
  bool failed = false;                      // the last submit did
  bool kernel_wrote = false;                // the field of the kernels, since it was last set
  const StreamSlot* last_stream = nullptr;  // that the slab was sent on
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_SLAB_H_
