//===- Bytes.cpp - Aligned bytes, files, checksums ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Artifact/Bytes.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace tessera::runtime {

uint64_t fnv1a(const void *data, size_t size, uint64_t seed) {
  const auto *bytes = static_cast<const unsigned char *>(data);
  uint64_t hash = seed;
  for (size_t i = 0; i < size; ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

std::string hexText(uint64_t value) {
  std::string text(16, '0');
  for (int digit = 15; digit >= 0; --digit, value >>= 4)
    text[digit] = "0123456789abcdef"[value & 15];
  return text;
}

namespace {
/// Closes a descriptor when the scope ends.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
};
} // namespace

static Status systemError(const std::string &path) {
  return Status::error(path + ": " + std::strerror(errno));
}

Expected<Bytes> readFile(const std::string &path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0)
    return systemError(path);
  struct stat info;
  if (::fstat(file.fd, &info) != 0)
    return systemError(path);
  if (!S_ISREG(info.st_mode))
    return Status::error(path + ": not a regular file");
  Bytes bytes(static_cast<size_t>(info.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t count = ::read(file.fd, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return systemError(path);
    if (count == 0)
      return Status::error(path + ": the file became shorter while it was read");
    done += static_cast<size_t>(count);
  }
  return bytes;
}

std::string fileBehind(const std::string &path) {
  std::error_code error;
  auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return "";
  std::filesystem::path place = std::filesystem::absolute(path, error);
  // Links to a file that does not exist yet; the others are resolved below.
  for (int depth = 0; depth < 40 && std::filesystem::is_symlink(place, error); ++depth)
    place = place.parent_path() / std::filesystem::read_symlink(place, error);
  place = std::filesystem::weakly_canonical(place, error);
  return error ? path : place.string();
}

static Status writeAll(int fd, const void *data, size_t size, const std::string &path) {
  const auto *bytes = static_cast<const char *>(data);
  for (size_t done = 0; done < size;) {
    ssize_t count = ::write(fd, bytes + done, size - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return systemError(path);
    done += static_cast<size_t>(count);
  }
  return {};
}

Status writeFile(const std::string &path, const void *data, size_t size) {
  std::string place = fileBehind(path);
  if (place.empty()) { // a device or a pipe: a rename would replace it
    Descriptor file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
    return file.fd < 0 ? systemError(path) : writeAll(file.fd, data, size, path);
  }
  std::string temporary = place + ".tmp" + std::to_string(::getpid());
  Descriptor file{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (file.fd < 0)
    return systemError(path);
  auto fail = [&](Status status) {
    ::unlink(temporary.c_str());
    return status;
  };
  if (Status status = writeAll(file.fd, data, size, path); !status.ok())
    return fail(status);
  if (::fsync(file.fd) != 0 && errno != EINVAL)
    return fail(systemError(path));
  if (::rename(temporary.c_str(), place.c_str()) != 0)
    return fail(systemError(path));
  return {};
}

} // namespace tessera::runtime
