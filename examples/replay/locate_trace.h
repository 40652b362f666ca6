// Where the trace is.
#ifndef H2D_EXAMPLES_REPLAY_LOCATE_TRACE_H_
#define H2D_EXAMPLES_REPLAY_LOCATE_TRACE_H_

#include <string>

namespace h2d::replay {

// The file that `--trace` names: `bazel run` starts a program in a directory of its own, and a
// relative path means the one that it was called in.
std::string LocateTrace(const std::string& flag);

// The trace that ships with the project, among the runfiles of the program `argv0`; empty when they
// are not there, as for a binary that was copied away.
std::string LocateShippedTrace(const std::string& argv0);

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_LOCATE_TRACE_H_
