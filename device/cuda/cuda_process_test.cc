// What concerns a whole process: its first use of the driver, its end, and a sticky error. Each
// case runs in a process of its own, this program started again.
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "h2d/device/cuda/cuda_device.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d {
namespace {

// Said by a case whose process did what it should.
constexpr char kDone[] = "done\n";

int Fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  return 1;
}

// A device, a stager and a stream that has carried a copy.
struct Setting {
  std::shared_ptr<CudaDevice> device;
  std::unique_ptr<PinnedStager> stager;
  cudaStream_t native = nullptr;
  std::optional<Stream> stream;
  Destination destination;

  // Empty on success.
  std::string Make() {
    Expected<std::shared_ptr<CudaDevice>> made = CudaDevice::Create(0);
    if (!made) return made.error().ToString();
    device = *std::move(made);
    Expected<std::unique_ptr<PinnedStager>> made_stager = PinnedStager::Create(device);
    if (!made_stager) return made_stager.error().ToString();
    stager = *std::move(made_stager);
    void* memory = nullptr;
    if (cudaMalloc(&memory, 4096) != cudaSuccess) return "no device memory";
    if (cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking) != cudaSuccess) {
      return "no stream";
    }
    Expected<Stream> wrapped = device->Wrap(native);
    if (!wrapped) return wrapped.error().ToString();
    stream = *wrapped;
    destination = Destination{DevicePtr(memory), 1024, 4};
    return Copy();
  }

  std::string Copy() {
    const std::vector<int32_t> values(1024, 5);
    const Expected<CopyOutcome> copied = stager->Copy(destination, values, *stream);
    return copied ? "" : copied.error().ToString();
  }
};

bool DriverIsLoaded() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libcuda.so") != std::string::npos) return true;
  }
  return false;
}

// Made before the driver is loaded, so destroyed after it has shut down.
Setting destroyed_last;

int UntouchedCase() {
  if (DriverIsLoaded()) return Fail("the driver is loaded before anything was created");
  const auto device = CudaDevice::Create(0);
  if (!device) return Fail(device.error().ToString());
  if (!DriverIsLoaded()) return Fail("the driver is not where this test looks for it");
  return 0;
}

int StaticStorageCase() {
  if (const std::string why = destroyed_last.Make(); !why.empty()) return Fail(why);
  // Made after the driver was loaded, so destroyed before it shuts down; copies may be in flight.
  static Setting destroyed_first;
  if (const std::string why = destroyed_first.Make(); !why.empty()) return Fail(why);
  return 0;
}

// A store to an address that nobody mapped.
constexpr char kBadStore[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry bad_store()
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  mov.u64 %rd1, 16;
  mov.u32 %r1, 1;
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

std::string CauseAnIllegalAddress(cudaStream_t stream) {
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  if (cudaLibraryLoadData(&library, kBadStore, nullptr, nullptr, 0, nullptr, nullptr, 0) !=
          cudaSuccess ||
      cudaLibraryGetKernel(&kernel, library, "bad_store") != cudaSuccess) {
    return "the kernel does not load";
  }
  if (cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1), nullptr, 0,
                       stream) != cudaSuccess) {
    return "the kernel does not start";
  }
  const cudaError_t result = cudaStreamSynchronize(stream);
  return result == cudaErrorIllegalAddress ? "" : cudaGetErrorName(result);
}

int StickyErrorCase() {
  Setting setting;
  if (const std::string why = setting.Make(); !why.empty()) return Fail(why);
  Expected<Event> event = setting.device->CreateEvent();
  if (!event) return Fail(event.error().ToString());
  if (const std::string why = CauseAnIllegalAddress(setting.native); !why.empty()) {
    return Fail(why);
  }
  const std::string first = setting.Copy();
  if (first.find("cudaErrorIllegalAddress") == std::string::npos) return Fail("first: " + first);
  // Later calls repeat the first cause, whatever they are about.
  const std::string second = setting.Copy();
  const auto pinned = setting.device->AllocatePinned(64);
  const auto query = setting.device->Query(*event);
  const auto trim = setting.device->Trim();
  if (pinned || query || trim) return Fail("a call succeeded after the error");
  for (const std::string& later :
       {second, pinned.error().ToString(), query.error().ToString(), trim.error().ToString()}) {
    if (later.find("failed earlier") == std::string::npos ||
        later.find("cudaErrorIllegalAddress") == std::string::npos) {
      return Fail("later: " + later);
    }
  }
  return 0;  // and everything is destroyed
}

struct Case {
  const char* name;
  int (*run)();
};
constexpr std::array<Case, 3> kCases = {{
    {"untouched", UntouchedCase},
    {"static_storage", StaticStorageCase},
    {"sticky_error", StickyErrorCase},
}};

// What a case printed, on both outputs, up to its very end, and how it ended.
struct Ending {
  std::string output;
  int status = -1;
};

Ending RunCase(const std::string& name) {
  const std::string command = "H2D_PROCESS_CASE=" + name + " " +
                              std::filesystem::read_symlink("/proc/self/exe").string() + " 2>&1";
  Ending ending;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return ending;
  std::array<char, 256> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) ending.output += buffer.data();
  ending.status = pclose(pipe);
  return ending;
}

class CudaProcessTest : public testing::TestWithParam<Case> {};

TEST_P(CudaProcessTest, EndsQuietlyAndInSuccess) {
  // Not asked here: this process must not have used the driver when it starts another.
  const Ending probe = RunCase("probe");
  if (probe.status != 0) GTEST_SKIP() << probe.output;
  const Ending ending = RunCase(GetParam().name);
  EXPECT_TRUE(WIFEXITED(ending.status));
  EXPECT_EQ(WEXITSTATUS(ending.status), 0);
  EXPECT_EQ(ending.output, kDone);
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaProcessTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

int RunCaseHere(const std::string& name) {
  if (name == "probe") {
    const auto device = CudaDevice::Create(0);
    return device ? 0 : Fail(device.error().message);
  }
  for (const Case& one : kCases) {
    if (name != one.name) continue;
    const int result = one.run();
    if (result == 0) std::fputs(kDone, stdout);
    return result;
  }
  return Fail("there is no case " + name);
}

}  // namespace
}  // namespace h2d

int main(int argc, char** argv) {
  if (const char* name = std::getenv("H2D_PROCESS_CASE")) return h2d::RunCaseHere(name);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
