// The header of a .safetensors file: which tensors lie where.
#ifndef H2D_EXAMPLES_LOAD_FILE_SAFETENSORS_H_
#define H2D_EXAMPLES_LOAD_FILE_SAFETENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "h2d/device/error.h"

namespace h2d::load_file {

struct TensorInfo {
  std::string name;     // as in the file: `ShownName` it where it is shown
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
};

// Reads the header of the open file `descriptor` and checks all of it: its length, its JSON, in
// which no key comes twice, that each tensor's bytes are those of its type and shape, lie in the
// file, and that the tensors cover the file's data without overlap and without holes. In the order
// of their offsets.
// Errors: `kInvalidArgument`, with what is damaged and where, or the dtype that is not known.
Expected<std::vector<TensorInfo>> ReadSafetensors(int descriptor);

}  // namespace h2d::load_file

#endif  // H2D_EXAMPLES_LOAD_FILE_SAFETENSORS_H_
