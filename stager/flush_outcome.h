// What a flush of a release queue did.
#ifndef H2D_STAGER_FLUSH_OUTCOME_H_
#define H2D_STAGER_FLUSH_OUTCOME_H_

#include <cstdint>

namespace h2d {

enum class FlushOutcome : uint8_t {
  kFlushed,  // an event stands for all that was pushed on the stream so far
  kNothing,  // ... and did before
  kPutOff,   // the stream is being captured: the sources stay, to be flushed when it is not
};

}  // namespace h2d

#endif  // H2D_STAGER_FLUSH_OUTCOME_H_
