//===- Warpgroups.h - Emulated products of warpgroups -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma.mma_async.sync.aligned.m64nNk16 of 16-bit floats with sums in f32, as the PTX ISA defines
// it ("Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions"). The four warps of a
// warpgroup compute 16 rows each, whose fragments are those of mma.m16n8k16, one after the other.
//
// The product is asynchronous. Until `wait` its sums are names: NaN whose payload is a number. A
// product takes those of an earlier one as its sums, and `wait` replaces them by the values. So an
// access to a sum that has not been waited for gives NaN. Reported are
//
//   registers that are read without a fence before the group of products
//   sums that `wait` passes on although it does not wait for them
//   operands in shared memory that change before the wait, or race with writes of other threads
//   operands that threads have written without a fence of the proxies
//   descriptors beyond shared memory, and warps of a group with different products
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_STUB_WARPGROUPS_H
#define TESSERA_LIB_RUNTIME_GPU_STUB_WARPGROUPS_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera::runtime {

/// A planted fault of the kernel.
enum class WarpgroupFault {
  none,
  swizzle, ///< operands were written without the swizzle that descriptors state
  offset,  ///< descriptors begin 32 bytes late
  stride,  ///< the strides of descriptors are exchanged
  fence,   ///< the fences of registers are missing
  proxy,   ///< the fences between the proxies are missing
  wait     ///< each wait leaves one more group under way
};

/// A matrix in shared memory, in the canonical layouts of the PTX ISA.
struct MatrixDescriptor {
  uint64_t bits = 0;
  bool transposed = false; ///< rows (of A, or columns of B) are contiguous, not the summed index

  /// The number of a byte of shared memory, whose address is `base`: of the element at `row` (of A,
  /// or column of B) and summed index `k`. Elements have 16 bits.
  int64_t place(uint32_t row, uint32_t k, uint64_t base) const;
};

/// The operands of a lane in one product.
struct WarpgroupOperands {
  uint32_t columns = 0; ///< N
  bool isBf16 = false, accumulates = false, transposedA = false, transposedB = false;
  bool leftInRegisters = false;
  uint32_t a[4] = {};
  uint64_t left = 0, right = 0; ///< descriptors
  float *sums = nullptr;        ///< N / 2
};

/// The products of the warpgroups of one block. Functions return an error of the thread, or an
/// empty text.
class Warpgroups {
public:
  static constexpr uint32_t kWarp = 32, kGroup = 128;

  /// Reports that a thread reads some bytes of shared memory: the error of a race, or "".
  using Reader = std::function<std::string(uint32_t thread, const void *address, int64_t bytes)>;

  void begin(uint32_t threads, void *memory, int64_t bytes);
  /// A product of the warp whose first thread is `first`; `lanes`: of its 32 threads.
  std::string multiply(uint32_t first, const WarpgroupOperands *const *lanes, const Reader &reads);
  void fence(uint32_t thread);
  void commit(uint32_t thread);
  /// Waits for all groups of the thread but the last `groups`; replaces names by values.
  std::string wait(uint32_t thread, uint32_t groups, uint32_t count, float *values,
                   const Reader &reads);
  /// A write of shared memory by instructions of the generic proxy.
  void recordWrite(uint32_t thread, const void *address, int64_t bytes);
  void fenceProxy(uint32_t thread);
  /// At the end of the block.
  std::string finish() const;

  WarpgroupFault fault = WarpgroupFault::none;

private:
  /// One accumulation whose sums have names from `name` on.
  struct Pending {
    uint64_t group = 0; ///< the number of the thread's group that computes it last
    uint32_t name = 0, left = 0;
    std::vector<float> values;
  };
  struct Thread {
    bool fenced = false;
    uint64_t groups = 0;    ///< that it has committed
    uint64_t completed = 0; ///< of these
    std::vector<Pending> pending;
    std::vector<uint32_t> written; ///< chunks, since the last fence of the proxies
  };
  /// What a product of a warp reads until it is complete.
  struct Reads {
    uint64_t group = 0, hash = 0;
    std::vector<uint32_t> chunks;
  };
  struct Warp {
    uint32_t count = 0; ///< of its products
    std::vector<Reads> reads;
  };
  /// A product, as all warps of a group must execute it.
  struct Executed {
    uint64_t left, right;
    uint32_t columns, flags;
    bool operator==(const Executed &) const = default;
  };

  Pending *find(Thread &thread, uint32_t name, uint32_t &place);
  uint64_t hashOf(const std::vector<uint32_t> &chunks) const;
  std::string readAll(uint32_t first, const std::vector<uint32_t> &chunks, const Reader &reads);
  int64_t place(MatrixDescriptor matrix, uint32_t row, uint32_t k) const;

  unsigned char *memory = nullptr;
  int64_t bytes = 0;
  uint32_t nextName = 0;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<std::vector<Executed>> executed; ///< by warpgroup
  std::vector<uint32_t> unfenced;              ///< by chunk: a thread that has written it + 1
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GPU_STUB_WARPGROUPS_H
