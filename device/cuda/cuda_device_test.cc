// What is CUDA's alone: handles, current devices, the cost-free paths of a step.
#include "h2d/device/cuda/cuda_device.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "h2d/device/cuda/testing/runtime_call.h"

namespace h2d {
namespace {

class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    Expected<std::shared_ptr<CudaDevice>> device = CudaDevice::Create(0);
    if (!device) GTEST_SKIP() << device.error().message;
    device_ = *std::move(device);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&memory_, 4096), cudaSuccess);
  }
  void TearDown() override {
    if (device_ == nullptr) return;
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }

  // Every call that a step makes, on the calling thread.
  template <class T>
  static void ExpectSuccess(const Expected<T>& result) {
    EXPECT_TRUE(result.has_value()) << result.error().ToString();
  }

  void MakeEveryCall() {
    const auto stream = device_->Wrap(stream_);
    ASSERT_TRUE(stream.has_value()) << stream.error().ToString();
    const auto source = device_->AllocatePinned(64);
    ASSERT_TRUE(source.has_value()) << source.error().ToString();
    auto event = device_->CreateEvent();
    ASSERT_TRUE(event.has_value()) << event.error().ToString();
    const CopyEntry entry = {DevicePtr(memory_), source->bytes()};
    ExpectSuccess(device_->CopyAsync(entry.destination, entry.source, *stream));
    ExpectSuccess(device_->CopyBatchAsync(std::span(&entry, 1), *stream));
    ExpectSuccess(device_->Record(*event, *stream));
    ExpectSuccess(device_->WaitEvent(*stream, *event));
    ExpectSuccess(device_->Query(*event));
    ExpectSuccess(device_->Inspect(*stream));
    ExpectSuccess(device_->Inspect(device_->LegacyStream()));
    ExpectSuccess(device_->Inspect(device_->PerThreadStream()));
    ExpectSuccess(device_->KindOf(source->bytes().data()));
    const Event* const only = &*event;
    const auto complete =
        device_->WaitAny(std::span(&only, 1), {.timeout = std::chrono::seconds(20)});
    ASSERT_TRUE(complete.has_value()) << complete.error().ToString();
    EXPECT_EQ(*complete, 0U);
  }

  std::shared_ptr<CudaDevice> device_;
  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
};

TEST_F(CudaDeviceTest, DefaultHandlesAreNotWrappedByAccident) {
  for (cudaStream_t handle :
       {static_cast<cudaStream_t>(nullptr), cudaStreamLegacy, cudaStreamPerThread}) {
    const Expected<Stream> stream = device_->Wrap(handle);
    ASSERT_FALSE(stream.has_value());
    EXPECT_EQ(stream.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(stream.error().message.find("LegacyStream()"), std::string::npos);
  }
}

TEST_F(CudaDeviceTest, AWrappedStreamGivesItsHandleBack) {
  const Expected<Stream> stream = device_->Wrap(stream_);
  ASSERT_TRUE(stream.has_value()) << stream.error().ToString();
  EXPECT_EQ(CudaDevice::Native(*stream), stream_);
  EXPECT_EQ(CudaDevice::Native(device_->LegacyStream()), cudaStreamLegacy);
  EXPECT_EQ(CudaDevice::Native(device_->PerThreadStream()), cudaStreamPerThread);
}

TEST_F(CudaDeviceTest, WrappingACapturingStreamIsRefusedAndTheCaptureSurvives) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  const Expected<Stream> stream = device_->Wrap(stream_);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  ASSERT_FALSE(stream.has_value());
  EXPECT_EQ(stream.error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(CudaDeviceTest, DevicesOfOneOrdinalShareTheirStreams) {
  const auto other = CudaDevice::Create(0);
  ASSERT_TRUE(other.has_value());
  const Expected<Stream> stream = device_->Wrap(stream_);
  ASSERT_TRUE(stream.has_value());
  EXPECT_TRUE((*other)->Inspect(*stream).has_value());
}

TEST_F(CudaDeviceTest, AThreadThatNeverUsedCudaMayCall) {
  std::thread([&] { MakeEveryCall(); }).join();
}

// Queries and allocations are harmless under an exchanged capture mode, which a thread without a
// context may not be able to exchange.
TEST_F(CudaDeviceTest, AThreadThatNeverUsedCudaHurtsNoCaptureOfAnother) {
  const auto stream = device_->Wrap(stream_);
  ASSERT_TRUE(stream.has_value()) << stream.error().ToString();
  auto event = device_->CreateEvent();
  ASSERT_TRUE(event.has_value()) << event.error().ToString();
  ExpectSuccess(device_->Record(*event, *stream));
  cudaStream_t captured = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal), cudaSuccess);
  std::thread([&] {
    ExpectSuccess(device_->Query(*event));
    ExpectSuccess(device_->AllocatePinned(uint64_t{3} << 20));
  }).join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(captured, &graph), cudaSuccess);
  if (graph != nullptr) {
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  EXPECT_EQ(cudaStreamDestroy(captured), cudaSuccess);
}

TEST_F(CudaDeviceTest, TheCurrentDeviceIsWhatItWas) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    std::thread([&, ordinal] {
      ASSERT_EQ(cudaSetDevice(ordinal), cudaSuccess);
      MakeEveryCall();
      int current = -1;
      EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
      EXPECT_EQ(current, ordinal);
      EXPECT_TRUE(device_->Trim().has_value());
      EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
      EXPECT_EQ(current, ordinal);
    }).join();
  }
}

TEST_F(CudaDeviceTest, AStreamOfAnotherDeviceIsRefusedByName) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  if (count < 2) GTEST_SKIP() << "this machine has one GPU";
  cudaStream_t foreign = nullptr;
  {
    const conformance::CurrentDevice current(1);
    ASSERT_EQ(cudaStreamCreateWithFlags(&foreign, cudaStreamNonBlocking), cudaSuccess);
  }
  const Expected<Stream> stream = device_->Wrap(foreign);
  EXPECT_EQ(cudaStreamDestroy(foreign), cudaSuccess);
  ASSERT_FALSE(stream.has_value());
  EXPECT_EQ(stream.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(stream.error().message.find("CUDA device 1"), std::string::npos);
}

TEST_F(CudaDeviceTest, PinnedMemoryBeyondTheLimitIsRefusedUntilSomeIsTrimmed) {
  const auto small = CudaDevice::Create(0, {.max_pinned_bytes = 8192});
  ASSERT_TRUE(small.has_value());
  {
    const auto held = (*small)->AllocatePinned(4096);
    ASSERT_TRUE(held.has_value());
    const auto refused = (*small)->AllocatePinned(8192);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  }
  EXPECT_FALSE((*small)->AllocatePinned(8192).has_value());
  EXPECT_TRUE((*small)->Trim().has_value());
  EXPECT_TRUE((*small)->AllocatePinned(8192).has_value());
}

TEST_F(CudaDeviceTest, RefusalsCarryTheDriversNameAndTheValues) {
  const Expected<Stream> stream = device_->Wrap(stream_);
  ASSERT_TRUE(stream.has_value());
  const std::vector<std::byte> source(64);
  // An address that no allocation holds.
  const Expected<void> refused = device_->CopyAsync(DevicePtr(uint64_t{16}), source, *stream);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("cudaError"), std::string::npos)
      << refused.error().message;
  EXPECT_NE(refused.error().message.find("64 bytes"), std::string::npos);
  EXPECT_NE(refused.error().message.find("0x10"), std::string::npos);
}

TEST_F(CudaDeviceTest, HandlesMayOutliveTheirDevice) {
  auto event = device_->CreateEvent();
  auto pinned = device_->AllocatePinned(64);
  ASSERT_TRUE(event.has_value());
  ASSERT_TRUE(pinned.has_value());
  device_.reset();
  pinned->bytes()[0] = std::byte{1};
  EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  EXPECT_EQ(cudaFree(memory_), cudaSuccess);
}

}  // namespace
}  // namespace h2d
