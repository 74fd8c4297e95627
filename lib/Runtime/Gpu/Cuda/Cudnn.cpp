//===- Cudnn.cpp - Convolutions by cuDNN ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cudnn.h"
#include "CudnnApi.h"

#include <algorithm>
#include <array>

namespace tessera::runtime::gpu {

using namespace cudnn;

namespace {

constexpr int64_t kIds[] = {1, 2, 3}; ///< of x, w and y
constexpr int64_t kSlotAlignment = 64;

int dataTypeOf(DType dtype) {
  return dtype == DType::f16 ? kDataHalf : dtype == DType::bf16 ? kDataBrain : kDataFloat;
}

/// Attributes of an operation, by the kind of convolution.
struct OperationForm {
  int type, alpha, beta, convolution, x, w, y;
};
constexpr OperationForm kForms[] = {
    {kForward, kForwardAlpha, kForwardBeta, kForwardConvolution, kForwardX, kForwardW, kForwardY},
    {kBackwardData, kDataAlpha, kDataBeta, kDataConvolution, kDataDx, kDataW, kDataDy},
    {kBackwardFilter, kFilterAlpha, kFilterBeta, kFilterConvolution, kFilterX, kFilterDw,
     kFilterDy}};

} // namespace

Status Cudnn::open() {
  if (isOpen())
    return {};
  return library.open({"libcudnn.so.9", "libcudnn.so"},
                      "convolutions are faster with cuDNN 9, which is not part of the CUDA toolkit",
                      [this] { return begin(); });
}

Status Cudnn::begin() {
  TESSERA_RETURN_IF_ERROR(library.find(create, "cudnnCreate"));
  TESSERA_RETURN_IF_ERROR(library.find(destroy, "cudnnDestroy"));
  TESSERA_RETURN_IF_ERROR(library.find(setStream, "cudnnSetStream"));
  TESSERA_RETURN_IF_ERROR(library.find(createDescriptor, "cudnnBackendCreateDescriptor"));
  TESSERA_RETURN_IF_ERROR(library.find(destroyDescriptor, "cudnnBackendDestroyDescriptor"));
  TESSERA_RETURN_IF_ERROR(library.find(finalize, "cudnnBackendFinalize"));
  TESSERA_RETURN_IF_ERROR(library.find(setAttribute, "cudnnBackendSetAttribute"));
  TESSERA_RETURN_IF_ERROR(library.find(getAttribute, "cudnnBackendGetAttribute"));
  TESSERA_RETURN_IF_ERROR(library.find(execute, "cudnnBackendExecute"));
  Status_t status = create(&handle);
  if (status == 0)
    return {};
  handle = nullptr;
  return Status::error("cannot initialize cuDNN (status " + std::to_string(status) + ")");
}

void Cudnn::close() {
  for (auto &[convolution, plan] : plans) {
    if (plan.plan)
      (void)destroyDescriptor(plan.plan);
    for (auto part = plan.parts.rbegin(); part != plan.parts.rend(); ++part)
      (void)destroyDescriptor(*part);
  }
  plans.clear();
  if (handle)
    (void)destroy(handle);
  handle = nullptr;
}

/// Creates descriptors, and destroys them unless its user takes them. Keeps the first status other
/// than success, and does nothing after it.
struct Cudnn::Builder {
  explicit Builder(Cudnn &library) : library(library) {}
  ~Builder() {
    for (auto each = made.rbegin(); each != made.rend(); ++each)
      (void)library.destroyDescriptor(*each);
  }

  Descriptor make(int type) {
    Descriptor descriptor = nullptr;
    note(status == 0 ? library.createDescriptor(type, &descriptor) : status);
    if (descriptor)
      made.push_back(descriptor);
    return descriptor;
  }
  template <typename T> void set(Descriptor to, int name, int type, const std::vector<T> &values) {
    if (status == 0)
      note(
          library.setAttribute(to, name, type, static_cast<int64_t>(values.size()), values.data()));
  }
  template <typename T> void set(Descriptor to, int name, int type, T value) {
    set(to, name, type, std::vector<T>{value});
  }
  void finish(Descriptor descriptor) {
    if (status == 0)
      note(library.finalize(descriptor));
  }
  void note(Status_t said) { status = status == 0 ? said : status; }
  void drop() {
    (void)library.destroyDescriptor(made.back());
    made.pop_back();
  }

  Descriptor tensor(const GpuConvolution::Operand &operand, int64_t id, DType dtype) {
    Descriptor tensor = make(kTensor);
    int64_t alignment = kSlotAlignment;
    while (operand.offset * sizeOf(dtype) % alignment != 0)
      alignment /= 2;
    set(tensor, kTensorDataType, kTypeDataType, dataTypeOf(dtype));
    set(tensor, kTensorDimensions, kTypeInt64, operand.shape);
    set(tensor, kTensorStrides, kTypeInt64, operand.strides);
    set(tensor, kTensorId, kTypeInt64, id);
    set(tensor, kTensorAlignment, kTypeInt64, alignment);
    finish(tensor);
    return tensor;
  }
  Descriptor graph(const GpuConvolution &convolution);
  /// The engine configurations of a heuristic mode, the best first.
  std::vector<Descriptor> configs(Descriptor graph, int mode);
  std::vector<int> notesOf(Descriptor config);

  Cudnn &library;
  std::vector<Descriptor> made;
  Status_t status = 0;
};

Cudnn::Descriptor Cudnn::Builder::graph(const GpuConvolution &convolution) {
  using Kind = GpuConvolution::Kind;
  Descriptor x = tensor(convolution.x, kIds[0], convolution.typeOf(Kind::byInput));
  Descriptor w = tensor(convolution.w, kIds[1], convolution.typeOf(Kind::byWeights));
  Descriptor y = tensor(convolution.y, kIds[2], convolution.typeOf(Kind::forward));
  Descriptor form = make(kConvolution);
  auto dimensions = static_cast<int64_t>(convolution.strides.size());
  set(form, kConvolutionComputeType, kTypeDataType, kDataFloat);
  set(form, kConvolutionMode, kTypeConvolutionMode, kCrossCorrelation);
  set(form, kConvolutionDimensions, kTypeInt64, dimensions);
  set(form, kConvolutionDilations, kTypeInt64, convolution.dilations);
  set(form, kConvolutionStrides, kTypeInt64, convolution.strides);
  set(form, kConvolutionPrePaddings, kTypeInt64, convolution.padding);
  set(form, kConvolutionPostPaddings, kTypeInt64, convolution.padding);
  finish(form);
  const OperationForm &names = kForms[static_cast<size_t>(convolution.kind)];
  Descriptor operation = make(names.type);
  set(operation, names.alpha, kTypeFloat, 1.0f);
  set(operation, names.beta, kTypeFloat, 0.0f);
  set(operation, names.convolution, kTypeDescriptor, form);
  set(operation, names.x, kTypeDescriptor, x);
  set(operation, names.w, kTypeDescriptor, w);
  set(operation, names.y, kTypeDescriptor, y);
  finish(operation);
  Descriptor graph = make(kOperationGraph);
  set(graph, kGraphHandle, kTypeHandle, library.handle);
  set(graph, kGraphOperations, kTypeDescriptor, operation);
  finish(graph);
  return graph;
}

std::vector<Cudnn::Descriptor> Cudnn::Builder::configs(Descriptor graph, int mode) {
  constexpr int64_t kMost = 16;
  Descriptor heuristic = make(kEngineHeuristic);
  set(heuristic, kHeuristicGraph, kTypeDescriptor, graph);
  set(heuristic, kHeuristicMode, kTypeHeuristicMode, mode);
  finish(heuristic);
  std::vector<Descriptor> found;
  for (int64_t i = 0; i < kMost; ++i)
    found.push_back(make(kEngineConfig));
  int64_t count = 0;
  if (status == 0)
    note(library.getAttribute(heuristic, kHeuristicResults, kTypeDescriptor, kMost, &count,
                              found.data()));
  found.resize(status == 0 ? static_cast<size_t>(std::min(count, kMost)) : 0);
  return found;
}

std::vector<int> Cudnn::Builder::notesOf(Descriptor config) {
  constexpr int64_t kMost = 32;
  std::vector<int> notes(kMost, -1);
  Descriptor engine = make(kEngine);
  int64_t count = 0;
  if (status == 0)
    note(library.getAttribute(config, kConfigEngine, kTypeDescriptor, 1, &count, &engine));
  count = 0;
  if (status == 0)
    note(library.getAttribute(engine, kEngineNumericalNote, kTypeNumericalNote, kMost, &count,
                              notes.data()));
  notes.resize(status == 0 ? static_cast<size_t>(std::min(count, kMost)) : 0);
  return notes;
}

/// Whether an engine sums in f32, is deterministic, and does not round f32 operands unless TF32 is
/// enabled. Rejects Fourier and Winograd transforms, whose loss of accuracy does not show for small
/// windows of few channels.
static bool isExact(const std::vector<int> &notes, DType dtype, bool tf32) {
  return std::none_of(notes.begin(), notes.end(), [&](int note) {
    bool rounds = note == kNoteTensorCore || note == kNoteDownConvert;
    return note == kNoteReducedSum || note == kNoteNondeterministic || note == kNoteFft ||
           (note >= kNoteWinograd && note <= kNoteWinograd13) ||
           (rounds && dtype == DType::f32 && !tf32);
  });
}

std::optional<int64_t> Cudnn::prepare(const GpuConvolution &convolution, int &status) {
  Builder builder(*this);
  Descriptor graph = builder.graph(convolution);
  status = builder.status;
  for (int mode : {kHeuristicA, kHeuristicFallback}) {
    if (builder.status != 0)
      return std::nullopt;
    for (Descriptor config : builder.configs(graph, mode)) {
      // A failed engine does not exclude the others.
      std::vector<int> notes = builder.notesOf(config);
      if (builder.status != 0 || !isExact(notes, convolution.dtype, tf32)) {
        builder.status = 0;
        continue;
      }
      Plan plan;
      plan.plan = builder.make(kExecutionPlan);
      builder.set(plan.plan, kPlanHandle, kTypeHandle, handle);
      builder.set(plan.plan, kPlanConfig, kTypeDescriptor, config);
      builder.finish(plan.plan);
      int64_t count = 0;
      if (builder.status == 0)
        builder.note(
            getAttribute(plan.plan, kPlanWorkspace, kTypeInt64, 1, &count, &plan.workspace));
      if (builder.status == 0 && plan.workspace <= kMostWorkspace) {
        builder.made.pop_back(); // the plan
        plan.parts.swap(builder.made);
        int64_t workspace = plan.workspace;
        plans[&convolution] = std::move(plan);
        status = 0;
        return workspace;
      }
      status = builder.status;
      builder.status = 0;
      if (plan.plan)
        builder.drop();
    }
    status = builder.status != 0 ? builder.status : status;
    builder.status = 0; // heuristics of a mode may refuse
  }
  return std::nullopt;
}

Expected<bool> Cudnn::convolve(const GpuConvolution &convolution, const std::vector<void *> &slots,
                               void *workspace, CuStream stream) {
  auto known = plans.find(&convolution);
  if (known == plans.end())
    return false;
  using Kind = GpuConvolution::Kind;
  std::vector<void *> pointers;
  for (auto [operand, computes] :
       {std::pair(&convolution.x, Kind::byInput), std::pair(&convolution.w, Kind::byWeights),
        std::pair(&convolution.y, Kind::forward)}) {
    pointers.push_back(static_cast<std::byte *>(slots[operand->slot]) +
                       operand->offset * sizeOf(convolution.typeOf(computes)));
  }
  Builder builder(*this);
  Descriptor pack = builder.make(kVariantPack);
  builder.set(pack, kPackIds, kTypeInt64, std::vector<int64_t>(std::begin(kIds), std::end(kIds)));
  builder.set(pack, kPackPointers, kTypePointer, pointers);
  builder.set(pack, kPackWorkspace, kTypePointer, workspace);
  builder.finish(pack);
  if (builder.status == 0)
    builder.note(setStream(handle, stream));
  if (builder.status == 0)
    builder.note(execute(handle, known->second.plan, pack));
  if (builder.status != 0)
    return Status::error("cuDNN failed to compute a convolution (status " +
                         std::to_string(builder.status) + ")");
  return true;
}

} // namespace tessera::runtime::gpu
