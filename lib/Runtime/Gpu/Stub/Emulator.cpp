//===- Emulator.cpp - GPU kernels run by the CPU --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"

#include "AccessCheck.h"
#include "Fiber.h"
#include "Matrices.h"
#include "StubApi.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

namespace tessera::runtime {

namespace {

constexpr uint32_t kWarp = 32, kSharedAlignment = 1024;

class Block;

/// A GPU thread. Kernels receive a pointer to its first member.
struct Thread {
  enum class State { fresh, ready, barrier, shuffle, matrices, products, done };

  tessera_stub_thread seen = {};
  Block *block = nullptr;
  uint32_t index = 0; ///< within the block, x fastest
  State state = State::fresh;
  Fiber *fiber = nullptr; ///< from the first instruction to the last
  /// Operands of the shuffle at which it waits; `value` then becomes the result.
  uint32_t members = 0, value = 0, operand = 0, clamp = 0, mode = 0;
  /// Operands of the matrix instruction at which it waits.
  MatrixOperands matrices = {};
  WarpgroupOperands product = {};
  int64_t barriers = 0; ///< that it has reached
  /// Asynchronous copies in order, and how many of them end each group.
  struct Copy {
    void *to;
    const void *from;
    uint32_t bytes, sourceBytes;
  };
  std::vector<Copy> copies;
  std::vector<size_t> groups;
};

Thread &threadOf(const tessera_stub_thread *seen) {
  return *reinterpret_cast<Thread *>(const_cast<tessera_stub_thread *>(seen));
}

std::string text(const uint32_t *place) {
  return "(" + std::to_string(place[0]) + ", " + std::to_string(place[1]) + ", " +
         std::to_string(place[2]) + ")";
}

/// Stacks are reused: their creation costs more than the work of a thread.
class FiberPool {
public:
  Fiber *take() {
    if (idle.empty()) {
      fibers.push_back(std::make_unique<Fiber>());
      idle.push_back(fibers.back().get());
    }
    Fiber *fiber = idle.back();
    idle.pop_back();
    return fiber;
  }
  void give(Fiber *fiber) { idle.push_back(fiber); }

private:
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber *> idle;
};

FiberPool &fiberPool() {
  static thread_local FiberPool pool;
  return pool;
}

/// Orders of 0 to n - 1.
class Orders {
public:
  explicit Orders(const LaunchOrder &order) : kind(order.kind), random(order.seed) {}

  void fill(std::vector<uint32_t> &places, size_t count) {
    places.resize(count);
    std::iota(places.begin(), places.end(), 0u);
    if (kind == LaunchOrder::Kind::descending)
      std::reverse(places.begin(), places.end());
    if (kind == LaunchOrder::Kind::shuffled)
      for (size_t i = count; i > 1; --i) // std::shuffle depends on the library
        std::swap(places[i - 1], places[random() % i]);
  }
  bool changes() const { return kind == LaunchOrder::Kind::shuffled; }

private:
  LaunchOrder::Kind kind;
  std::mt19937_64 random;
};

/// Runs the blocks of a launch sequentially.
class Block {
public:
  Block(tessera_stub_kernel kernel, const GpuLaunch &launch, void *const *pointers, Orders &orders)
      : kernel(kernel), pointers(pointers), sharedBytes(launch.sharedBytes),
        shared(launch.sharedBytes + kSharedAlignment), orders(orders) {
    uint32_t extents[3];
    uint32_t count = 1;
    for (int i = 0; i < 3; ++i) {
      extents[i] = static_cast<uint32_t>(launch.block[i]);
      count *= extents[i];
    }
    threads.resize(count);
    auto begin = (reinterpret_cast<uintptr_t>(shared.data()) + kSharedAlignment - 1) &
                 ~uintptr_t(kSharedAlignment - 1);
    for (uint32_t i = 0; i < count; ++i) {
      Thread &thread = threads[i];
      thread.block = this;
      thread.index = i;
      thread.seen.shared = reinterpret_cast<void *>(begin);
      thread.seen.thread[0] = i % extents[0];
      thread.seen.thread[1] = i / extents[0] % extents[1];
      thread.seen.thread[2] = i / extents[0] / extents[1];
      for (int d = 0; d < 3; ++d) {
        thread.seen.threads[d] = extents[d];
        thread.seen.blocks[d] = static_cast<uint32_t>(launch.grid[d]);
      }
    }
    orders.fill(warps, (count + kWarp - 1) / kWarp);
    orders.fill(lanes, kWarp);
  }
  ~Block() {
    for (Thread &thread : threads)
      if (thread.fiber)
        fiberPool().give(thread.fiber);
  }

  Status run(uint32_t x, uint32_t y, uint32_t z) {
    // Shared memory is undefined on entry: it is filled with NaN to reveal reads before writes.
    std::memset(shared.data(), 0xff, shared.size());
    const tessera_stub_thread &any = threads[0].seen;
    if (races)
      races->enterBlock(x + any.blocks[0] * (y + any.blocks[1] * z), any.shared);
    for (Thread &thread : threads) {
      thread.state = Thread::State::fresh;
      thread.seen.block[0] = x;
      thread.seen.block[1] = y;
      thread.seen.block[2] = z;
      thread.barriers = 0;
      thread.copies.clear();
      thread.groups.clear();
    }
    products.begin(static_cast<uint32_t>(threads.size()), any.shared, sharedBytes);
    auto count = static_cast<uint32_t>(threads.size());
    while (true) {
      if (orders.changes())
        orders.fill(warps, warps.size());
      for (uint32_t warp : warps) {
        runWarp(kWarp * warp, std::min(kWarp * (warp + 1), count));
        if (!failure.empty())
          return Status::error(failure);
      }
      auto isDone = [](const Thread &thread) { return thread.state == Thread::State::done; };
      if (std::all_of(threads.begin(), threads.end(), isDone)) {
        std::string unfinished = products.finish();
        return unfinished.empty() ? Status() : Status::error(unfinished);
      }
      auto waits = [](const Thread &thread) { return thread.state == Thread::State::barrier; };
      if (!std::all_of(threads.begin(), threads.end(), waits))
        return stuck();
      if (races)
        races->passBarrier();
      for (Thread &thread : threads)
        thread.state = Thread::State::ready;
    }
  }

  int64_t dropBarrier = -1;     ///< LaunchOrder::dropBarrier
  bool exchangeWords = false;   ///< LaunchOrder::exchangeWords
  AccessCheck *races = nullptr; ///< null: accesses are not checked
  Warpgroups products;

  /// Ends the launch if `error`, of `thread`, is not empty.
  void check(Thread &thread, const std::string &error) {
    if (!error.empty())
      fail(thread, place(thread) + " " + error);
  }
  /// Reports reads by products.
  Warpgroups::Reader reader() {
    if (!races)
      return {};
    return [this](uint32_t thread, const void *address, int64_t count) {
      return races->access(thread, address, count, AccessKind::read);
    };
  }

  /// Ends the launch if an access of `thread`, whose memory `by` sees, races with another one.
  void access(Thread &thread, uint32_t by, const void *address, int64_t bytes, AccessKind kind) {
    if (!races)
      return;
    std::string race = races->access(by, address, bytes, kind);
    if (!race.empty())
      fail(thread, place(threads[by]) + " " + race);
  }
  void wait(Thread &thread, Thread::State state) {
    thread.state = state;
    thread.fiber->stop();
  }
  void fail(Thread &thread, std::string message) {
    failure = std::move(message);
    thread.fiber->stop();
  }

private:
  /// Runs the threads of the warp until all of them are done or wait for other warps.
  void runWarp(uint32_t begin, uint32_t end) {
    do {
      if (orders.changes())
        orders.fill(lanes, kWarp);
      for (uint32_t lane : lanes) {
        if (begin + lane >= end)
          continue;
        Thread &thread = threads[begin + lane];
        if (thread.state == Thread::State::fresh) {
          thread.fiber = fiberPool().take();
          thread.fiber->begin(&Block::enter, &thread);
        } else if (thread.state != Thread::State::ready) {
          continue;
        }
        thread.fiber->resume();
        if (!failure.empty())
          return;
        if (thread.state == Thread::State::done) {
          fiberPool().give(thread.fiber);
          thread.fiber = nullptr;
        }
      }
    } while (exchange(begin, end));
  }

  static void enter(void *argument) {
    auto *thread = static_cast<Thread *>(argument);
    thread->block->kernel(thread->block->pointers, &thread->seen);
    thread->state = Thread::State::done;
    thread->fiber->stop();
  }

  /// Completes the shuffles that all members have reached; false if there are none.
  bool exchange(uint32_t begin, uint32_t end) {
    bool any = false;
    for (uint32_t i = begin; i < end; ++i) {
      if (threads[i].state != Thread::State::shuffle)
        continue;
      uint32_t members = threads[i].members;
      bool whole = true;
      for (uint32_t lane = 0; lane < kWarp; ++lane)
        if (members >> lane & 1)
          whole &= begin + lane < end && threads[begin + lane].state == Thread::State::shuffle &&
                   threads[begin + lane].members == members;
      if (!whole)
        continue;
      uint32_t values[kWarp] = {}, ballot = 0;
      for (uint32_t lane = 0; lane < kWarp; ++lane)
        if (members >> lane & 1) {
          values[lane] = threads[begin + lane].value;
          ballot |= uint32_t(values[lane] != 0) << lane;
          if (threads[begin + lane].mode != threads[i].mode && failure.empty())
            failure = place(threads[begin + lane]) +
                      " shuffles, votes or waits where another lane of its warp does not";
        }
      if (races && threads[i].mode == TESSERA_STUB_WARP_BARRIER && members == ~uint32_t(0))
        races->passWarpBarrier(begin / kWarp);
      for (uint32_t lane = 0; lane < kWarp; ++lane)
        if (members >> lane & 1) {
          Thread &thread = threads[begin + lane];
          bool isBallot = thread.mode == TESSERA_STUB_BALLOT;
          if (isBallot || thread.mode == TESSERA_STUB_WARP_BARRIER) {
            thread.value = isBallot ? ballot : 0;
            thread.state = Thread::State::ready;
            continue;
          }
          uint32_t source = sourceLane(thread, lane);
          if (!(members >> source & 1))
            failure = place(thread) + " shuffles from lane " + std::to_string(source) +
                      ", which is not active";
          thread.value = values[source];
          thread.state = Thread::State::ready;
        }
      any = true;
    }
    any |= onMatrices(begin, end) || onProducts(begin, end);
    return any && failure.empty();
  }

  /// Executes a matrix instruction after all lanes of the warp have reached it; false before.
  bool onMatrices(uint32_t begin, uint32_t end) {
    if (threads[begin].state != Thread::State::matrices)
      return false;
    MatrixOperands *lanes[kWarp];
    for (uint32_t lane = 0; lane < kWarp; ++lane) {
      if (begin + lane >= end || threads[begin + lane].state != Thread::State::matrices)
        return false;
      lanes[lane] = &threads[begin + lane].matrices;
    }
    for (uint32_t lane = 1; lane < kWarp; ++lane)
      if (lanes[lane]->instruction != lanes[0]->instruction ||
          lanes[lane]->count != lanes[0]->count ||
          lanes[lane]->transposed != lanes[0]->transposed) {
        failure = place(threads[begin + lane]) +
                  " executes a different matrix instruction than lane 0 of its warp";
        return false;
      }
    execute(lanes);
    for (uint32_t lane = 0; lane < kWarp; ++lane)
      threads[begin + lane].state = Thread::State::ready;
    return true;
  }

  /// Begins a product of a warpgroup after all lanes of the warp have reached it; false before.
  bool onProducts(uint32_t begin, uint32_t end) {
    const WarpgroupOperands *lanes[kWarp];
    for (uint32_t lane = 0; lane < kWarp; ++lane) {
      if (begin + lane >= end || threads[begin + lane].state != Thread::State::products)
        return false;
      lanes[lane] = &threads[begin + lane].product;
    }
    if (std::string why = products.multiply(begin, lanes, reader()); !why.empty())
      failure = place(threads[begin]) + " " + why;
    for (uint32_t lane = 0; lane < kWarp; ++lane)
      threads[begin + lane].state = Thread::State::ready;
    return true;
  }

  /// The source lane as defined for shfl.sync in PTX.
  static uint32_t sourceLane(const Thread &thread, uint32_t lane) {
    uint32_t segment = thread.clamp >> 8 & 31, limit = thread.clamp & 31;
    uint32_t most = (lane & segment) | (limit & ~segment & 31), least = lane & segment;
    uint32_t operand = thread.operand & 31;
    switch (thread.mode) {
    case TESSERA_STUB_SHUFFLE_UP:
      return lane >= most + operand ? lane - operand : lane;
    case TESSERA_STUB_SHUFFLE_DOWN:
      return lane + operand <= most ? lane + operand : lane;
    case TESSERA_STUB_SHUFFLE_XOR:
      return (lane ^ operand) <= most ? lane ^ operand : lane;
    default:
      return (least | (operand & ~segment & 31)) <= most ? (least | (operand & ~segment & 31))
                                                         : lane;
    }
  }

  std::string place(const Thread &thread) const {
    return "thread " + text(thread.seen.thread) + " of block " + text(thread.seen.block);
  }

  Status stuck() const {
    const Thread *waiting = nullptr, *other = nullptr;
    for (const Thread &thread : threads) {
      bool waits =
          thread.state == Thread::State::barrier || thread.state == Thread::State::shuffle ||
          thread.state == Thread::State::matrices || thread.state == Thread::State::products;
      if (waits && !waiting)
        waiting = &thread;
    }
    for (const Thread &thread : threads)
      if (thread.state != waiting->state && !other)
        other = &thread;
    std::string message = place(*waiting) + " waits at a " +
                          (waiting->state == Thread::State::barrier   ? "barrier"
                           : waiting->state == Thread::State::shuffle ? "shuffle"
                                                                      : "matrix product");
    if (other)
      message += " that " + place(*other) +
                 (other->state == Thread::State::done ? " never reaches: it has returned"
                                                      : " does not reach: it waits elsewhere");
    return Status::error(message);
  }

  tessera_stub_kernel kernel;
  void *const *pointers;
  std::vector<Thread> threads;
  int64_t sharedBytes;
  std::vector<char> shared;
  Orders &orders;
  std::vector<uint32_t> warps, lanes; ///< in the order in which they run
  std::string failure;
};

void barrier(const tessera_stub_thread *seen) {
  Thread &thread = threadOf(seen);
  if (thread.barriers++ != thread.block->dropBarrier)
    thread.block->wait(thread, Thread::State::barrier);
}

uint32_t shuffle(const tessera_stub_thread *seen, uint32_t members, uint32_t value,
                 uint32_t operand, uint32_t clamp, uint32_t mode) {
  Thread &thread = threadOf(seen);
  thread.members = members;
  thread.value = value;
  thread.operand = operand;
  thread.clamp = clamp;
  thread.mode = mode;
  thread.block->wait(thread, Thread::State::shuffle);
  return thread.value;
}

void access(const tessera_stub_thread *seen, const void *address, int64_t bytes,
            uint32_t resolution, uint32_t writes) {
  Thread &thread = threadOf(seen);
  if (thread.block->races)
    thread.block->races->setResolution(resolution);
  thread.block->access(thread, thread.index, address, bytes,
                       writes ? AccessKind::write : AccessKind::read);
  if (writes)
    thread.block->products.recordWrite(thread.index, address, bytes);
}

void misaligned(const tessera_stub_thread *seen, const void *address, int64_t bytes,
                int64_t alignment) {
  Thread &thread = threadOf(seen);
  auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(address) %
                                   static_cast<uintptr_t>(alignment));
  thread.block->fail(thread, "thread " + text(seen->thread) + " of block " + text(seen->block) +
                                 " accesses " + std::to_string(bytes) + " bytes at an address " +
                                 std::to_string(past) + " past a multiple of " +
                                 std::to_string(alignment));
}

void checkAlignment(const tessera_stub_thread *seen, const void *address, int64_t bytes,
                    int64_t alignment) {
  if (reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(alignment) != 0)
    misaligned(seen, address, bytes, alignment);
}

void loadMatrices(const tessera_stub_thread *seen, uint32_t count, uint32_t transposed,
                  const void *row, uint32_t *result) {
  constexpr int64_t kRowBytes = 16;
  Thread &thread = threadOf(seen);
  if (thread.index % kWarp < 8 * count) { // the other addresses are not used
    checkAlignment(seen, row, kRowBytes, kRowBytes);
    // Several lanes receive a part of the row.
    for (uint32_t reader : {thread.index, thread.index ^ 1})
      thread.block->access(thread, reader, row, kRowBytes, AccessKind::read);
  }
  thread.matrices = {MatrixInstruction::load};
  thread.matrices.count = count;
  thread.matrices.transposed = transposed != 0;
  thread.matrices.row = row;
  thread.matrices.loaded = result;
  thread.block->wait(thread, Thread::State::matrices);
}

void multiplyMatrices(const tessera_stub_thread *seen, uint32_t type, const uint32_t *a,
                      const uint32_t *b, const float *c, float *d) {
  Thread &thread = threadOf(seen);
  thread.matrices = {type == TESSERA_STUB_MATRIX_TF32   ? MatrixInstruction::multiplyTf32
                     : type == TESSERA_STUB_MATRIX_BF16 ? MatrixInstruction::multiplyBf16
                                                        : MatrixInstruction::multiplyF16};
  const uint32_t exchanged[] = {a[0], a[2], a[1], a[3]}; // until all lanes are here
  thread.matrices.a = thread.block->exchangeWords ? exchanged : a;
  thread.matrices.b = b;
  thread.matrices.c = c;
  thread.matrices.d = d;
  thread.block->wait(thread, Thread::State::matrices);
}

void outOfBounds(const tessera_stub_thread *seen, uint32_t argument, int64_t offset,
                 int64_t bytes) {
  Thread &thread = threadOf(seen);
  thread.block->fail(thread, "thread " + text(seen->thread) + " of block " + text(seen->block) +
                                 " accesses " + std::to_string(bytes) + " bytes at byte " +
                                 std::to_string(offset) + " of argument " +
                                 std::to_string(argument) + ", beyond its end");
}

/// Writes NaN at once, and the bytes when they are waited for: a copy that begins while others read
/// its destination is found as well as a missing wait.
void copyAsync(const tessera_stub_thread *seen, void *to, const void *from, uint32_t bytes,
               uint32_t sourceBytes) {
  checkAlignment(seen, to, bytes, bytes);
  if (sourceBytes > 0)
    checkAlignment(seen, from, bytes, bytes);
  Thread &thread = threadOf(seen);
  thread.block->access(thread, thread.index, to, bytes, AccessKind::copyBegin);
  thread.block->products.recordWrite(thread.index, to, bytes);
  std::memset(to, 0xff, bytes);
  thread.copies.push_back({to, from, bytes, sourceBytes});
}

void commitCopies(const tessera_stub_thread *seen) {
  Thread &thread = threadOf(seen);
  thread.groups.push_back(thread.copies.size());
}

void waitCopies(const tessera_stub_thread *seen, uint32_t groups) {
  Thread &thread = threadOf(seen);
  if (thread.groups.size() <= groups)
    return;
  auto last = thread.groups.end() - groups;
  size_t count = *(last - 1);
  for (size_t i = 0; i < count; ++i) {
    const Thread::Copy &copy = thread.copies[i];
    thread.block->access(thread, thread.index, copy.to, copy.bytes, AccessKind::copyEnd);
    std::memset(copy.to, 0, copy.bytes);
    std::memcpy(copy.to, copy.from, copy.sourceBytes);
  }
  thread.copies.erase(thread.copies.begin(), thread.copies.begin() + count);
  thread.groups.erase(thread.groups.begin(), last);
  for (size_t &end : thread.groups)
    end -= count;
  for (const Thread::Copy &copy : thread.copies) // which may be under way to the same place
    std::memset(copy.to, 0xff, copy.bytes);
}

void multiplyWarpgroup(const tessera_stub_thread *seen, uint32_t columns, uint32_t form,
                       const uint32_t *a, uint64_t left, uint64_t right, float *sums) {
  Thread &thread = threadOf(seen);
  WarpgroupOperands &product = thread.product;
  product = {columns, (form & TESSERA_STUB_PRODUCT_BF16) != 0,
             (form & TESSERA_STUB_PRODUCT_ACCUMULATES) != 0,
             (form & TESSERA_STUB_PRODUCT_TRANSPOSED_A) != 0,
             (form & TESSERA_STUB_PRODUCT_TRANSPOSED_B) != 0};
  product.leftInRegisters = a != nullptr;
  if (a)
    std::copy(a, a + 4, product.a);
  product.left = left;
  product.right = right;
  product.sums = sums;
  thread.block->wait(thread, Thread::State::products);
}

void fenceProducts(const tessera_stub_thread *seen) {
  Thread &thread = threadOf(seen);
  thread.block->products.fence(thread.index);
}

void commitProducts(const tessera_stub_thread *seen) {
  Thread &thread = threadOf(seen);
  thread.block->products.commit(thread.index);
}

void waitProducts(const tessera_stub_thread *seen, uint32_t groups, uint32_t count, float *values) {
  Thread &thread = threadOf(seen);
  Block &block = *thread.block;
  block.check(thread, block.products.wait(thread.index, groups, count, values, block.reader()));
}

void fenceProxy(const tessera_stub_thread *seen) {
  Thread &thread = threadOf(seen);
  thread.block->products.fenceProxy(thread.index);
}

/// 1 or -1, for errors in both directions.
double signOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return (bits * 0x9e3779b9u) >> 31 ? 1 : -1;
}

float exp2Approx(float x, uint32_t flush) {
  constexpr float kLeast = std::numeric_limits<float>::min();
  if (flush && std::abs(x) < kLeast)
    x = 0;
  double exact = std::exp2(static_cast<double>(x));
  auto nearest = static_cast<float>(exact);
  if (x != 0 && std::isfinite(nearest) && nearest > 0) {
    // At most two units in the last place from the exact value.
    double unit = std::max(std::ldexp(1.0, std::ilogb(nearest) - 23), 0x1p-149);
    nearest = static_cast<float>(exact + 1.5 * signOf(x) * unit);
  }
  return flush && nearest < kLeast ? 0.0f : nearest;
}

float tanhApprox(float x) {
  if (!std::isfinite(x))
    return std::tanh(x);
  double result = std::tanh(static_cast<double>(x)) * (1 + signOf(x) * 0x1p-11);
  return static_cast<float>(std::clamp(result, -1.0, 1.0));
}

} // namespace

const tessera_stub_api &stubApi() {
  static const tessera_stub_api api = {
      TESSERA_STUB_VERSION, barrier,      shuffle,   loadMatrices,      multiplyMatrices,
      exp2Approx,           tanhApprox,   copyAsync, commitCopies,      waitCopies,
      outOfBounds,          misaligned,   access,    multiplyWarpgroup, fenceProducts,
      commitProducts,       waitProducts, fenceProxy};
  return api;
}

std::string toString(const LaunchOrder &order) {
  switch (order.kind) {
  case LaunchOrder::Kind::descending:
    return "descending";
  case LaunchOrder::Kind::shuffled:
    return "shuffled (seed " + std::to_string(order.seed) + ")";
  default:
    return "ascending";
  }
}

Status launch(const StubKernelLibrary &library, const GpuLaunch &launch, void *const *pointers,
              const LaunchOrder &order) {
  tessera_stub_kernel kernel = library.find(launch.symbol);
  if (!kernel)
    return Status::error("no image defines the kernel '" + launch.symbol + "'");
  Orders orders(order);
  Block block(kernel, launch, pointers, orders);
  block.dropBarrier = order.dropBarrier;
  block.exchangeWords = order.exchangeWords;
  block.products.fault = order.warpgroupFault;
  std::optional<AccessCheck> races;
  if (order.checkAccesses)
    block.races = &races.emplace(launch, pointers);
  std::vector<uint32_t> places;
  orders.fill(places, static_cast<size_t>(launch.grid[0] * launch.grid[1] * launch.grid[2]));
  for (int64_t place : places) {
    int64_t x = place % launch.grid[0], y = place / launch.grid[0] % launch.grid[1],
            z = place / launch.grid[0] / launch.grid[1];
    Status status =
        block.run(static_cast<uint32_t>(x), static_cast<uint32_t>(y), static_cast<uint32_t>(z));
    if (!status.ok())
      return status.in("kernel '" + launch.symbol + "'");
  }
  return {};
}

} // namespace tessera::runtime
