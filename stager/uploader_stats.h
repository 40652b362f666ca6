// What happened in an uploader so far.
#ifndef H2D_STAGER_UPLOADER_STATS_H_
#define H2D_STAGER_UPLOADER_STATS_H_

#include "h2d/stager/release_queue_stats.h"
#include "h2d/stager/stager_stats.h"

namespace h2d {

struct UploaderStats {
  StagerStats chunks{};         // chunks and small sources: each is one copy
  ReleaseQueueStats sources{};  // those that the device reads directly
};

}  // namespace h2d

#endif  // H2D_STAGER_UPLOADER_STATS_H_
