//===- Supervisor.cpp - A process that outlives a crash -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/Supervisor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tessera;

namespace {
/// Data of the child for its parent.
struct CrashReport {
  char program[4096]; ///< path of the program that was read last; empty: none
  bool isKept;        ///< its text is in `kept`, because `program` cannot be read again
  char reason[1024];  ///< of an abort; empty if unknown
};
} // namespace

static CrashReport *crashReport = nullptr; ///< memory of both processes; null without supervision
static int kept = -1;                      ///< a file of both processes
static volatile pid_t child = 0;
static std::string command; ///< the program's name, for messages

void tessera::noteProgram(const std::string &name, std::string_view text) {
  if (!crashReport)
    return;
  std::snprintf(crashReport->program, sizeof(crashReport->program), "%s", name.c_str());
  struct stat info;
  bool isFile = ::stat(name.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  crashReport->isKept = !isFile && kept >= 0 && ::ftruncate(kept, 0) == 0;
  llvm::StringRef left = crashReport->isKept ? llvm::StringRef(text) : "";
  for (off_t at = 0; !left.empty();) {
    ssize_t count = ::pwrite(kept, left.data(), left.size(), at);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      break;
    at += count;
    left = left.drop_front(count);
  }
}

//===----------------------------------------------------------------------===//
// The child
//===----------------------------------------------------------------------===//

static void leaveReason(const char *reason) {
  std::snprintf(crashReport->reason, sizeof(crashReport->reason), "%s", reason);
}

[[noreturn]] static void work(const std::function<int()> &body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL); // it does not outlive its parent
  llvm::install_fatal_error_handler([](void *, const char *reason, bool) {
    leaveReason(reason);
    std::abort();
  });
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) {
    leaveReason("out of memory");
    std::abort();
  });
  std::set_new_handler([] {
    leaveReason("out of memory");
    std::abort();
  });
  std::exit(body());
}

//===----------------------------------------------------------------------===//
// The parent
//===----------------------------------------------------------------------===//

/// Signals by which others end a process; passed on to the child.
static constexpr int kRequests[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
/// Signals that a fault of the process raises.
static constexpr int kFaults[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

static int waitFor(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      std::exit(1);
  return status;
}

/// The program that the child read last; null if there was none or it no longer exists.
static std::unique_ptr<llvm::MemoryBuffer> programOfChild() {
  if (crashReport->program[0] == 0)
    return nullptr;
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer =
      llvm::MemoryBuffer::getFile(crashReport->program);
  if (crashReport->isKept)
    buffer = llvm::MemoryBuffer::getOpenFile(kept, crashReport->program, /*FileSize=*/-1);
  return buffer ? std::move(*buffer) : nullptr;
}

/// Prints the error of a crashed child; returns the exit code.
static int report(int signal) {
  std::unique_ptr<llvm::MemoryBuffer> program = programOfChild();
  if (program)
    if (std::optional<ReadCrash> crash =
            findReadCrash(program->getBuffer(), crashReport->program, /*isSplit=*/true)) {
      if (!crash->isDiagnosed) // the child printed it
        llvm::errs() << crash->error << "\n";
      return 1;
    }
  std::string reason = crashReport->reason[0] ? crashReport->reason : ::strsignal(signal);
  if (crashReport->program[0])
    llvm::errs() << crashReport->program << ": ";
  if (reason == "out of memory")
    llvm::errs() << "error: out of memory\n";
  else
    llvm::errs() << "error: internal error of the compiler: " << reason
                 << "; please report it with the program; `" << command
                 << " --in-process …` prints a stack trace\n";
  return 1;
}

/// Runs in a child, if one can be created.
static int inChild(const std::function<int()> &body) {
  void *shared = ::mmap(nullptr, sizeof(CrashReport), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    return body();
  crashReport = new (shared) CrashReport{};
  kept = ::memfd_create("tessera-program", MFD_CLOEXEC);
  std::fflush(nullptr);
  pid_t pid = ::fork();
  if (pid < 0) { // too many processes: work without supervision
    crashReport = nullptr;
    return body();
  }
  if (pid == 0)
    work(body);
  child = pid;
  for (int request : kRequests)
    if (std::signal(request, [](int number) { ::kill(child, number); }) == SIG_IGN)
      std::signal(request, SIG_IGN);
  int status = waitFor(pid);
  child = 0;
  if (WIFEXITED(status))
    return WEXITSTATUS(status);
  int number = WTERMSIG(status);
  for (int request : kRequests)
    std::signal(request, SIG_DFL);
  if (llvm::is_contained(kFaults, number))
    return report(number);
  // Another process ended the child: end in the same way.
  std::signal(number, SIG_DFL);
  ::raise(number);
  return 128 + number;
}

int tessera::supervise(int argc, char **argv, const std::function<int(int, char **)> &body) {
  std::vector<char *> arguments(argv, argv + argc);
  std::erase_if(arguments, [](char *each) { return std::string_view(each) == "--in-process"; });
  bool alone = static_cast<int>(arguments.size()) < argc;
  command = llvm::sys::path::filename(argv[0]).str();
  if (alone)
    llvm::sys::PrintStackTraceOnErrorSignal(argv[0]);
  auto work = [&] {
    int count = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    return body(count, arguments.data());
  };
  return alone ? work() : inChild(work);
}
