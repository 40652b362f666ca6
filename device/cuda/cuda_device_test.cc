// What is CUDA's alone: handles, current devices, the cost-free paths of a step.
#include "h2d/device/cuda/cuda_device.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "h2d/device/cuda/engine/cuda_stream.h"

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
    ExpectSuccess(device_->KindOf(source->bytes()));
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
  const auto other = CudaDevice::Create(1);
  ASSERT_TRUE(other.has_value()) << other.error().ToString();
  const Expected<CudaStream> foreign = CudaStream::Create(**other);
  ASSERT_TRUE(foreign.has_value()) << foreign.error().ToString();
  const Expected<Stream> stream = device_->Wrap(foreign->native());
  ASSERT_FALSE(stream.has_value());
  EXPECT_EQ(stream.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(stream.error().message.find("CUDA device 1"), std::string::npos);
}

template <class Function>
Function DriverCall(const char* name, unsigned version) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  EXPECT_EQ(
      cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableLegacyStream, &found),
      cudaSuccess);
  return reinterpret_cast<Function>(address);
}

// A stream of a context of its own on device 0. The context is not current.
class ForeignStream {
 public:
  ForeignStream() {
    const auto create = DriverCall<PFN_cuCtxCreate_v3020>("cuCtxCreate", 3020);
    const auto pop = DriverCall<PFN_cuCtxPopCurrent_v4000>("cuCtxPopCurrent", 4000);
    const auto create_stream = DriverCall<PFN_cuStreamCreate_v2000>("cuStreamCreate", 2000);
    CUcontext popped = nullptr;
    EXPECT_EQ(create(&context_, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(create_stream(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    EXPECT_EQ(pop(&popped), CUDA_SUCCESS);
  }
  ~ForeignStream() {
    const auto destroy = DriverCall<PFN_cuCtxDestroy_v4000>("cuCtxDestroy", 4000);
    EXPECT_EQ(destroy(context_), CUDA_SUCCESS);
  }
  ForeignStream(const ForeignStream&) = delete;
  ForeignStream& operator=(const ForeignStream&) = delete;

  CUstream get() const { return stream_; }

 private:
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
};

TEST_F(CudaDeviceTest, AStreamOfAnotherContextOfTheDeviceIsRefused) {
  const ForeignStream foreign;
  const Expected<Stream> stream = device_->Wrap(foreign.get());
  ASSERT_FALSE(stream.has_value());
  EXPECT_EQ(stream.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(stream.error().message.find("another context of CUDA device 0"), std::string::npos)
      << stream.error().message;
}

TEST_F(CudaDeviceTest, RefusingACapturingStreamOfAnotherContextHurtsNoCapture) {
  const ForeignStream foreign;
  const auto begin = DriverCall<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture", 10010);
  const auto end = DriverCall<PFN_cuStreamEndCapture_v10000>("cuStreamEndCapture", 10000);
  ASSERT_EQ(begin(foreign.get(), CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  const Expected<Stream> stream = device_->Wrap(foreign.get());
  CUgraph graph = nullptr;
  EXPECT_EQ(end(foreign.get(), &graph), CUDA_SUCCESS);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  ASSERT_FALSE(stream.has_value());
  EXPECT_EQ(stream.error().code, ErrorCode::kFailedPrecondition);
}

// While one stream captures, another is wrapped: nothing that `Wrap` asks hurts the capture.
TEST_F(CudaDeviceTest, WrappingBesideACaptureHurtsNone) {
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                          cudaStreamCaptureModeRelaxed}) {
    cudaStream_t captured = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(captured, mode), cudaSuccess);
    ExpectSuccess(device_->Wrap(stream_));
    std::thread([&] { ExpectSuccess(device_->Wrap(stream_)); }).join();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(captured, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(captured), cudaSuccess);
  }
}

// A green context has a part of the multiprocessors and shares all else with the primary one.
TEST_F(CudaDeviceTest, AStreamOfAGreenContextIsServed) {
  const auto get = DriverCall<PFN_cuDeviceGetDevResource_v12040>("cuDeviceGetDevResource", 12040);
  const auto describe =
      DriverCall<PFN_cuDevResourceGenerateDesc_v12040>("cuDevResourceGenerateDesc", 12040);
  const auto create = DriverCall<PFN_cuGreenCtxCreate_v12040>("cuGreenCtxCreate", 12040);
  const auto destroy = DriverCall<PFN_cuGreenCtxDestroy_v12040>("cuGreenCtxDestroy", 12040);
  const auto create_stream =
      DriverCall<PFN_cuGreenCtxStreamCreate_v12050>("cuGreenCtxStreamCreate", 12050);
  CUdevResource all = {};
  ASSERT_EQ(get(0, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
  CUdevResourceDesc description = nullptr;
  ASSERT_EQ(describe(&description, &all, 1), CUDA_SUCCESS);
  CUgreenCtx green = nullptr;
  ASSERT_EQ(create(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
  const cudaStream_t of_test = stream_;
  ASSERT_EQ(create_stream(&stream_, green, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  MakeEveryCall();
  EXPECT_EQ(cudaStreamDestroy(std::exchange(stream_, of_test)), cudaSuccess);
  EXPECT_EQ(destroy(green), CUDA_SUCCESS);
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
