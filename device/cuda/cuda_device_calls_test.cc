// Which calls of the driver a call of the device makes, and in which order, over a driver that the
// test plays. Runs without a GPU.
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "h2d/device/cuda/cuda_device.h"
#include "h2d/device/cuda/cuda_state.h"
#include "h2d/device/cuda/testing/played_driver.h"

namespace h2d {
namespace {

using internal::PlayedDriver;
using Calls = std::vector<std::string>;

constexpr char kExchange[] = "ThreadExchangeStreamCaptureMode";

class CudaDeviceCallsTest : public testing::Test {
 protected:
  void SetUp() override {
    stream_.emplace(Must(device_->Wrap(kNative)));
    event_.emplace(Must(device_->CreateEvent()));
    { const PinnedBuffer cached = Must(device_->AllocatePinned(64)); }
    driver_.TakeCalls();
  }

  template <class T>
  static T Must(Expected<T> answer) {
    EXPECT_TRUE(answer.has_value()) << answer.error().ToString();
    if constexpr (!std::is_void_v<T>) return *std::move(answer);
  }

  Expected<void> Copy() { return device_->CopyAsync(kThere, bytes_, *stream_); }

  static inline CUstream const kNative = reinterpret_cast<CUstream>(uintptr_t{0x30});
  static constexpr DevicePtr kThere = DevicePtr(uint64_t{0x1000});

  PlayedDriver driver_;
  std::shared_ptr<CudaDevice> device_ =
      std::make_shared<CudaDevice>(std::make_shared<internal::CudaState>(
          driver_.api(), /*ordinal=*/0, /*device=*/0, PlayedDriver::kPrimary,
          /*max_pinned_bytes=*/uint64_t{1} << 20));
  std::array<std::byte, 64> bytes_ = {};
  std::optional<Stream> stream_;
  std::optional<Event> event_;
};

// No exchange of the capture mode, no look at the current context.
TEST_F(CudaDeviceCallsTest, WhatACopyNeedsIsOneCallEach) {
  Must(Copy());
  EXPECT_EQ(driver_.TakeCalls(), Calls{"MemcpyHtoDAsync"});
  Must(device_->Record(*event_, *stream_));
  EXPECT_EQ(driver_.TakeCalls(), Calls{"EventRecord"});
  Must(device_->WaitEvent(*stream_, *event_));
  EXPECT_EQ(driver_.TakeCalls(), Calls{"StreamWaitEvent"});
  Must(device_->Inspect(*stream_));
  EXPECT_EQ(driver_.TakeCalls(), Calls{"StreamIsCapturing"});
  { const PinnedBuffer cached = Must(device_->AllocatePinned(64)); }
  EXPECT_EQ(driver_.TakeCalls(), Calls{});
}

// An allocation, or the registered part of one, of 32 bytes from `bytes_[16]` on.
TEST_F(CudaDeviceCallsTest, OneQuestionTellsWhetherARangeIsPinnedAsAWhole) {
  const std::span<const std::byte> bytes = bytes_;
  EXPECT_EQ(Must(device_->KindOf(bytes)), MemoryKind::kPageable);
  EXPECT_EQ(driver_.TakeCalls(), Calls{"PointerGetAttributes"});
  driver_.attributes = {
      {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_MEMORYTYPE_HOST},
      {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, reinterpret_cast<uintptr_t>(&bytes_[16])},
      {CU_POINTER_ATTRIBUTE_RANGE_SIZE, 32}};
  EXPECT_EQ(Must(device_->KindOf(bytes.subspan(16, 32))), MemoryKind::kPinned);
  EXPECT_EQ(driver_.TakeCalls(), Calls{"PointerGetAttributes"});
  EXPECT_EQ(Must(device_->KindOf(bytes.subspan(47, 1))), MemoryKind::kPinned);
  EXPECT_EQ(Must(device_->KindOf(bytes.subspan(16, 33))), MemoryKind::kPageable);
  EXPECT_EQ(Must(device_->KindOf(bytes.subspan(47, 2))), MemoryKind::kPageable);
  EXPECT_EQ(Must(device_->KindOf(bytes.subspan(48, 1))), MemoryKind::kPageable);
  EXPECT_EQ(Must(device_->KindOf(bytes.subspan(15, 8))), MemoryKind::kPageable);
  driver_.attributes[CU_POINTER_ATTRIBUTE_IS_MANAGED] = 1;
  EXPECT_EQ(Must(device_->KindOf(bytes.subspan(16, 32))), MemoryKind::kPageable);
  driver_.attributes[CU_POINTER_ATTRIBUTE_IS_MANAGED] = 0;
  driver_.attributes[CU_POINTER_ATTRIBUTE_MEMORY_TYPE] = CU_MEMORYTYPE_DEVICE;
  EXPECT_EQ(device_->KindOf(bytes).error().code, ErrorCode::kInvalidArgument);
  driver_.TakeCalls();
  EXPECT_EQ(Must(device_->KindOf({})), MemoryKind::kPageable);
  EXPECT_EQ(driver_.TakeCalls(), Calls{});
}

TEST_F(CudaDeviceCallsTest, ASweepExchangesTheCaptureModeOnce) {
  driver_.Answer("EventQuery", CUDA_ERROR_NOT_READY);
  const std::array<const Event*, 3> events = {&*event_, &*event_, &*event_};
  EXPECT_EQ(Must(device_->WaitAny(events, {})), std::nullopt);
  EXPECT_EQ(driver_.TakeCalls(), (Calls{"CtxGetCurrent", kExchange, "EventQuery", "EventQuery",
                                        "EventQuery", kExchange}));
  EXPECT_EQ(driver_.mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

TEST_F(CudaDeviceCallsTest, AllocationAndFreeStandInsideAnExchange) {
  { const PinnedBuffer fresh = Must(device_->AllocatePinned(100'000)); }
  EXPECT_EQ(driver_.TakeCalls(), (Calls{"CtxGetCurrent", kExchange, "MemHostAlloc", kExchange}));
  Must(device_->Trim());
  EXPECT_EQ(driver_.TakeCalls(), (Calls{"CtxGetCurrent", kExchange, "MemFreeHost", kExchange,
                                        "CtxGetCurrent", kExchange, "MemFreeHost", kExchange}));
}

TEST_F(CudaDeviceCallsTest, ACapturingStreamIsAskedForNothingElse) {
  driver_.capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  for (const Stream& stream : {*stream_, device_->LegacyStream(), device_->PerThreadStream()}) {
    EXPECT_TRUE(Must(device_->Inspect(stream)).capturing);
    const Calls calls = driver_.TakeCalls();
    EXPECT_EQ(calls.back(), "StreamIsCapturing");
  }
  EXPECT_FALSE(device_->Wrap(kNative).has_value());
  EXPECT_EQ(driver_.TakeCalls(), Calls{"StreamIsCapturing"});
}

TEST_F(CudaDeviceCallsTest, ALegacyStreamThatACaptureImpliesCountsAsCapturing) {
  driver_.Answer("StreamIsCapturing", CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_TRUE(Must(device_->Inspect(device_->LegacyStream())).capturing);
  EXPECT_EQ(driver_.TakeCalls(), (Calls{"CtxGetCurrent", "StreamIsCapturing"}));
}

TEST_F(CudaDeviceCallsTest, WrapAsksForTheCaptureFirstThenWhoseStreamItIs) {
  Must(device_->Wrap(kNative));
  EXPECT_EQ(driver_.TakeCalls(),
            (Calls{"StreamIsCapturing", "StreamGetDevice", "StreamGetCtx", "StreamGetId"}));
  driver_.stream_context = reinterpret_cast<CUcontext>(uintptr_t{0x99});
  const Expected<Stream> of_context = device_->Wrap(kNative);
  ASSERT_FALSE(of_context.has_value());
  EXPECT_EQ(of_context.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(of_context.error().message.find("another context of CUDA device 0"), std::string::npos);
  driver_.stream_device = 3;
  const Expected<Stream> of_device = device_->Wrap(kNative);
  ASSERT_FALSE(of_device.has_value());
  EXPECT_EQ(of_device.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(of_device.error().message.find("CUDA device 3"), std::string::npos);
}

TEST_F(CudaDeviceCallsTest, ACallThatMissesAContextIsMadeAgainInTheDevicesAndLeavesNone) {
  driver_.current = nullptr;
  driver_.Answer("MemcpyHtoDAsync", CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_FALSE(Copy().has_value());
  EXPECT_EQ(driver_.TakeCalls(), (Calls{"MemcpyHtoDAsync", "CtxGetCurrent", "CtxPushCurrent",
                                        "MemcpyHtoDAsync", "CtxPopCurrent"}));
  EXPECT_EQ(driver_.current, nullptr);
}

// A method, and the driver's call in it that fails.
struct Failing {
  const char* call;
  std::function<std::optional<Error>()> method;
};

template <class T>
std::optional<Error> ErrorIn(const Expected<T>& answer) {
  if (answer) return std::nullopt;
  return answer.error();
}

class CudaDeviceFailuresTest : public CudaDeviceCallsTest {
 protected:
  std::vector<Failing> Methods() {
    return {
        {"MemcpyHtoDAsync", [this] { return ErrorIn(Copy()); }},
        {"EventRecord", [this] { return ErrorIn(device_->Record(*event_, *stream_)); }},
        {"StreamWaitEvent", [this] { return ErrorIn(device_->WaitEvent(*stream_, *event_)); }},
        {"EventQuery", [this] { return ErrorIn(device_->Query(*event_)); }},
        {"EventQuery",
         [this] {
           const Event* const only = &*event_;
           return ErrorIn(device_->WaitAny(std::span(&only, 1), {}));
         }},
        {"EventCreate", [this] { return ErrorIn(device_->CreateEvent()); }},
        {"MemHostAlloc", [this] { return ErrorIn(device_->AllocatePinned(100'000)); }},
        {"MemFreeHost", [this] { return ErrorIn(device_->Trim()); }},
        {"PointerGetAttributes", [this] { return ErrorIn(device_->KindOf(bytes_)); }},
        {"StreamIsCapturing", [this] { return ErrorIn(device_->Inspect(*stream_)); }},
        {"StreamGetId", [this] { return ErrorIn(device_->Inspect(device_->LegacyStream())); }},
        {"StreamGetDevice", [this] { return ErrorIn(device_->Wrap(kNative)); }},
        {"StreamGetCtx", [this] { return ErrorIn(device_->Wrap(kNative)); }},
    };
  }
};

TEST_F(CudaDeviceFailuresTest, EveryErrorReachesTheCallerWithItsNameAndNumber) {
  for (const Failing& failing : Methods()) {
    SCOPED_TRACE(failing.call);
    driver_.Answer(failing.call, CUDA_ERROR_UNKNOWN);
    const std::optional<Error> error = failing.method();
    driver_.Answer(failing.call, CUDA_SUCCESS);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->device_code, CUDA_ERROR_UNKNOWN);
    EXPECT_NE(error->message.find("failed with cudaErrorUnknown"), std::string::npos)
        << error->message;
    EXPECT_EQ(failing.method(), std::nullopt);  // that error was not sticky
  }
}

TEST_F(CudaDeviceFailuresTest, AfterAStickyErrorEveryCallFailsAtOnceWithTheFirstCause) {
  driver_.Answer("EventQuery", CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_FALSE(device_->Query(*event_).has_value());
  driver_.Answer("EventQuery", CUDA_SUCCESS);
  driver_.TakeCalls();
  for (const Failing& failing : Methods()) {
    SCOPED_TRACE(failing.call);
    const std::optional<Error> error = failing.method();
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code, ErrorCode::kDevice);
    EXPECT_NE(error->message.find("failed earlier"), std::string::npos) << error->message;
    EXPECT_NE(error->message.find("cudaErrorIllegalAddress"), std::string::npos);
  }
  event_.reset();
  device_.reset();
  EXPECT_EQ(driver_.TakeCalls(), Calls{});  // the driver was left alone
}

}  // namespace
}  // namespace h2d
