//===- tessera_groups.h - Process groups in C ---------------------*- C -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collectives and messages between the processes of a job, on memory of the
// host or of a device. The rules of tessera_rt.h hold, and:
//
// * All ranks of a group make the same calls in the same order. If collective,
//   type, count or root differ, the call fails on all of them with the same
//   message, before data moves, and the group stays usable.
// * Calls return works. Buffers belong to a work until it has ended.
// * A rank that ends, or does not call within the timeout, ends the job: this call
//   and all later ones fail, with the missing ranks.
// * A group may be used by several threads, if all ranks call in the same order.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_TESSERA_GROUPS_H
#define TESSERA_RUNTIME_TESSERA_GROUPS_H

#include "tessera/Runtime/tessera_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Some ranks of a job that call each other.
typedef struct tessera_group tessera_group;
/// A call in progress, or ended, with its error.
typedef struct tessera_work tessera_work;

/// What every rank of a job gives to join its group.
typedef struct tessera_group_options {
  size_t struct_size; ///< sizeof(tessera_group_options)
  /// "tcp", "mpi", "threads" (ranks are threads of this process), or a registered one, for host
  /// memory; "nccl" for memory of the GPU of the local rank; "cpu:tcp,cuda:nccl" for both. The
  /// first call that needs the GPU opens it; "nccl" alone opens it immediately.
  const char *backend;
  /// The rendezvous of ranks: "HOST PORT", on which rank 0 listens; "file:PATH", a path visible to
  /// all ranks where no file exists yet; for threads any text.
  const char *address;
  const char *token; ///< the job's secret, at least 16 bytes; null: all ranks are on one host
  int64_t rank, size, local_rank;
  double timeout; ///< seconds; of the rendezvous and of each call
} tessera_group_options;

/// The group of all ranks. Waits for all of them; fails after the timeout, naming the missing ones.
TESSERA_RT_API tessera_status tessera_group_open(const tessera_group_options *options,
                                                 tessera_group **group);
/// A group of some ranks, ascending. Called by all ranks of `parent`, with the same ranks. `*group`
/// is null for those outside of it.
TESSERA_RT_API tessera_status tessera_group_new(tessera_group *parent, const int64_t *ranks,
                                                int64_t count, double timeout,
                                                tessera_group **group);
/// Closing the last group of a job ends pending calls.
TESSERA_RT_API void tessera_group_close(tessera_group *group);
/// The number of its ranks.
TESSERA_RT_API int64_t tessera_group_size(const tessera_group *group);
/// The rank of the job at a place of the group.
TESSERA_RT_API int64_t tessera_group_member(const tessera_group *group, int64_t place);
/// The host of a rank of the job; null for others.
TESSERA_RT_API const char *tessera_group_host(const tessera_group *group, int64_t rank);
/// The names of all backends, separated by spaces.
TESSERA_RT_API const char *tessera_group_backends(void);

/// A collective. Counts are in elements: for all_reduce, reduce and broadcast one count, the size
/// of the buffer; for all_gather and gather the contribution of each rank; for reduce_scatter and
/// scatter the result of each rank; for all_to_all the elements that this rank sends to each rank,
/// and `receives`, those that it gets from each. In place: all_reduce, reduce and broadcast use one
/// buffer, all_gather and gather send from their position in `output`, reduce_scatter and scatter
/// receive at theirs in `input`.
typedef struct tessera_collective {
  size_t struct_size; ///< sizeof(tessera_collective)
  /// "all_reduce", "reduce", "broadcast", "all_gather", "gather", "reduce_scatter", "scatter",
  /// "all_to_all", "barrier"
  const char *kind;
  const char *type;      ///< "f32", "bf16", "i64", "u8", … ("i1" is a byte, 0 or 1)
  const char *reduction; ///< "sum", "avg", "max", "min", "prod", "band", "bor", "bxor"; or null
  int64_t root;          ///< rank of the job
  const int64_t *counts;
  int64_t num_counts;
  const int64_t *receives; ///< as many; for all_to_all
  const void *input;
  void *output;
  const char *algorithm; ///< null: chosen; contributions are added in the order of ranks
  const char *where;     ///< of the caller, for messages: "train.py:12"; or null
  /// The memory of the buffers: "cpu" or "cuda"; null: the host, also for a GPU backend.
  const char *device;
  /// For "cuda": the call runs after the work issued to this stream; null is the default stream.
  /// After the end of the call, results are visible to all streams.
  void *stream;
  /// For "cuda": the parts of each rank, if they are not contiguous; else null.
  const void *const *inputs;
  void *const *outputs;
} tessera_collective;

/// Starts a collective, or a barrier, which reads `kind` and `where` alone. An invalid one, and one
/// that differs between ranks, is an error of the work, on all ranks.
TESSERA_RT_API tessera_status tessera_group_call(tessera_group *group,
                                                 const tessera_collective *collective,
                                                 tessera_work **work);
/// The algorithm of a call.
TESSERA_RT_API tessera_status tessera_group_algorithm(tessera_group *group,
                                                      const tessera_collective *collective,
                                                      const char **algorithm);
/// The bytes that this rank sends to each rank of the group in a call, by place: one number per
/// rank.
TESSERA_RT_API tessera_status tessera_group_sent_bytes(tessera_group *group,
                                                       const tessera_collective *collective,
                                                       int64_t *bytes);
/// Rejects the call that the others make, which fails on all ranks with this reason.
TESSERA_RT_API tessera_status tessera_group_refuse(tessera_group *group, const char *reason,
                                                   tessera_work **work);
/// Messages in host memory. `what` is compared with that of the other end: "16 f32". `peer` is a
/// rank of the job; in a receive -1 means any. Tags are 0 or more.
TESSERA_RT_API tessera_status tessera_group_send(tessera_group *group, int64_t peer, int64_t tag,
                                                 const void *data, size_t bytes, const char *what,
                                                 tessera_work **work);
TESSERA_RT_API tessera_status tessera_group_receive(tessera_group *group, int64_t peer, int64_t tag,
                                                    void *data, size_t bytes, const char *what,
                                                    tessera_work **work);
/// The same for device memory, through the host. The data may be reused when the function returns.
TESSERA_RT_API tessera_status tessera_group_send_from_device(tessera_group *group, int64_t peer,
                                                             int64_t tag, const void *data,
                                                             size_t bytes, const char *what,
                                                             void *stream, tessera_work **work);
TESSERA_RT_API tessera_status tessera_group_receive_to_device(tessera_group *group, int64_t peer,
                                                              int64_t tag, void *data, size_t bytes,
                                                              const char *what,
                                                              tessera_work **work);

/// 1 if the work has ended, or failed.
TESSERA_RT_API int tessera_work_is_completed(const tessera_work *work);
/// Waits for the end, at most `seconds`; 1 if the work has ended.
TESSERA_RT_API int tessera_work_wait_for(const tessera_work *work, double seconds);
/// Waits for the end; returns the error of the call.
TESSERA_RT_API tessera_status tessera_work_wait(tessera_work *work);
/// The source of a receive; -1 for other works.
TESSERA_RT_API int64_t tessera_work_source(const tessera_work *work);
/// Releases the handle; the work continues.
TESSERA_RT_API void tessera_work_free(tessera_work *work);

//===----------------------------------------------------------------------===//
// External backends: messages between ranks, which implement all of the above.
//===----------------------------------------------------------------------===//

/// Messages of bytes between ranks. No function except `rest` waits. One thread uses a transport.
///
/// A channel orders messages: from one rank to another, the n-th receive on a channel matches the
/// n-th send on it, with the same number of bytes. Channels are independent. Functions that return
/// an int return 0 on success; otherwise `error` has one line that names the peer.
typedef struct tessera_transport {
  size_t struct_size; ///< set by the caller: sizeof(tessera_transport)
  void *self;         ///< the first argument of all functions
  int64_t rank, size;
  const char *const *hosts; ///< by rank
  /// A new channel between `ranks`, ascending, which include this rank. Called by all of them, in
  /// the same order of their common channels.
  int (*open_channel)(void *self, const int64_t *ranks, int64_t count, int64_t *channel);
  /// `data` belongs to the transport until the message is done. The peer may be this rank. Requests
  /// are not 0.
  int (*send)(void *self, int64_t channel, int64_t peer, const void *data, int64_t bytes,
              uint64_t *request);
  int (*receive)(void *self, int64_t channel, int64_t peer, void *data, int64_t bytes,
                 uint64_t *request);
  /// Whether a message is done; its request is then invalid. Advances all messages.
  int (*test)(void *self, uint64_t request, int *is_done);
  /// Waits until a message may be done, or about `microseconds`; null: sleeps.
  void (*rest)(void *self, int64_t microseconds);
  /// Aborts messages in flight, in bounded time.
  void (*abandon)(void *self);
  void (*close)(void *self);
  const char *(*error)(void *self);
} tessera_transport;

/// Creates the transport of this rank, after all have joined. Not 0 on failure, with a line of at
/// most `message_size` bytes.
typedef int (*tessera_open_transport)(const tessera_group_options *options,
                                      tessera_transport *transport, char *message,
                                      size_t message_size);
/// The entry point of a shared object of a backend: its name and open function.
typedef const char *(*tessera_transport_entry_fn)(tessera_open_transport *open);
#define TESSERA_TRANSPORT_ENTRY "tessera_transport_entry"

/// Loads a shared object of a backend. Fails for a duplicate name.
TESSERA_RT_API tessera_status tessera_load_transport(const char *path);

#ifdef __cplusplus
}
#endif

#endif // TESSERA_RUNTIME_TESSERA_GROUPS_H
