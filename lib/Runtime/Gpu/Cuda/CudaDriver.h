//===- CudaDriver.h - GPUs through the CUDA driver --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_CUDA_CUDADRIVER_H
#define TESSERA_LIB_RUNTIME_GPU_CUDA_CUDADRIVER_H

#include "../Driver.h"
#include "Cublas.h"
#include "CublasLt.h"
#include "CudaApi.h"
#include "CudaTrace.h"
#include "Cudnn.h"

#include <functional>

namespace tessera::runtime::gpu {

/// Pinned host memory for asynchronous copies to a GPU, in chunks that are used in turn.
struct PinnedRing {
  static constexpr size_t kChunk = size_t(8) << 20, kChunks = 4;
  std::byte *memory = nullptr;
  CuEvent copied[kChunks] = {}; ///< recorded after the copy: the chunk is free
  size_t next = 0;
};

/// The devices of this process on one GPU: one of the program's (`cuda`), or all (`vdev`).
class CudaDriver final : public GpuDriver {
public:
  CudaDriver() = default;
  /// Opens the driver and GPU `ordinal`. Fails within a second if either is missing; the error
  /// gives the number of GPUs.
  Status open(int64_t ordinal);
  ~CudaDriver() override;

  Expected<std::byte *> allocate(int64_t device, int64_t bytes) override;
  Expected<std::byte *> allocateKept(int64_t device, int64_t bytes) override;
  void freeKept(std::byte *data) override;
  void release() override;
  Expected<Stream> createStream(int64_t device, std::string name) override;
  Expected<Event> createEvent(int64_t device) override;
  int64_t memoryOf(int64_t) const override { return 0; }
  Status load(int64_t device, const Artifact &artifact) override;
  Status record(Event event, Stream stream) override;
  Status wait(Stream stream, Event event) override;
  Expected<bool> isDone(Event event) override;
  Status copy(Issue issue, std::byte *to, const std::byte *from, int64_t bytes) override;
  Status setIndex(Issue issue, std::byte *to, int64_t value) override;
  Status move(Issue issue, MoveJob job) override;
  Status launch(Issue issue, const LaunchStep &step, std::vector<void *> slots,
                std::byte *workspace) override;
  Status gemm(Issue issue, const GemmStep &step, const void *a, const void *b, void *c,
              const void *bias, std::byte *workspace) override;
  Status beginTimed(const Issue &issue) override;
  Status endTimed(const Issue &issue) override;
  Status timeSteps(int64_t steps) override;
  Status mark(Stream stream) override;
  Expected<std::vector<double>> stepSeconds() override;
  Status beginCapture(Stream origin) override;
  Expected<Graph> endCapture(Stream origin) override;
  Status launchGraph(Graph graph, Stream stream) override;
  Status enter() override { return api.check(api.ctxSetCurrent(context), "GPU " + name); }
  /// Another source of memory, tried first: may return null; frees its memory itself.
  std::function<void *(size_t)> allocateElsewhere;
  /// Called periodically while the host waits; an error ends the wait.
  std::function<Status()> whileWaiting;
  Expected<bool> synchronize(Stream stream, bool forStep) override;
  Status progress() override { return {}; }
  Status prepareGemm(const GemmStep &step, const void *a, const void *b, void *c,
                     const void *bias) override;
  Expected<bool> gemmGroup(Issue issue, const GemmStep &step,
                           const std::vector<GemmOperands> &operands,
                           std::byte *workspace) override;
  Status prepareGroup(int64_t device, const GemmStep &step,
                      const std::vector<GemmOperands> &operands) override;
  Status finishWrites() override;
  Status write(int64_t device, std::byte *to, const std::byte *from, int64_t bytes) override;
  Status read(int64_t device, std::byte *to, const std::byte *from, int64_t bytes) override;
  Status upload(Issue issue, std::byte *to, const std::byte *from, int64_t bytes) override;
  Status waitElsewhere(GpuDriver &other, Stream stream, Event event) override;
  Status recordElsewhere(GpuDriver &other, Event event, Stream stream) override;
  Stream foreignStream(uint64_t handle) override { return reinterpret_cast<Stream>(handle); }
  int64_t ordinal() const override { return number; }
  int64_t gemmWorkspaceBytes() const override { return CublasLt::kWorkspaceBytes; }
  int64_t kernelWorkspaceBytes() const override { return workspaceBytes; }

  /// Traces all later operations. Called by all processes at once.
  Status startTrace();
  /// Null without startTrace.
  CudaTrace *trace() const { return tracing.get(); }

  /// "NVIDIA H200", 90 for compute capability 9.0, and the identity of the GPU in a cluster.
  std::string gpuName() const { return name; }
  int capability() const { return major * 10 + minor; }
  /// Like CublasLt::useTf32. All GPUs that load the kernels have TF32.
  void useTf32() {
    tf32 = true;
    blas.useTf32();
    dnn.useTf32();
  }
  const CuUuid &uuid() const { return id; }
  const CudaApi &functions() const { return api; }

private:
  Status loadImages(const GpuModule &module);
  /// Loads the images of one architecture: an answer that another one may not get is returned, with
  /// nothing loaded.
  Expected<CuResult> loadArchitecture(const GpuModule &module, const std::string &arch);
  Expected<CuPointer> allocateMemory(int64_t bytes);
  /// Polls until the state is no longer "not ready", and checks other processes meanwhile.
  template <typename Ask> Status waitUntil(Ask ask);
  Status findKernels();
  void prepareConvolutions(const GpuModule &module);
  template <typename Work> Status timed(const Issue &issue, Work work) {
    TESSERA_RETURN_IF_ERROR(beginTimed(issue));
    TESSERA_RETURN_IF_ERROR(work());
    return endTimed(issue);
  }

  CudaApi api;
  CublasLt blas;
  bool tf32 = false;
  Cudnn dnn;
  Cublas batched;
  bool triedBatched = false, saidMisaligned = false;
  /// Device memory with the addresses of a group, by its description and first result.
  std::map<std::pair<const GemmStep *, const void *>, std::byte *> groups; ///< never iterated
  std::string name;
  CuContext context = nullptr;
  int major = 0, minor = 0, processors = 0;
  CuUuid id{};
  int64_t number = 0; ///< of the GPU
  std::vector<CuPointer> memory;
  std::vector<CuStream> streams;
  std::vector<CuEvent> events;
  std::vector<CuEvent> marks; ///< with times, of the begins and ends of steps
  size_t marked = 0;
  std::vector<CuGraphExec> graphs;
  CuStream capturing = nullptr; ///< began a capture that has not ended
  PinnedRing ring;
  std::map<Stream, int64_t> deviceOf; ///< looked up, never iterated
  std::unique_ptr<CudaTrace> tracing;
  std::vector<CuModule> modules;
  std::map<std::string, CuFunction> symbols; ///< of the program, by symbol
  CuFunction moveKernel = nullptr, gemmKernel = nullptr;
  const Artifact *loaded = nullptr;
  std::vector<std::vector<CuFunction>> launches; ///< by kernel and launch
  int64_t workspaceBytes = 0;
  bool writes = false; ///< written bytes may not have arrived
};

/// The arguments of the kernel for a job: copies use the widest elements that all its addresses and
/// strides allow. Fails if it has too many loops or ends.
struct MoveArguments;
Status describeMove(const MoveJob &job, MoveArguments &arguments);

/// The arguments of the kernel for products that cuBLASLt does not support.
struct GemmArguments;
GemmArguments describeGemm(const GemmStep &step, const void *a, const void *b, void *c,
                           const void *bias);

/// The architectures of a module that run on a GPU with this compute capability (90), the best one
/// first: cubins of its own architecture ("sm_90a", "sm_90"), of an earlier minor one, PTX of any
/// earlier one. The error names the available and the required architectures.
Expected<std::vector<std::string>> architecturesFor(const GpuModule &module, int capability,
                                                    const std::string &gpu);

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_CUDA_CUDADRIVER_H
