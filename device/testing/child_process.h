// Checks in a forked child.
#ifndef H2D_DEVICE_TESTING_CHILD_PROCESS_H_
#define H2D_DEVICE_TESTING_CHILD_PROCESS_H_

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "h2d/device/error.h"

namespace h2d::testing {

// Runs `in_child` in a forked child and answers its exit status, or -1 when it did not exit: a
// signal, or a lock that nobody gives back there, after 20 s. What the child finds it can only tell
// by that status: the number of the first check that failed, say, or 0.
inline int StatusOfChild(const std::function<int()>& in_child) {
  constexpr unsigned kDeadlockSeconds = 20;
  const pid_t child = fork();
  if (child == 0) {
    alarm(kDeadlockSeconds);
    _exit(in_child());
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Whether a call was refused as calls are in a forked child.
template <class T>
bool IsRefused(const Expected<T>& result) {
  return !result && result.error().code == ErrorCode::kFailedPrecondition;
}

}  // namespace h2d::testing

#endif  // H2D_DEVICE_TESTING_CHILD_PROCESS_H_
