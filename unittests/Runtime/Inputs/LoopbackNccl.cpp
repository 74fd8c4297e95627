//===- LoopbackNccl.cpp - NCCL between processes of one host --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of NCCL that the runtime calls, between processes or threads with
// FakeCuda's memory. Ranks communicate by shared memory, with one ring of bytes per
// ordered pair of ranks. Contributions are added in rank order, 16-bit floats in f32.
// As with NCCL, creation of a communicator is in progress until all ranks have joined,
// calls of a group begin together, and an aborted communicator ends its calls.
// LOOPBACK_NCCL_TRACE prints the name of each call; LOOPBACK_NCCL_SIGNAL sends a signal
// to the process at its next call.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <fcntl.h>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
enum { kSuccess = 0, kSystemError = 2, kInvalidArgument = 4, kInvalidUsage = 5, kInProgress = 7 };
enum { kSum = 0, kProd, kMax, kMin, kAvg, kScaled };
constexpr int kMostRanks = 64, kMostSplits = 64;
constexpr size_t kRing = 1 << 14;

struct Id {
  char bytes[128];
};

/// From one rank to another.
struct Ring {
  std::atomic<uint64_t> written, read;
  unsigned char data[kRing];
};
struct Share { ///< of a rank, in a split
  std::atomic<int> given;
  int color, key;
};
struct Shared {
  std::atomic<int> joined;
  Share shares[kMostSplits][kMostRanks];
  Ring rings[1]; ///< ranks squared
};

struct Transfer {
  int peer;
  bool sends;
  unsigned char *data;
  size_t bytes, done = 0;
};
/// Simultaneous calls of a rank, and their continuation.
struct Calls {
  std::vector<Transfer> transfers;
  std::vector<std::function<void()>> finish;
};

struct Comm {
  std::string name;
  int rank = 0, ranks = 0;
  Shared *shared = nullptr;
  int splits = 0;
  std::atomic<bool> isAborted{false};
  // A split in progress.
  Comm **child = nullptr;
  std::map<int, double> factors; ///< by operation
};

bool isTraced() {
  return std::getenv("LOOPBACK_NCCL_TRACE") != nullptr;
}

Ring &ringOf(const Comm &comm, int from, int to) {
  return comm.shared->rings[from * comm.ranks + to];
}

int join(Comm &comm) {
  if (comm.ranks > kMostRanks || comm.rank < 0 || comm.rank >= comm.ranks)
    return kInvalidArgument;
  size_t size = sizeof(Shared) + sizeof(Ring) * static_cast<size_t>(comm.ranks * comm.ranks);
  int file = ::shm_open(comm.name.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(size)) != 0)
    return kSystemError;
  void *data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (data == MAP_FAILED)
    return kSystemError;
  comm.shared = static_cast<Shared *>(data);
  if (++comm.shared->joined == comm.ranks)
    ::shm_unlink(comm.name.c_str()); // all ranks have mapped it
  return kInProgress;
}

/// The child of a split, once all ranks have passed their colors.
int settle(Comm &comm) {
  Share *shares = comm.shared->shares[comm.splits - 1];
  for (int rank = 0; rank < comm.ranks; ++rank)
    if (!shares[rank].given)
      return kInProgress;
  Comm **target = std::exchange(comm.child, nullptr);
  int color = shares[comm.rank].color;
  *target = nullptr;
  if (color < 0)
    return kSuccess;
  std::vector<std::pair<int, int>> members; ///< key, rank
  for (int rank = 0; rank < comm.ranks; ++rank)
    if (shares[rank].color == color)
      members.emplace_back(shares[rank].key, rank);
  std::sort(members.begin(), members.end());
  auto *made = new Comm;
  made->name = comm.name + "-" + std::to_string(comm.splits) + "-" + std::to_string(color);
  made->ranks = static_cast<int>(members.size());
  for (int i = 0; i < made->ranks; ++i)
    if (members[i].second == comm.rank)
      made->rank = i;
  *target = made;
  return join(*made) == kInProgress ? kSuccess : kSystemError;
}

bool advance(Comm &comm, Transfer &each) {
  Ring &ring = each.sends ? ringOf(comm, comm.rank, each.peer) : ringOf(comm, each.peer, comm.rank);
  uint64_t written = ring.written, read = ring.read;
  size_t count = std::min(each.bytes - each.done,
                          each.sends ? kRing - (written - read) : size_t(written - read));
  for (size_t moved = 0; moved < count;) {
    size_t at = ((each.sends ? written : read) + moved) % kRing;
    size_t piece = std::min(count - moved, kRing - at);
    if (each.sends)
      std::memcpy(ring.data + at, each.data + each.done, piece);
    else
      std::memcpy(each.data + each.done, ring.data + at, piece);
    moved += piece;
    each.done += piece;
  }
  (each.sends ? ring.written : ring.read) += count;
  return count > 0;
}

void run(Comm &comm, Calls &calls) {
  if (const char *signal = std::getenv("LOOPBACK_NCCL_SIGNAL"))
    std::raise(std::atoi(signal));
  std::vector<Transfer> open = calls.transfers;
  while (!open.empty() && !comm.isAborted) {
    bool hasMoved = false;
    std::map<std::pair<int, bool>, bool> isBusy; // messages between two ranks are sequential
    for (Transfer &each : open) {
      bool &before = isBusy[{each.peer, each.sends}];
      if (!before)
        hasMoved |= advance(comm, each);
      before |= each.done < each.bytes;
    }
    std::erase_if(open, [](const Transfer &each) { return each.done == each.bytes; });
    if (!hasMoved && !open.empty())
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  if (open.empty())
    for (const auto &each : calls.finish)
      each();
}

size_t sizeOf(int type) {
  constexpr size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return type >= 0 && type < 10 ? kSizes[type] : 0;
}

float halfOf(uint16_t bits, bool isBrain) {
  if (isBrain) {
    uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
  }
  _Float16 half;
  std::memcpy(&half, &bits, 2);
  return static_cast<float>(half);
}
uint16_t bitsOf(float value, bool isBrain) {
  if (isBrain) {
    uint32_t wide;
    std::memcpy(&wide, &value, 4);
    return static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
  }
  auto half = static_cast<_Float16>(value);
  uint16_t bits;
  std::memcpy(&bits, &half, 2);
  return bits;
}

template <typename T, typename Load, typename Store>
void combineAs(const std::vector<const unsigned char *> &parts, unsigned char *out, size_t count,
               int op, double factor, Load load, Store store) {
  for (size_t i = 0; i < count; ++i) {
    T value = load(parts[0], i);
    for (size_t p = 1; p < parts.size(); ++p) {
      T other = load(parts[p], i);
      value = op == kProd  ? static_cast<T>(value * other)
              : op == kMax ? std::max(value, other)
              : op == kMin ? std::min(value, other)
                           : static_cast<T>(value + other);
    }
    store(out, i,
          static_cast<T>(factor == 1 ? value : static_cast<T>(value * static_cast<T>(factor))));
  }
}

template <typename T>
void combine(const std::vector<const unsigned char *> &parts, unsigned char *out, size_t count,
             int op, double factor) {
  combineAs<T>(
      parts, out, count, op, factor,
      [](const unsigned char *from, size_t i) { return reinterpret_cast<const T *>(from)[i]; },
      [](unsigned char *to, size_t i, T value) { reinterpret_cast<T *>(to)[i] = value; });
}

void combine(int type, const std::vector<const unsigned char *> &parts, unsigned char *out,
             size_t count, int op, double factor) {
  bool isBrain = type == 9;
  switch (type) {
  case 0:
    return combine<int8_t>(parts, out, count, op, factor);
  case 1:
    return combine<uint8_t>(parts, out, count, op, factor);
  case 2:
  case 4: // sums and products wrap around, which is undefined for signed integers
    if (op == kMax || op == kMin)
      return type == 2 ? combine<int32_t>(parts, out, count, op, factor)
                       : combine<int64_t>(parts, out, count, op, factor);
    return combine(type + 1, parts, out, count, op, factor);
  case 3:
    return combine<uint32_t>(parts, out, count, op, factor);
  case 5:
    return combine<uint64_t>(parts, out, count, op, factor);
  case 7:
    return combine<float>(parts, out, count, op, factor);
  case 8:
    return combine<double>(parts, out, count, op, factor);
  default:
    return combineAs<float>(
        parts, out, count, op, factor,
        [=](const unsigned char *from, size_t i) {
          return halfOf(reinterpret_cast<const uint16_t *>(from)[i], isBrain);
        },
        [=](unsigned char *to, size_t i, float value) {
          reinterpret_cast<uint16_t *>(to)[i] = bitsOf(value, isBrain);
        });
  }
}

/// Calls of this thread's group, by communicator and stream.
thread_local int depth = 0;
thread_local std::vector<std::tuple<Comm *, void *, Calls>> pending;

int issue(Comm *comm, void *stream, Calls calls) {
  using Wait = void (*)(void *, void (*)(void *), void *);
  static auto wait = reinterpret_cast<Wait>(::dlsym(RTLD_DEFAULT, "fake_cuda_wait"));
  auto work = [comm, calls = std::move(calls)]() mutable { run(*comm, calls); };
  // Never freed: a graph may run it again.
  auto *kept = new std::function<void()>(std::move(work));
  if (!wait)
    (*kept)();
  else
    wait(
        stream, [](void *each) { (*static_cast<std::function<void()> *>(each))(); }, kept);
  return kSuccess;
}

int add(Comm *comm, void *stream, Calls calls, const char *name) {
  if (isTraced())
    std::fprintf(stderr, "nccl: %s\n", name);
  for (const Transfer &each : calls.transfers)
    if (each.peer < 0 || each.peer >= comm->ranks)
      return kInvalidArgument;
  if (depth == 0)
    return issue(comm, stream, std::move(calls));
  for (auto &[other, itsStream, before] : pending)
    if (other == comm && itsStream == stream) {
      before.transfers.insert(before.transfers.end(), calls.transfers.begin(),
                              calls.transfers.end());
      before.finish.insert(before.finish.end(), calls.finish.begin(), calls.finish.end());
      return kSuccess;
    }
  pending.emplace_back(comm, stream, std::move(calls));
  return kSuccess;
}

using Bytes = std::shared_ptr<std::vector<unsigned char>>;
unsigned char *at(const void *data, size_t offset = 0) {
  return static_cast<unsigned char *>(const_cast<void *>(data)) + offset;
}

/// Gathers a part of each rank's `send`, starting at its `offset`, the offset of this rank.
void gatherInto(Calls &calls, const Comm &comm, const void *send, size_t bytes, bool toThisRank,
                const std::vector<std::pair<int, size_t>> &to,
                std::function<void(const std::vector<const unsigned char *> &)> then) {
  for (auto [peer, offset] : to)
    if (peer != comm.rank)
      calls.transfers.push_back({peer, true, at(send, offset), bytes});
  if (!toThisRank)
    return;
  auto memory = std::make_shared<std::vector<unsigned char>>(bytes * comm.ranks + 1);
  std::vector<const unsigned char *> parts;
  size_t own = 0;
  for (auto [peer, offset] : to)
    if (peer == comm.rank)
      own = offset;
  for (int peer = 0; peer < comm.ranks; ++peer) {
    unsigned char *place = memory->data() + bytes * peer;
    if (peer != comm.rank)
      calls.transfers.push_back({peer, false, place, bytes});
    parts.push_back(peer == comm.rank ? at(send, own) : place);
  }
  calls.finish.push_back([=] { then(parts), (void)memory; });
}

int reduceTo(Comm *comm, void *stream, const void *send, void *receive, size_t count, int type,
             int op, const std::vector<std::pair<int, size_t>> &to, bool toThisRank,
             const char *name) {
  size_t bytes = count * sizeOf(type);
  if (bytes == 0 && count > 0)
    return kInvalidArgument;
  double factor = op == kAvg ? 1.0 / comm->ranks : 1;
  if (op >= kScaled) {
    auto known = comm->factors.find(op);
    if (known == comm->factors.end())
      return kInvalidArgument;
    factor = known->second;
  }
  Calls calls;
  gatherInto(calls, *comm, send, bytes, toThisRank, to,
             [=](const auto &parts) { combine(type, parts, at(receive), count, op, factor); });
  return add(comm, stream, std::move(calls), name);
}
} // namespace

EXPORT int ncclGetVersion(int *version) {
  const char *text = std::getenv("FAKE_NCCL_VERSION");
  *version = text ? std::atoi(text) : 23000; // ranks may share a GPU
  return kSuccess;
}
EXPORT const char *ncclGetErrorString(int error) {
  return error == kInvalidArgument ? "invalid argument"
         : error == kSystemError   ? "unhandled system error"
                                   : "internal error";
}
EXPORT int ncclGetUniqueId(Id *id) {
  static std::atomic<int> count{0};
  std::memset(id, 0, sizeof(*id));
  std::snprintf(
      id->bytes, sizeof(id->bytes), "/loopback-nccl-%d-%d-%llx", ::getpid(), count++,
      static_cast<unsigned long long>(std::chrono::steady_clock::now().time_since_epoch().count()));
  return kSuccess;
}
EXPORT int ncclCommInitRankConfig(Comm **made, int ranks, Id id, int rank, void *) {
  *made = new Comm;
  (*made)->name = id.bytes;
  (*made)->rank = rank;
  (*made)->ranks = ranks;
  return join(**made);
}
EXPORT int ncclCommSplit(Comm *comm, int color, int key, Comm **made, void *) {
  if (comm->splits == kMostSplits)
    return kInvalidUsage;
  *made = nullptr;
  Share &mine = comm->shared->shares[comm->splits++][comm->rank];
  mine.color = color;
  mine.key = key;
  mine.given = 1;
  comm->child = made;
  return kInProgress;
}
EXPORT int ncclCommGetAsyncError(Comm *comm, int *state) {
  *state = comm->shared->joined < comm->ranks ? kInProgress
           : comm->child                      ? settle(*comm)
                                              : kSuccess;
  return kSuccess;
}
EXPORT int ncclCommUserRank(const Comm *comm, int *rank) {
  *rank = comm->rank;
  return kSuccess;
}
EXPORT int ncclCommCount(const Comm *comm, int *count) {
  *count = comm->ranks;
  return kSuccess;
}
EXPORT int ncclCommAbort(Comm *comm) {
  comm->isAborted = true; // its streams may still use it
  return kSuccess;
}
EXPORT int ncclCommFinalize(Comm *) {
  return kSuccess;
}
EXPORT int ncclCommDestroy(Comm *comm) {
  return ncclCommAbort(comm);
}
EXPORT int ncclGroupStart() {
  ++depth;
  return kSuccess;
}
EXPORT int ncclGroupEnd() {
  if (--depth > 0)
    return kSuccess;
  for (auto &[comm, stream, calls] : std::exchange(pending, {}))
    issue(comm, stream, std::move(calls));
  return kSuccess;
}
EXPORT int ncclRedOpCreatePreMulSum(int *op, void *scalar, int type, int, Comm *comm) {
  *op = kScaled + static_cast<int>(comm->factors.size());
  double factor = 0;
  if (type == 7) {
    float value;
    std::memcpy(&value, scalar, 4);
    factor = value;
  } else if (type == 8) {
    std::memcpy(&factor, scalar, 8);
  } else if (type == 6 || type == 9) {
    uint16_t bits;
    std::memcpy(&bits, scalar, 2);
    factor = halfOf(bits, type == 9);
  } else {
    return kInvalidArgument;
  }
  comm->factors[*op] = factor;
  return kSuccess;
}
EXPORT int ncclAllReduce(const void *send, void *receive, size_t count, int type, int op,
                         Comm *comm, void *stream) {
  std::vector<std::pair<int, size_t>> to;
  for (int peer = 0; peer < comm->ranks; ++peer)
    to.emplace_back(peer, 0);
  return reduceTo(comm, stream, send, receive, count, type, op, to, true, "all_reduce");
}
EXPORT int ncclReduce(const void *send, void *receive, size_t count, int type, int op, int root,
                      Comm *comm, void *stream) {
  return reduceTo(comm, stream, send, receive, count, type, op, {{root, 0}}, comm->rank == root,
                  "reduce");
}
EXPORT int ncclReduceScatter(const void *send, void *receive, size_t count, int type, int op,
                             Comm *comm, void *stream) {
  std::vector<std::pair<int, size_t>> to;
  for (int peer = 0; peer < comm->ranks; ++peer)
    to.emplace_back(peer, peer * count * sizeOf(type));
  return reduceTo(comm, stream, send, receive, count, type, op, to, true, "reduce_scatter");
}
EXPORT int ncclAllGather(const void *send, void *receive, size_t count, int type, Comm *comm,
                         void *stream) {
  size_t bytes = count * sizeOf(type);
  Calls calls;
  for (int peer = 0; peer < comm->ranks; ++peer)
    if (peer != comm->rank) {
      calls.transfers.push_back({peer, true, at(send), bytes});
      calls.transfers.push_back({peer, false, at(receive, peer * bytes), bytes});
    }
  calls.finish.push_back([=] { std::memmove(at(receive, comm->rank * bytes), send, bytes); });
  return add(comm, stream, std::move(calls), "all_gather");
}
EXPORT int ncclBroadcast(const void *send, void *receive, size_t count, int type, int root,
                         Comm *comm, void *stream) {
  size_t bytes = count * sizeOf(type);
  Calls calls;
  if (comm->rank != root)
    calls.transfers.push_back({root, false, at(receive), bytes});
  for (int peer = 0; peer < comm->ranks && comm->rank == root; ++peer)
    if (peer != root)
      calls.transfers.push_back({peer, true, at(send), bytes});
  if (comm->rank == root)
    calls.finish.push_back([=] { std::memmove(receive, send, bytes); });
  return add(comm, stream, std::move(calls), "broadcast");
}
EXPORT int ncclSend(const void *send, size_t count, int type, int peer, Comm *comm, void *stream) {
  Calls calls;
  calls.transfers.push_back({peer, true, at(send), count * sizeOf(type)});
  return add(comm, stream, std::move(calls), "send");
}
EXPORT int ncclRecv(void *receive, size_t count, int type, int peer, Comm *comm, void *stream) {
  Calls calls;
  calls.transfers.push_back({peer, false, at(receive), count * sizeOf(type)});
  return add(comm, stream, std::move(calls), "receive");
}
