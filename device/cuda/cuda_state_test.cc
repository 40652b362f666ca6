// The state behind a device, over a driver that the test plays: what goes wrong only rarely on
// hardware goes wrong here when it is told to. Runs without a GPU.
#include "h2d/device/cuda/cuda_state.h"

#include <cstdlib>
#include <memory>
#include <set>
#include <string>

#include "gtest/gtest.h"

namespace h2d::internal {
namespace {

// What the played driver has seen, and what it is to answer.
struct Played {
  CUcontext current = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::set<void*> pinned;
  CUresult free_answer = CUDA_SUCCESS;
  int frees = 0;
  bool released = false;  // the primary context
  std::string complaints;
};
Played* played = nullptr;

const CUcontext kPrimary = reinterpret_cast<CUcontext>(uintptr_t{0x10});

void ExpectHarmless(const char* call) {
  if (played->mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
    played->complaints += std::string(call) + " would hurt a capture\n";
  }
  if (played->current != kPrimary) played->complaints += std::string(call) + " has no context\n";
}

DriverApi MakePlayedDriver() {
  DriverApi api;
  api.CtxGetCurrent = [](CUcontext* context) {
    *context = played->current;
    return CUDA_SUCCESS;
  };
  api.CtxPushCurrent = [](CUcontext context) {
    played->current = context;
    return CUDA_SUCCESS;
  };
  api.CtxPopCurrent = [](CUcontext* context) {
    *context = std::exchange(played->current, nullptr);
    return CUDA_SUCCESS;
  };
  api.ThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode* mode) {
    std::swap(*mode, played->mode);
    return CUDA_SUCCESS;
  };
  api.MemHostAlloc = [](void** data, size_t bytes, unsigned) {
    ExpectHarmless("an allocation");
    *data = std::malloc(bytes);
    played->pinned.insert(*data);
    return CUDA_SUCCESS;
  };
  api.MemFreeHost = [](void* data) {
    ExpectHarmless("a free");
    ++played->frees;
    if (played->free_answer != CUDA_SUCCESS)
      return std::exchange(played->free_answer, CUDA_SUCCESS);
    if (played->pinned.erase(data) == 0) return CUDA_ERROR_INVALID_VALUE;
    std::free(data);
    return CUDA_SUCCESS;
  };
  api.DevicePrimaryCtxRelease = [](CUdevice) {
    played->released = true;
    return CUDA_SUCCESS;
  };
  return api;
}

class CudaStateTest : public testing::Test {
 protected:
  CudaStateTest() { played = &played_; }
  ~CudaStateTest() override {
    state_.reset();
    for (void* leaked : played_.pinned) std::free(leaked);
    EXPECT_EQ(played_.complaints, "");
    EXPECT_EQ(played_.current, nullptr);
    EXPECT_EQ(played_.mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    played = nullptr;
  }

  // Two idle blocks.
  void MakeIdleBlocks() {
    std::byte* blocks[2] = {};
    for (std::byte*& block : blocks) {
      const Expected<std::byte*> taken = state_->TakePinned(4096);
      ASSERT_TRUE(taken.has_value()) << taken.error().ToString();
      block = *taken;
    }
    for (std::byte* block : blocks) state_->ReleasePinned(block, 4096);
  }

  Played played_;
  const DriverApi api_ = MakePlayedDriver();
  std::shared_ptr<CudaState> state_ =
      std::make_shared<CudaState>(api_, /*ordinal=*/0, /*device=*/0, kPrimary,
                                  /*max_pinned_bytes=*/8192);
};

TEST_F(CudaStateTest, ABlockThatTheDriverDoesNotTakeBackStaysKnown) {
  MakeIdleBlocks();
  played_.free_answer = CUDA_ERROR_UNKNOWN;
  const Expected<void> trimmed = state_->FreeIdle();
  ASSERT_FALSE(trimmed.has_value());
  EXPECT_NE(trimmed.error().message.find("Freeing 2 idle blocks"), std::string::npos)
      << trimmed.error().message;
  EXPECT_NE(trimmed.error().message.find("1 stay in its cache"), std::string::npos);
  EXPECT_NE(trimmed.error().message.find("cudaErrorUnknown"), std::string::npos);
  EXPECT_EQ(played_.pinned.size(), 1U);
  // It counts against the limit, and serves.
  EXPECT_FALSE(state_->TakePinned(8192).has_value());
  const Expected<std::byte*> again = state_->TakePinned(4096);
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(played_.pinned.contains(*again));
  state_->ReleasePinned(*again, 4096);
  // A later try frees it.
  EXPECT_TRUE(state_->FreeIdle().has_value());
  EXPECT_TRUE(played_.pinned.empty());
}

TEST_F(CudaStateTest, AfterAStickyErrorNothingMoreIsFreedAndTheDeviceAnswersWithIt) {
  MakeIdleBlocks();
  played_.free_answer = CUDA_ERROR_ILLEGAL_ADDRESS;
  const Expected<void> trimmed = state_->FreeIdle();
  ASSERT_FALSE(trimmed.has_value());
  EXPECT_NE(trimmed.error().message.find("cudaErrorIllegalAddress"), std::string::npos);
  EXPECT_EQ(played_.frees, 1);
  EXPECT_TRUE(state_->latch().closed());
  state_.reset();  // quiet, and the driver is left alone
  EXPECT_EQ(played_.frees, 1);
  EXPECT_FALSE(played_.released);
}

TEST_F(CudaStateTest, TheEndFreesIdleMemoryAndTheContext) {
  MakeIdleBlocks();
  state_.reset();
  EXPECT_TRUE(played_.pinned.empty());
  EXPECT_TRUE(played_.released);
}

TEST_F(CudaStateTest, TheContextIsKeptWhileMemoryInItCouldNotBeFreed) {
  MakeIdleBlocks();
  played_.free_answer = CUDA_ERROR_UNKNOWN;
  state_.reset();
  EXPECT_EQ(played_.pinned.size(), 1U);
  EXPECT_FALSE(played_.released);
}

}  // namespace
}  // namespace h2d::internal
