#include "h2d/examples/replay/step_slabs.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "h2d/examples/replay/host_machine.h"

namespace h2d::replay {
namespace {

StepShape SmallShape() {
  StepShape shape;
  shape.max_batch = 4;
  shape.table_width = 3;
  shape.token_sizes = {4, 8, 16};
  return shape;
}

TEST(StepSlabsTest, AGraphReadsEachTensorAsWideAsItWasCaptured) {
  const StepShape shape = SmallShape();
  const auto machine = NewHostMachine();
  const StepSlabs slabs = StepSlabs::Allocate(*machine, shape, 2).value();
  for (uint32_t slab = 0; slab < 2; ++slab) {
    for (size_t graph = 0; graph < 3; ++graph) {
      const std::span<const Destination> reads = slabs.ReadBy(slab, graph);
      ASSERT_EQ(reads.size(), kTensorKinds);
      for (const TensorKind kind : kAllTensors) {
        const Destination& place = reads[static_cast<size_t>(kind)];
        EXPECT_EQ(place.count, shape.CountOf(kind, graph));
        EXPECT_EQ(place, slabs.tensors()[slabs.IndexOf(slab, kind, graph)]);
        EXPECT_EQ(place.ptr, slabs.slabs()[slab] + slabs.fields().OffsetOf(kind, graph));
      }
    }
  }
}

TEST(StepSlabsTest, TheTensorsOfADecodeStepLieSideBySide) {
  const StepShape shape = SmallShape();
  const auto machine = NewHostMachine();
  const StepSlabs slabs = StepSlabs::Allocate(*machine, shape, 1).value();
  const std::span<const Destination> reads = slabs.ReadBy(0, 0);
  for (size_t i = 1; i < reads.size(); ++i) {
    const uint64_t end =
        reads[i - 1].ptr.address() + reads[i - 1].count * reads[i - 1].element_bytes;
    EXPECT_GE(reads[i].ptr.address(), end);
    EXPECT_LT(reads[i].ptr.address(), end + 16);  // the alignment of a field
  }
}

TEST(StepSlabsTest, TheLegendTellsEachFieldsOffset) {
  const auto machine = NewHostMachine();
  const StepSlabs slabs = StepSlabs::Allocate(*machine, SmallShape(), 1).value();
  const std::string legend = slabs.Legend();
  EXPECT_NE(legend.find("+ 0: token ids x16, 64 B\n"), std::string::npos) << legend;
  EXPECT_NE(legend.find(": block tables, 48 B\n"), std::string::npos) << legend;
}

}  // namespace
}  // namespace h2d::replay
