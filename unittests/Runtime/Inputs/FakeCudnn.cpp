//===- FakeCudnn.cpp - cuDNN's backend over host memory -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolves as given by descriptors when FakeCuda executes the call. FAKE_CUDNN_TRACE
// prints its arguments to standard error. FAKE_CUDNN_ENGINES=0: heuristics return no
// engine; =rounds: only engines that round or add in any order.
//
//===----------------------------------------------------------------------===//

#include "Gpu/Cuda/CudnnApi.h"
#include "Gpu/Cuda/DeviceScalars.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace tessera::runtime::gpu::cudnn;

namespace {

struct Descriptor {
  int type = 0;
  bool finished = false;
  std::map<int, std::vector<int64_t>> numbers;
  std::map<int, std::vector<void *>> pointers;
  std::map<int, int> types; ///< of the attributes

  Descriptor *at(int name) { return static_cast<Descriptor *>(pointers[name].front()); }
  int64_t number(int name) { return numbers[name].front(); }
};

struct Handle {
  void *stream = nullptr;
};

constexpr int kBadParameter = 2000, kNotFinalized = 2004, kInternalError = 4000;

size_t sizeOf(int type) {
  return type == kTypeInt64 || type == kTypeHandle || type == kTypePointer ||
                 type == kTypeDescriptor
             ? 8
             : 4;
}

void store(int64_t type, void *data, int64_t at, double value) {
  auto rounded = static_cast<float>(value);
  if (type == kDataFloat)
    static_cast<float *>(data)[at] = rounded;
  else if (type == kDataHalf)
    static_cast<Half *>(data)[at].store(rounded);
  else
    static_cast<Bfloat16 *>(data)[at].store(rounded);
}

double load(int64_t type, const void *data, int64_t at) {
  if (type == kDataFloat)
    return static_cast<const float *>(data)[at];
  if (type == kDataHalf)
    return static_cast<const Half *>(data)[at].load();
  return static_cast<const Bfloat16 *>(data)[at].load();
}

/// The data of a plan, from its descriptors.
struct Work {
  int kind = 0;
  struct Tensor {
    std::vector<int64_t> shape, strides;
    int64_t type = 0;
    char *data = nullptr;
  } x, w, y;
  std::vector<int64_t> padding, strides, dilations;
};

/// Calls `body` for each product with the offset of its element in each tensor.
template <typename Body> void forEachProduct(const Work &work, Body body) {
  size_t dimensions = work.strides.size();
  int64_t ofGroup = work.w.shape[1], groups = work.x.shape[1] / ofGroup;
  int64_t resultsOfGroup = work.w.shape[0] / groups;
  std::array<int64_t, 3> position{}, tap{};
  auto next = [&](std::array<int64_t, 3> &index, const std::vector<int64_t> &shape) {
    for (size_t d = dimensions; d-- > 0;) {
      if (++index[d] < shape[d + 2])
        return true;
      index[d] = 0;
    }
    return false;
  };
  for (int64_t image = 0; image < work.x.shape[0]; ++image)
    for (int64_t result = 0; result < work.w.shape[0]; ++result)
      do
        for (int64_t channel = 0; channel < ofGroup; ++channel)
          do {
            int64_t from = image * work.x.strides[0] +
                           (result / resultsOfGroup * ofGroup + channel) * work.x.strides[1];
            int64_t by = result * work.w.strides[0] + channel * work.w.strides[1];
            int64_t to = image * work.y.strides[0] + result * work.y.strides[1];
            bool inside = true;
            for (size_t d = 0; d < dimensions; ++d) {
              int64_t place =
                  position[d] * work.strides[d] + tap[d] * work.dilations[d] - work.padding[d];
              inside &= place >= 0 && place < work.x.shape[d + 2];
              from += place * work.x.strides[d + 2];
              by += tap[d] * work.w.strides[d + 2];
              to += position[d] * work.y.strides[d + 2];
            }
            if (inside)
              body(from, by, to);
          } while (next(tap, work.w.shape));
      while (next(position, work.y.shape));
}

void run(const Work &work) {
  std::map<int64_t, double> sums;
  const Work::Tensor &made = work.kind == kForward        ? work.y
                             : work.kind == kBackwardData ? work.x
                                                          : work.w;
  forEachProduct(work, [&](int64_t x, int64_t w, int64_t y) {
    double left = work.kind == kBackwardData ? load(work.y.type, work.y.data, y)
                                             : load(work.x.type, work.x.data, x);
    double right = work.kind == kBackwardFilter ? load(work.y.type, work.y.data, y)
                                                : load(work.w.type, work.w.data, w);
    sums[work.kind == kForward ? y : work.kind == kBackwardData ? x : w] += left * right;
  });
  for (auto [at, sum] : sums)
    store(made.type, made.data, at, sum);
}

bool hasEngines() {
  const char *engines = std::getenv("FAKE_CUDNN_ENGINES");
  return !engines || std::strcmp(engines, "0") != 0;
}
bool onlyRounds() {
  const char *engines = std::getenv("FAKE_CUDNN_ENGINES");
  return engines && std::strcmp(engines, "rounds") == 0;
}

using Issue = void (*)(void *stream, void (*)(void *), void *);

} // namespace

EXPORT int cudnnCreate(void **handle) {
  *handle = new Handle;
  return 0;
}
EXPORT int cudnnDestroy(void *handle) {
  delete static_cast<Handle *>(handle);
  return 0;
}
EXPORT int cudnnSetStream(void *handle, void *stream) {
  static_cast<Handle *>(handle)->stream = stream;
  return 0;
}
EXPORT int cudnnBackendCreateDescriptor(int type, void **descriptor) {
  auto *made = new Descriptor;
  made->type = type;
  *descriptor = made;
  return 0;
}
EXPORT int cudnnBackendDestroyDescriptor(void *descriptor) {
  delete static_cast<Descriptor *>(descriptor);
  return 0;
}
EXPORT int cudnnBackendSetAttribute(void *to, int name, int type, int64_t count, const void *data) {
  auto *descriptor = static_cast<Descriptor *>(to);
  if (descriptor->finished)
    return kBadParameter;
  descriptor->types[name] = type;
  for (int64_t i = 0; i < count; ++i) {
    const char *element = static_cast<const char *>(data) + i * static_cast<int64_t>(sizeOf(type));
    if (type == kTypeHandle || type == kTypePointer || type == kTypeDescriptor) {
      void *pointer = nullptr;
      std::memcpy(&pointer, element, sizeof(pointer));
      if (type == kTypeDescriptor && !static_cast<Descriptor *>(pointer)->finished)
        return kNotFinalized;
      descriptor->pointers[name].push_back(pointer);
    } else if (type == kTypeInt64) {
      int64_t number = 0;
      std::memcpy(&number, element, sizeof(number));
      descriptor->numbers[name].push_back(number);
    } else {
      int32_t number = 0;
      std::memcpy(&number, element, sizeof(number));
      descriptor->numbers[name].push_back(number);
    }
  }
  return 0;
}
EXPORT int cudnnBackendFinalize(void *descriptor) {
  auto *done = static_cast<Descriptor *>(descriptor);
  // Requirements of the library's reference.
  const std::map<int, std::vector<int>> needed = {
      {kTensor, {kTensorDataType, kTensorDimensions, kTensorStrides, kTensorId, kTensorAlignment}},
      {kConvolution,
       {kConvolutionComputeType, kConvolutionMode, kConvolutionDilations, kConvolutionStrides,
        kConvolutionPrePaddings, kConvolutionPostPaddings, kConvolutionDimensions}},
      {kOperationGraph, {kGraphHandle, kGraphOperations}},
      {kEngineHeuristic, {kHeuristicGraph, kHeuristicMode}},
      {kExecutionPlan, {kPlanHandle, kPlanConfig}},
      {kVariantPack, {kPackIds, kPackPointers, kPackWorkspace}}};
  if (auto attributes = needed.find(done->type); attributes != needed.end())
    for (int name : attributes->second)
      if (!done->types.count(name))
        return kBadParameter;
  done->finished = true;
  return 0;
}
EXPORT int cudnnBackendGetAttribute(void *from, int name, int, int64_t requested, int64_t *count,
                                    void *data) {
  auto *descriptor = static_cast<Descriptor *>(from);
  auto fill = [&](void *at, int type) {
    auto *made = static_cast<Descriptor *>(at);
    made->type = type;
    made->finished = true;
    return made;
  };
  if (name == kHeuristicResults) {
    // During a capture heuristics were observed to fail.
    auto captures = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "fake_cuda_captures"));
    if (captures && captures())
      return kInternalError;
    // Two engines: one that rounds, then one that is exact; the fallback is exact.
    bool isFallback = descriptor->number(kHeuristicMode) == kHeuristicFallback;
    *count = !hasEngines() ? 0 : isFallback ? 1 : 2;
    for (int64_t i = 0; i < *count && i < requested; ++i) {
      Descriptor *config = fill(static_cast<void **>(data)[i], kEngineConfig);
      config->pointers[kHeuristicGraph] = {descriptor->at(kHeuristicGraph)};
      config->numbers[kEngineNumericalNote] = {onlyRounds()            ? kNoteNondeterministic
                                               : i == 0 && !isFallback ? kNoteReducedSum
                                                                       : -1};
    }
    return 0;
  }
  if (name == kConfigEngine) {
    Descriptor *engine = fill(*static_cast<void **>(data), kEngine);
    engine->numbers = descriptor->numbers;
    *count = 1;
    return 0;
  }
  if (name == kEngineNumericalNote) {
    int64_t note = descriptor->number(kEngineNumericalNote);
    *count = note >= 0;
    if (note >= 0)
      *static_cast<int32_t *>(data) = static_cast<int32_t>(note);
    return 0;
  }
  if (name == kPlanWorkspace) {
    *static_cast<int64_t *>(data) = 1 << 16;
    *count = 1;
    return 0;
  }
  return kBadParameter;
}
EXPORT int cudnnBackendExecute(void *handle, void *plan, void *pack) {
  auto *packed = static_cast<Descriptor *>(pack);
  Descriptor *graph = static_cast<Descriptor *>(plan)->at(kPlanConfig)->at(kHeuristicGraph);
  Descriptor *operation = graph->at(kGraphOperations);
  if (!packed->finished || !packed->pointers[kPackWorkspace].front())
    return kBadParameter;
  Work work;
  work.kind = operation->type;
  int first = work.kind == kForward        ? kForwardAlpha
              : work.kind == kBackwardData ? kDataAlpha
                                           : kFilterAlpha;
  // Attributes of tensors follow those of the factors and of the form, in another order.
  const int w = first + 3;
  const int x = first + 4, y = first + 5;
  Descriptor *form = operation->at(first + 2);
  work.padding = form->numbers[kConvolutionPrePaddings];
  work.strides = form->numbers[kConvolutionStrides];
  work.dilations = form->numbers[kConvolutionDilations];
  auto tensor = [&](Work::Tensor &into, int name) {
    Descriptor *from = operation->at(name);
    into.shape = from->numbers[kTensorDimensions];
    into.strides = from->numbers[kTensorStrides];
    into.type = from->number(kTensorDataType);
    for (size_t i = 0; i < packed->numbers[kPackIds].size(); ++i)
      if (packed->numbers[kPackIds][i] == from->number(kTensorId))
        into.data = static_cast<char *>(packed->pointers[kPackPointers][i]);
  };
  tensor(work.w, w);
  tensor(work.x, x);
  tensor(work.y, y);
  if (std::getenv("FAKE_CUDNN_TRACE")) {
    auto text = [](const std::vector<int64_t> &numbers) {
      std::string all;
      for (int64_t number : numbers)
        all += (all.empty() ? "" : "x") + std::to_string(number);
      return all;
    };
    std::fprintf(stderr,
                 "cudnn: %s x %s w %s y %s padding %s strides %s dilations %s types %d %d %d\n",
                 work.kind == kForward        ? "forward"
                 : work.kind == kBackwardData ? "backward data"
                                              : "backward filter",
                 text(work.x.shape).c_str(), text(work.w.shape).c_str(), text(work.y.shape).c_str(),
                 text(work.padding).c_str(), text(work.strides).c_str(),
                 text(work.dilations).c_str(), static_cast<int>(work.x.type),
                 static_cast<int>(work.w.type), static_cast<int>(work.y.type));
  }
  auto issue = reinterpret_cast<Issue>(::dlsym(RTLD_DEFAULT, "fake_cuda_issue"));
  if (!issue)
    return kBadParameter;
  // Never freed: a graph may run it again.
  issue(
      static_cast<Handle *>(handle)->stream,
      [](void *data) { run(*static_cast<const Work *>(data)); }, new Work(work));
  return 0;
}
