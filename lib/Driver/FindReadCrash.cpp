//===- FindReadCrash.cpp - Locate a crash of MLIR's readers ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/Supervisor.h"
#include "tessera/Phases/Register.h"
#include "tessera/Support/Location.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBufferRef.h"

#include <csignal>
#include <cstdio>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace tessera;

namespace {

/// The depth of a trial: most programs fail in parsing, which is cheapest to try.
enum class Depth { parse, verify };

/// Tries to read one program in child processes.
class ReadTrial {
public:
  explicit ReadTrial(StringRef name) : name(name) {
    void *memory =
        ::mmap(nullptr, kPlaceSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    place = memory == MAP_FAILED ? nullptr : static_cast<char *>(memory);
  }
  ~ReadTrial() {
    if (place)
      ::munmap(place, kPlaceSize);
  }

  /// The signal that ends reading `text`, or 0.
  int signalOf(StringRef text, Depth depth) {
    if (place)
      place[0] = place[kPlaceSize / 2] = 0;
    pid_t pid = ::fork();
    if (pid == 0)
      read(text, depth);
    int status = 0;
    if (pid < 0 || ::waitpid(pid, &status, 0) < 0 || !WIFSIGNALED(status))
      return 0;
    return WTERMSIG(status) == SIGALRM ? 0 : WTERMSIG(status);
  }

  /// The first error of the last trial, or an empty string.
  StringRef firstError() const { return place ? StringRef(place + kPlaceSize / 2) : StringRef(); }
  /// The op that the last trial verified when it ended: "location: error: 'op'", or an empty
  /// string.
  StringRef lastVerified() const { return place ? StringRef(place) : StringRef(); }

private:
  static constexpr size_t kPlaceSize = 4096;

  [[noreturn]] void read(StringRef text, Depth depth) {
    for (int fault : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP})
      std::signal(fault, SIG_DFL);
    ::alarm(60);
    int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    DialectRegistry registry;
    registerDialects(registry);
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    context.allowUnregisteredDialects();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (place && !place[kPlaceSize / 2] && diagnostic.getSeverity() == DiagnosticSeverity::Error)
        std::snprintf(place + kPlaceSize / 2, kPlaceSize / 2, "%s: error: %s",
                      toString(diagnostic.getLocation()).c_str(), diagnostic.str().c_str());
      return success();
    });
    ParserConfig config(&context, /*verifyAfterParse=*/false);
    std::string whole = text.str(); // the lexer reads the zero behind the end
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(whole, config, name);
    if (module && depth == Depth::verify) {
      module->walk<WalkOrder::PreOrder>([&](Operation *op) {
        note(op);
        (void)mlir::verify(op, /*verifyRecursively=*/false);
      });
      if (place)
        place[0] = 0;
      (void)mlir::verify(*module);
    }
    ::_exit(0);
  }

  void note(Operation *op) {
    if (!place)
      return;
    std::string text = toString(op->getLoc()) + ": error: '" + op->getName().getStringRef().str();
    std::snprintf(place, kPlaceSize / 2, "%s'", text.c_str());
  }

  StringRef name;
  char *place; ///< memory of parent and child
};

} // namespace

/// The first op in a line, or the text of the line.
static std::string describe(StringRef line) {
  for (size_t at = 0; at < line.size(); ++at) {
    bool begins =
        llvm::isAlpha(line[at]) && (at == 0 || line[at - 1] == ' ' || line[at - 1] == '"');
    if (!begins)
      continue;
    StringRef word = line.drop_front(at).take_while(
        [](char c) { return llvm::isAlnum(c) || c == '.' || c == '_'; });
    bool isAttribute = line.drop_front(at + word.size()).ltrim().starts_with("=");
    if (word.contains('.') && !isAttribute)
      return "'" + word.str() + "'";
  }
  return "the text up to this line";
}

static std::string why(int signal) {
  return std::string(" (") + ::strsignal(signal) + ")";
}

/// The size of the shortest prefix of whole lines of `text` that cannot be parsed, given that
/// `text` cannot.
static size_t shortestFailing(ReadTrial &trial, StringRef text) {
  SmallVector<size_t> ends; // behind each line
  for (size_t at = 0; at < text.size();) {
    size_t newline = text.find('\n', at);
    at = newline == StringRef::npos ? text.size() : newline + 1;
    ends.push_back(at);
  }
  size_t good = 0, bad = ends.size(); // lines
  while (bad - good > 1) {
    size_t middle = (good + bad) / 2;
    (trial.signalOf(text.take_front(ends[middle - 1]), Depth::parse) ? bad : good) = middle;
  }
  return ends.empty() ? 0 : ends[bad - 1];
}

static std::optional<ReadCrash> findInOne(StringRef text, StringRef name) {
  ReadTrial trial(name);
  auto undiagnosed = [](std::string error) { return ReadCrash{std::move(error), false}; };
  auto diagnosed = [&] { return ReadCrash{trial.firstError().str(), true}; };
  if (int signal = trial.signalOf(text, Depth::parse)) {
    if (!trial.firstError().empty())
      return diagnosed();
    if (isBytecode(llvm::MemoryBufferRef(text, name)))
      return undiagnosed(
          (name + ": error: this bytecode is damaged: it crashes MLIR's reader").str() +
          why(signal));
    StringRef lines = text.take_front(shortestFailing(trial, text));
    size_t begin = lines.drop_back(lines.ends_with("\n")).rfind('\n') + 1;
    StringRef last = lines.drop_front(begin).rtrim();
    size_t column = last.size() - last.ltrim().size() + 1;
    return undiagnosed((name + ":" + Twine(lines.take_front(begin).count('\n') + 1) + ":" +
                        Twine(column) + ": error: " + describe(last) +
                        " crashes MLIR's parser; check its attributes and types")
                           .str() +
                       why(signal));
  }
  if (int signal = trial.signalOf(text, Depth::verify)) {
    if (!trial.firstError().empty())
      return diagnosed();
    std::string place = trial.lastVerified().str();
    if (place.empty())
      place = (name + ": error: the program").str();
    return undiagnosed(place + " crashes its verifier; check its attributes and types" +
                       why(signal));
  }
  return std::nullopt;
}

std::optional<ReadCrash> tessera::findReadCrash(std::string_view all, const std::string &name,
                                                bool isSplit) {
  StringRef text(all);
  std::optional<ReadCrash> whole = findInOne(text, name);
  if (whole || !isSplit || !text.contains("// -----"))
    return whole;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find("// -----", at), text.size());
    // Empty lines before it keep the line numbers.
    std::string part(text.take_front(at).count('\n'), '\n');
    part += text.slice(at, end);
    if (std::optional<ReadCrash> error = findInOne(part, name))
      return error;
    at = end == text.size() ? end : end + 8;
  }
  return std::nullopt;
}
