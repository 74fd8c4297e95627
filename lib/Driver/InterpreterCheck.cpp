//===- InterpreterCheck.cpp - The interpreter as a reference --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/InterpreterCheck.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Driver/Compilation.h"
#include "tessera/Interpreter/Interpreter.h"
#include "tessera/Planning/OpCosts.h"
#include "tessera/Runtime/CommandLine/Npy.h"
#include "tessera/Runtime/Session/RandomInput.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>

using namespace mlir;
using namespace tessera;
using interpreter::Tensor;
using runtime::HostTensor;

Tensor tessera::toInterpreter(const HostTensor &host, Type elementType, ArrayRef<int64_t> shape) {
  Tensor tensor(elementType, shape);
  if (elementType.isInteger(1)) {
    for (int64_t i = 0; i < tensor.numElements(); ++i)
      tensor.store(i, interpreter::Scalar::ofInt(host.integer(i) ? -1 : 0));
    return tensor;
  }
  std::memcpy(tensor.mutableBytes().data(), host.data.data(), host.data.size());
  return tensor;
}

HostTensor tessera::toHost(const Tensor &tensor, runtime::DType dtype) {
  HostTensor host =
      HostTensor::zeros(dtype, runtime::Shape(tensor.shape().begin(), tensor.shape().end()));
  if (tensor.getElementType().isInteger(1)) {
    for (int64_t i = 0; i < tensor.numElements(); ++i)
      host.data[i] = std::byte(tensor.load(i).i ? 1 : 0);
    return host;
  }
  std::memcpy(host.data.data(), tensor.bytes().data(), host.data.size());
  return host;
}

runtime::Expected<runtime::RunReport>
tessera::interpretReference(const RunOptions &options, const runtime::Program &program,
                            const runtime::RunReport &report) {
  Compilation compilation(options);
  func::FuncOp function = compilation.toReference();
  if (!function)
    return runtime::Status::error("the program cannot be read again");

  // The arguments of the run: files, else random; streams contribute a slice per step.
  std::vector<HostTensor> values;
  std::map<size_t, HostTensor> streams;
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    const runtime::Argument &argument = program.arguments[i];
    values.push_back(runtime::randomInput(argument, static_cast<int64_t>(i), options.driver.seed));
    for (auto &[name, path] : options.driver.inputs)
      if (name == argument.name) {
        auto file = runtime::readNpy(path);
        if (!file)
          return file.status();
        auto value =
            runtime::asArgument(std::move(*file), argument.dtype, argument.globalShape, path);
        if (!value)
          return value.status();
        values.back() = std::move(*value);
      }
    for (auto &[name, path] : options.driver.streams)
      if (name == argument.name) {
        auto file = runtime::readNpy(path);
        if (!file)
          return file.status();
        streams[i] = std::move(*file);
      }
  }

  runtime::RunReport expected;
  expected.scalarNames = report.scalarNames;
  expected.steps = report.steps;
  for (int64_t step = 0; step < report.steps; ++step) {
    SmallVector<Tensor> inputs;
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
      if (auto stream = streams.find(i); stream != streams.end())
        std::memcpy(values[i].data.data(),
                    stream->second.data.data() + step * static_cast<int64_t>(values[i].data.size()),
                    values[i].data.size());
      auto tensor = dyn_cast<RankedTensorType>(type);
      inputs.push_back(toInterpreter(values[i], tensor ? tensor.getElementType() : type,
                                     tensor ? tensor.getShape() : ArrayRef<int64_t>()));
    }
    FailureOr<SmallVector<Tensor>> results = interpreter::runGlobal(function, inputs);
    if (failed(results))
      return runtime::Status::error("the interpreter could not run the program");
    expected.results.clear();
    std::vector<double> scalars(report.scalarNames.size());
    for (auto [r, result] : llvm::enumerate(*results)) {
      const runtime::Result &described = program.results[r];
      HostTensor host = toHost(result, described.dtype);
      for (size_t s = 0; s < scalars.size(); ++s)
        if (report.scalarNames[s] == described.name)
          scalars[s] = host.number(0);
      if (auto feeds = function.getResultAttrOfType<IntegerAttr>(r, dist::DistDialect::kFeeds))
        values[feeds.getInt()] = host;
      expected.results.push_back({described.name, std::move(host)});
    }
    expected.scalars.push_back(std::move(scalars));
  }
  return expected;
}

/// Of one execution of an op without its regions.
static double workOf(Operation *op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    double iterations = 1;
    for (int64_t range : linalgOp.getStaticLoopRanges())
      iterations *= static_cast<double>(range);
    return iterations * static_cast<double>(linalgOp.getBlock()->getOperations().size());
  }
  double elements = 1;
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && tensor.hasStaticShape())
      elements += static_cast<double>(tensor.getNumElements());
  for (Region &region : op->getRegions()) // of tensor.pad and tensor.generate: for each element
    if (!isa<RegionBranchOpInterface>(op) && region.hasOneBlock())
      elements *= static_cast<double>(region.front().getOperations().size());
  return elements;
}

std::optional<double> tessera::interpreterWork(func::FuncOp function) {
  double sum = 0;
  bool known = true;
  function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto loop = dyn_cast<scf::ForOp>(op);
    known &= !isa<scf::WhileOp>(op) && (!loop || loop.getStaticTripCount().has_value());
    double work = workOf(op);
    if (auto call = dyn_cast<func::CallOp>(op))
      if (auto callee =
              SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, call.getCalleeAttr());
          callee && !callee.isExternal() && callee != function) {
        std::optional<double> inside = interpreterWork(callee);
        known &= inside.has_value();
        work += inside.value_or(0);
      }
    sum += work * dist::tripsOf(op);
    return known && (isa<RegionBranchOpInterface>(op) || op->getNumRegions() == 0)
               ? WalkResult::advance()
           : known ? WalkResult::skip()
                   : WalkResult::interrupt();
  });
  return known ? std::optional(sum) : std::nullopt;
}

bool tessera::checkIfSmall(const RunOptions &options, const runtime::Program &program,
                           runtime::RunReport &report, std::string &note) {
  std::string messages;
  RunOptions silent = options;
  silent.messages = &messages;
  std::optional<double> work;
  {
    Compilation compilation(silent);
    func::FuncOp function = compilation.toReference();
    if (!function)
      return true;
    work = interpreterWork(function);
  }
  if (work)
    *work *= static_cast<double>(report.steps);
  if (!work || *work > kSmallInterpreterWork) {
    std::string why = work ? llvm::formatv("about {0:N} operations on elements, more than {1:N}",
                                           static_cast<uint64_t>(std::min(*work, 1e18)),
                                           static_cast<uint64_t>(kSmallInterpreterWork))
                                 .str()
                           : "its loops have no constant bounds";
    note = "skipped  " + why + "; --check=interpreter runs it";
    return true;
  }
  auto reference = interpretReference(silent, program, report);
  if (!reference) {
    llvm::StringRef reason = llvm::StringRef(messages).trim().split('\n').first;
    note = "skipped  it cannot run the program: " +
           (reason.empty() ? reference.status().message() : reason.str());
    return true;
  }
  runtime::RunReport compared = report;
  bool equal = runtime::checkAgainst(compared, *reference);
  for (runtime::ResultCheck &check : compared.checks)
    if (!check.equal) {
      check.text = "from the interpreter: " + check.text;
      report.checks.push_back(std::move(check));
    }
  note = std::string(equal ? "ok" : "DIFFERS") +
         llvm::formatv("  about {0:N} operations on elements", static_cast<uint64_t>(*work)).str();
  return equal;
}
