//===- CudnnApi.h - Enumerators of cuDNN's backend API ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From the reference of cuDNN 9 (cudnn_graph.h): the values used here. The substitute for the
// library in tests includes this file, too.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_CUDA_CUDNNAPI_H
#define TESSERA_LIB_RUNTIME_GPU_CUDA_CUDNNAPI_H

namespace tessera::runtime::gpu::cudnn {

// Types of elements, of attributes, modes of a convolution and of heuristics.
constexpr int kDataFloat = 0, kDataHalf = 2, kDataBrain = 9;
constexpr int kTypeHandle = 0, kTypeDataType = 1, kTypeInt64 = 3, kTypeFloat = 4, kTypePointer = 6,
              kTypeConvolutionMode = 7, kTypeHeuristicMode = 8, kTypeNumericalNote = 11,
              kTypeDescriptor = 15;
constexpr int kCrossCorrelation = 1;
constexpr int kHeuristicA = 3, kHeuristicFallback = 2;
constexpr int kNotSupported = 3000; ///< status

// Descriptors.
constexpr int kConvolution = 1, kEngine = 2, kEngineConfig = 3, kEngineHeuristic = 4,
              kExecutionPlan = 5, kForward = 10, kBackwardFilter = 11, kBackwardData = 12,
              kOperationGraph = 15, kVariantPack = 16, kTensor = 17;

// Attributes.
constexpr int kConvolutionComputeType = 100, kConvolutionMode = 101, kConvolutionDilations = 102,
              kConvolutionStrides = 103, kConvolutionPostPaddings = 104,
              kConvolutionPrePaddings = 105, kConvolutionDimensions = 106;
constexpr int kHeuristicMode = 200, kHeuristicGraph = 201, kHeuristicResults = 202;
constexpr int kConfigEngine = 300;
constexpr int kPlanHandle = 400, kPlanConfig = 401, kPlanWorkspace = 402;
constexpr int kForwardAlpha = 700, kForwardBeta = 701, kForwardConvolution = 702, kForwardW = 703,
              kForwardX = 704, kForwardY = 705;
constexpr int kDataAlpha = 706, kDataBeta = 707, kDataConvolution = 708, kDataW = 709,
              kDataDx = 710, kDataDy = 711;
constexpr int kFilterAlpha = 712, kFilterBeta = 713, kFilterConvolution = 714, kFilterDw = 715,
              kFilterX = 716, kFilterDy = 717;
constexpr int kGraphHandle = 800, kGraphOperations = 801;
constexpr int kTensorAlignment = 900, kTensorDataType = 901, kTensorDimensions = 902,
              kTensorStrides = 903, kTensorId = 906;
constexpr int kPackIds = 1000, kPackPointers = 1001, kPackWorkspace = 1003;
constexpr int kEngineNumericalNote = 1303;

// Numerical notes of an engine.
constexpr int kNoteTensorCore = 0, kNoteDownConvert = 1, kNoteReducedSum = 2, kNoteFft = 3,
              kNoteNondeterministic = 4, kNoteWinograd = 5, kNoteWinograd13 = 8;

} // namespace tessera::runtime::gpu::cudnn

#endif // TESSERA_LIB_RUNTIME_GPU_CUDA_CUDNNAPI_H
