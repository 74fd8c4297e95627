//===- InterpreterCheck.cpp - The interpreter as a reference ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/InterpreterCheck.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Driver/Compilation.h"
#include "tessera/Interpreter/Interpreter.h"
#include "tessera/Runtime/CommandLine/Npy.h"
#include "tessera/Runtime/Session/RandomInput.h"

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

  // The arguments as the run had them: files, else random; streams give a slice a step.
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
