//===- tessera_rt.h - The runtime's C interface -------------------*- C -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs compiled artifacts from any language, and lets a shared object add a
// backend. Rules that hold throughout:
//
// * Nothing throws or aborts across this interface. A function that can fail
//   returns a tessera_status; tessera_last_error has one line about it.
// * Strings are zero-terminated UTF-8. Those returned belong to the object they
//   came from and live as long as it does.
// * Tensors are whole (global), dense and row-major, little-endian. i1 takes one
//   byte (0 or 1), f16 and bf16 two, index eight.
// * A session may be used by one thread at a time; different sessions are
//   independent.
// * Structures that callers fill begin with their size, so that later versions
//   can add fields.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_TESSERA_RT_H
#define TESSERA_RUNTIME_TESSERA_RT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TESSERA_RT_API __attribute__((visibility("default")))

/// Incremented for incompatible changes of this file.
#define TESSERA_RT_VERSION 1

typedef enum tessera_status {
  TESSERA_OK = 0,
  TESSERA_INVALID_ARGUMENT = 1, ///< a null pointer, an index or a size out of range
  TESSERA_INVALID_ARTIFACT = 2, ///< unreadable, truncated, damaged, inconsistent
  TESSERA_UNAVAILABLE = 3,      ///< no such backend, or not enough devices or memory
  TESSERA_FAILED = 4            ///< a step failed: a deadlock, a dead device
} tessera_status;

typedef enum tessera_dtype {
  TESSERA_F64 = 0,
  TESSERA_F32 = 1,
  TESSERA_F16 = 2,
  TESSERA_BF16 = 3,
  TESSERA_I64 = 4,
  TESSERA_I32 = 5,
  TESSERA_I16 = 6,
  TESSERA_I8 = 7,
  TESSERA_I1 = 8,
  TESSERA_INDEX = 9
} tessera_dtype;

typedef struct tessera_session tessera_session;

typedef struct tessera_open_options {
  size_t struct_size;  ///< sizeof(tessera_open_options)
  const char *backend; ///< null: "threads"
  int64_t devices;     ///< devices to offer; 0: as many as the program needs
  int64_t cores;       ///< workers; 0: one for each physical core that the process may use
  uint64_t seed;       ///< of arguments that are never set
  /// Precision of f32 products on GPUs: null or "highest" (f32), or "high" (TF32).
  const char *precision;
  /// Not 0: pins workers, and memory to its nodes, where this process has the whole machine.
  int32_t pins;
} tessera_open_options;

/// An argument or result.
typedef struct tessera_tensor_info {
  size_t struct_size; ///< set by the caller: sizeof(tessera_tensor_info)
  const char *name;
  tessera_dtype dtype;
  int64_t rank;
  const int64_t *shape; ///< `rank` extents
  size_t bytes;         ///< of the whole tensor
  int64_t feeds;        ///< of a result: the argument of the next step that it becomes, else -1
  const char *home;     ///< layout over devices, {"mesh": {...}, "layout": {...}} as in
                        ///< docs/step-format.md; "" for an argument without readers
} tessera_tensor_info;

/// TESSERA_RT_VERSION of the library.
TESSERA_RT_API uint32_t tessera_rt_version(void);

/// The error of the last call of this thread that did not return TESSERA_OK.
TESSERA_RT_API const char *tessera_last_error(void);

/// Opens an artifact. `options` may be null. On success `*session` must be closed.
TESSERA_RT_API tessera_status tessera_session_open(const char *path,
                                                   const tessera_open_options *options,
                                                   tessera_session **session);
/// The same from memory, which is copied.
TESSERA_RT_API tessera_status tessera_session_open_memory(const void *data, size_t size,
                                                          const tessera_open_options *options,
                                                          tessera_session **session);
/// Frees a session; null is ignored.
TESSERA_RT_API void tessera_session_close(tessera_session *session);

/// Numbers of arguments and results; 0 for null.
TESSERA_RT_API int64_t tessera_session_num_arguments(const tessera_session *session);
TESSERA_RT_API int64_t tessera_session_num_results(const tessera_session *session);
/// Descriptions by index.
TESSERA_RT_API tessera_status tessera_session_argument(const tessera_session *session,
                                                       int64_t index, tessera_tensor_info *info);
TESSERA_RT_API tessera_status tessera_session_result(const tessera_session *session, int64_t index,
                                                     tessera_tensor_info *info);

/// Copies a value in, for the next step and later ones. `bytes` must be the tensor's.
TESSERA_RT_API tessera_status tessera_session_set_argument(tessera_session *session, int64_t index,
                                                           const void *data, size_t bytes);
/// Runs the program `steps` times. After an error the session can only be closed.
TESSERA_RT_API tessera_status tessera_session_run(tessera_session *session, int64_t steps);
/// Copies a result of the last step out. `bytes` must be the tensor's.
TESSERA_RT_API tessera_status tessera_session_read_result(tessera_session *session, int64_t index,
                                                          void *data, size_t bytes);
/// For a program with devices in several processes: the part of an argument or a result in this
/// process. `*count` is 1: the box of global indices whose `rank` pairs [begin, end) are written to
/// `box`; 0: nothing; -1, the same in all processes: only whole values can be set and read, since
/// the process holds all devices, or a device does not hold a box.
TESSERA_RT_API tessera_status tessera_session_argument_box(const tessera_session *session,
                                                           int64_t index, int64_t *box, int *count);
TESSERA_RT_API tessera_status tessera_session_result_box(const tessera_session *session,
                                                         int64_t index, int64_t *box, int *count);
/// Like tessera_session_set_argument and tessera_session_read_result, for the elements of that box,
/// dense and row-major. Other processes need not take part.
TESSERA_RT_API tessera_status tessera_session_set_argument_box(tessera_session *session,
                                                               int64_t index, const void *data,
                                                               size_t bytes);
TESSERA_RT_API tessera_status tessera_session_read_result_box(tessera_session *session,
                                                              int64_t index, void *data,
                                                              size_t bytes);
/// Whether this process reads a result without the others: 1, 0, or -1 for an index out of range.
TESSERA_RT_API int tessera_session_reads_alone(const tessera_session *session, int64_t index);

/// A result that stays on its devices when later steps overwrite it. It may outlive the session.
typedef struct tessera_value tessera_value;
/// Keeps a result of the last step, by an asynchronous copy on the devices. `*value` is null if the
/// backend computes in host memory, or other processes have a part of it.
TESSERA_RT_API tessera_status tessera_session_keep_result(tessera_session *session, int64_t index,
                                                          tessera_value **value);
/// Sets an argument to such a value. `*taken` is 0, without an effect, if the argument has other
/// devices or another layout: read the value then.
TESSERA_RT_API tessera_status tessera_session_set_argument_value(tessera_session *session,
                                                                 int64_t index,
                                                                 const tessera_value *value,
                                                                 int *taken);
/// The same for `bytes` bytes, dense and row-major, in memory of the GPU `device`. The next step
/// reads them after the work issued to the legacy default stream before the call that runs the
/// step, and before later work of that stream.
TESSERA_RT_API tessera_status tessera_session_set_argument_memory(tessera_session *session,
                                                                  int64_t index, const void *data,
                                                                  size_t bytes, int64_t device,
                                                                  int *taken);
/// Waits for a value, and copies it out. `bytes` must be the tensor's.
TESSERA_RT_API tessera_status tessera_value_read(const tessera_value *value, void *data,
                                                 size_t bytes);
/// The GPU number and the address of a value that one GPU holds as a whole, dense and row-major;
/// `*device` is -1 if there is none. Later work on the CUDA stream `stream` (1: the legacy default
/// stream, 2: that of the thread) waits for the value; 0: no stream waits.
TESSERA_RT_API tessera_status tessera_value_memory(const tessera_value *value, uint64_t stream,
                                                   int64_t *device, void **data);
/// Frees a value, from any thread; null is ignored.
TESSERA_RT_API void tessera_value_free(tessera_value *value);

/// Counters of the backend's driver since the session was opened ("allocations",
/// "host_to_device_bytes", …), by index; TESSERA_INVALID_ARGUMENT after the last.
TESSERA_RT_API tessera_status tessera_session_counter(const tessera_session *session, int64_t index,
                                                      char name[64], int64_t *count);

/// Bytes that collectives have moved since the session was opened: the sum over collectives of the
/// bytes that their busiest device sent or received.
TESSERA_RT_API int64_t tessera_session_wire_bytes(const tessera_session *session);
/// 1 if results stay on the devices until they are read, which copies them to the host; else 0.
TESSERA_RT_API int tessera_session_keeps_on_devices(const tessera_session *session);

/// Bytes that the open sessions of this process use on a device: arenas and buffers of steps.
typedef struct tessera_memory_use {
  size_t struct_size; ///< set by the caller: sizeof(tessera_memory_use)
  int64_t allocated;  ///< used; for devices in host memory the pages that steps have touched
  int64_t reserved;   ///< taken from the system or the driver
  int64_t peak_allocated, peak_reserved; ///< at most, since the start or the last reset
} tessera_memory_use;

/// Zeros for a device that never had a program in this process.
TESSERA_RT_API tessera_status tessera_device_memory(int64_t device, tessera_memory_use *use);
/// Resets the peaks to the current use.
TESSERA_RT_API tessera_status tessera_device_reset_peak_memory(int64_t device);
/// Writes up to `room` ids of devices that have had memory in this process, ascending; returns the
/// number of such devices.
TESSERA_RT_API int64_t tessera_devices_with_memory(int64_t *devices, int64_t room);

//===----------------------------------------------------------------------===//
// Backends
//===----------------------------------------------------------------------===//

/// An error message of a backend; longer ones are truncated.
typedef struct tessera_message {
  char text[512];
} tessera_message;

/// A backend that executes programs. `executor` is the result of `open`. Slots are addressed by
/// part, position in the part's mesh and slot (docs/step-format.md). The table and its strings must
/// live as long as the process.
typedef struct tessera_backend {
  size_t struct_size; ///< set by the caller of the entry
  const char *name;
  const char *description;
  /// `artifact` (the bytes of a checked artifact) lives until `close`.
  tessera_status (*open)(const void *artifact, size_t size, const tessera_open_options *options,
                         void **executor, tessera_message *message);
  void (*close)(void *executor);
  /// Executes every part once on every device.
  tessera_status (*run)(void *executor, tessera_message *message);
  tessera_status (*write_slot)(void *executor, int64_t part, int64_t position, int64_t slot,
                               const void *data, size_t size, tessera_message *message);
  tessera_status (*read_slot)(void *executor, int64_t part, int64_t position, int64_t slot,
                              void *data, size_t size, tessera_message *message);
  /// The target of `tessera compile` whose code it executes; null: "cpu".
  const char *target;
} tessera_backend;

/// The function that a backend's shared object exports as `tessera_backend_entry`: fills the table;
/// any status except TESSERA_OK means that it does not support this version or this machine.
typedef tessera_status (*tessera_backend_entry_fn)(uint32_t version, tessera_backend *backend,
                                                   tessera_message *message);

/// Opens a shared object and registers its backend for this process.
TESSERA_RT_API tessera_status tessera_load_backend(const char *path);

/// The target of `tessera compile` whose code the backend `name` executes; null, with an error, if
/// there is no such backend. Valid until the next call of this thread.
TESSERA_RT_API const char *tessera_backend_target(const char *name);

#ifdef __cplusplus
}
#endif

#endif // TESSERA_RUNTIME_TESSERA_RT_H
