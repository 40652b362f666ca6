#include "h2d/bench/live_graph/nvrtc.h"

#include <dlfcn.h>
#include <nvrtc.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "h2d/bench/live_graph/cuda_check.h"

namespace h2d::bench {
namespace {

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

void* Nvrtc() {
  static void* const library = [] {
    for (const char* name :
         {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"}) {
      if (void* found = dlopen(name, RTLD_NOW)) return found;
    }
    Fail("NVRTC is not found: add the folder of libnvrtc.so to LD_LIBRARY_PATH.");
  }();
  return library;
}

// Calls the NVRTC function of that name and type.
template <class Function, class... Arguments>
void Call(const char* name, Arguments... arguments) {
  auto* const function = reinterpret_cast<Function*>(dlsym(Nvrtc(), name));
  if (function == nullptr) Fail(std::string("NVRTC has no ") + name);
  if (const nvrtcResult result = function(arguments...); result != NVRTC_SUCCESS) {
    Fail(std::string(name) + " failed with " + std::to_string(result));
  }
}

#define H2D_NVRTC(name, ...) Call<decltype(name)>(#name, __VA_ARGS__)

std::string TargetOption() {
  int device = 0;
  int major = 0;
  int minor = 0;
  Check(cudaGetDevice(&device), "Asking for the current device");
  Check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
        "Asking for the compute capability");
  Check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
        "Asking for the compute capability");
  return "--gpu-architecture=sm_" + std::to_string(major) + std::to_string(minor);
}

std::string Compile(const std::string& source) {
  nvrtcProgram program = nullptr;
  H2D_NVRTC(nvrtcCreateProgram, &program, source.c_str(), "kernels.cu", 0, nullptr, nullptr);
  const std::string target = TargetOption();
  const std::array<const char*, 1> options = {target.c_str()};
  auto* const compile =
      reinterpret_cast<decltype(nvrtcCompileProgram)*>(dlsym(Nvrtc(), "nvrtcCompileProgram"));
  if (compile == nullptr) Fail("NVRTC has no nvrtcCompileProgram");
  if (compile(program, options.size(), options.data()) != NVRTC_SUCCESS) {
    size_t log_bytes = 0;
    H2D_NVRTC(nvrtcGetProgramLogSize, program, &log_bytes);
    std::string log(log_bytes, '\0');
    H2D_NVRTC(nvrtcGetProgramLog, program, log.data());
    Fail("The kernels do not compile:\n" + log);
  }
  size_t bytes = 0;
  H2D_NVRTC(nvrtcGetCUBINSize, program, &bytes);
  std::string cubin(bytes, '\0');
  H2D_NVRTC(nvrtcGetCUBIN, program, cubin.data());
  H2D_NVRTC(nvrtcDestroyProgram, &program);
  return cubin;
}

}  // namespace

Kernels::Kernels(const std::string& source) {
  const std::string cubin = Compile(source);
  Check(cudaLibraryLoadData(&library_, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "Loading the kernels");
}

const void* Kernels::Find(const char* name) const {
  cudaKernel_t kernel = nullptr;
  Check(cudaLibraryGetKernel(&kernel, library_, name), name);
  return reinterpret_cast<const void*>(kernel);
}

}  // namespace h2d::bench
