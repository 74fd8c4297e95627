//===- Campaign.cpp - Many seeds, each in its own process -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Campaign.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tessera::fuzz;

namespace {

struct Child {
  uint64_t seed;
  int output;       ///< the verdict, or the last output before a crash
  std::string text; ///< read so far
};

} // namespace

//===----------------------------------------------------------------------===//
// The format in the pipe: one line per entry, the verdict after this mark
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral kMark = "\x01verdict\n";

static std::string oneLine(llvm::StringRef text) {
  std::string line = text.str();
  for (char &c : line)
    if (c == '\n')
      c = ' ';
  return line;
}

static std::string write(const CheckResult &result) {
  const Coverage &coverage = result.coverage;
  std::string text = kMark.str() + toString(result.status) + "\n" + oneLine(result.message) + "\n";
  for (int64_t number : {coverage.programs, coverage.withCollectives, coverage.withUneven,
                         coverage.withEmpty, coverage.weak, coverage.directions, coverage.kinks})
    text += std::to_string(number) + " ";
  text += "\n";
  for (const auto &[kind, count] : coverage.collectives)
    text += "c\t" + kind + "\t" + std::to_string(count) + "\n";
  for (const auto &[kind, count] : coverage.placements)
    text += "p\t" + kind + "\t" + std::to_string(count) + "\n";
  return text;
}

static Verdict read(llvm::StringRef text, int status) {
  Verdict verdict;
  auto [before, after] = text.split(kMark);
  if (!WIFEXITED(status) || after.empty()) {
    // The line of an assertion is more informative than the signal.
    for (llvm::StringRef line : llvm::split(before, '\n'))
      if (line.contains("Assertion") || line.contains("ERROR:") || line.contains("UNREACHABLE"))
        verdict.message = line.str();
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
      verdict.status = "timeout";
    else if (verdict.message.empty() && WIFSIGNALED(status))
      verdict.message = strsignal(WTERMSIG(status));
    verdict.coverage.programs = 1;
    return verdict;
  }
  llvm::SmallVector<llvm::StringRef> lines;
  after.split(lines, '\n');
  verdict.status = lines[0].str();
  verdict.message = lines[1].str();
  llvm::SmallVector<llvm::StringRef> numbers;
  lines[2].split(numbers, ' ');
  int64_t *fields[] = {&verdict.coverage.programs,   &verdict.coverage.withCollectives,
                       &verdict.coverage.withUneven, &verdict.coverage.withEmpty,
                       &verdict.coverage.weak,       &verdict.coverage.directions,
                       &verdict.coverage.kinks};
  for (auto [field, number] : llvm::zip(fields, numbers))
    (void)number.getAsInteger(10, *field);
  for (llvm::StringRef line : llvm::drop_begin(lines, 3)) {
    llvm::SmallVector<llvm::StringRef> parts;
    line.split(parts, '\t');
    int64_t count = 0;
    if (parts.size() != 3 || parts[2].getAsInteger(10, count))
      continue;
    (parts[0] == "c" ? verdict.coverage.collectives : verdict.coverage.placements)[parts[1].str()] =
        count;
  }
  return verdict;
}

//===----------------------------------------------------------------------===//
// Processes
//===----------------------------------------------------------------------===//

static void writeAll(int file, llvm::StringRef text) {
  while (!text.empty()) {
    ssize_t written = ::write(file, text.data(), text.size());
    if (written <= 0)
      return;
    text = text.drop_front(written);
  }
}

static std::pair<pid_t, Child> start(uint64_t seed, unsigned seconds,
                                     const std::function<CheckResult(uint64_t)> &work) {
  int ends[2];
  if (pipe(ends) != 0) {
    perror("pipe");
    std::exit(1);
  }
  fflush(nullptr);
  pid_t pid = fork();
  if (pid < 0) {
    perror("fork");
    std::exit(1);
  }
  if (pid == 0) {
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    // Without LLVM's handlers an abort ends at once; stack dumps of all seeds are useless.
    for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM})
      std::signal(signal, SIG_DFL);
    alarm(seconds);
    writeAll(ends[1], write(work(seed)));
    _exit(0);
  }
  close(ends[1]);
  return {pid, Child{seed, ends[0], {}}};
}

void tessera::fuzz::runCampaign(uint64_t first, uint64_t last, unsigned jobs, unsigned seconds,
                                const std::function<CheckResult(uint64_t)> &work,
                                const std::function<void(uint64_t, const Verdict &)> &report) {
  std::map<pid_t, Child> children;
  std::map<uint64_t, Verdict> done;
  uint64_t next = first, reported = first;
  while (reported < last) {
    while (children.size() < jobs && next < last)
      children.insert(start(next++, seconds, work));
    // Wait for output of a child, or its end.
    std::vector<pollfd> files;
    std::vector<pid_t> ids;
    for (auto &[pid, child] : children) {
      files.push_back({child.output, POLLIN, 0});
      ids.push_back(pid);
    }
    if (poll(files.data(), files.size(), -1) < 0 && errno != EINTR) {
      perror("poll");
      std::exit(1);
    }
    for (size_t i = 0; i < files.size(); ++i) {
      if (!files[i].revents)
        continue;
      Child &child = children.at(ids[i]);
      char buffer[4096];
      ssize_t size = ::read(child.output, buffer, sizeof(buffer));
      if (size > 0) {
        child.text.append(buffer, size);
        continue;
      }
      int status = 0;
      waitpid(ids[i], &status, 0);
      close(child.output);
      done[child.seed] = read(child.text, status);
      children.erase(ids[i]);
    }
    for (auto it = done.find(reported); it != done.end(); it = done.find(reported)) {
      report(reported++, it->second);
      done.erase(it);
    }
  }
}
