//===- DiskCache.cpp - Compiled objects on disk ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/Kernels/DiskCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace llvm;

namespace tessera::codegen {

/// A byte of a ledger stands for as many stored bytes.
static constexpr uint64_t kBytesOfMark = 1024;

DiskCache::DiskCache(std::string asked, std::string extension, uint64_t limitBytes)
    : directory(std::move(asked)), extension(std::move(extension)), limitBytes(limitBytes) {
  if (!directory.empty())
    return;
  SmallString<128> path;
  if (std::optional<std::string> base = sys::Process::GetEnv("XDG_CACHE_HOME");
      base && sys::path::is_absolute(*base)) {
    path = *base;
  } else if (sys::path::home_directory(path)) {
    sys::path::append(path, ".cache");
  } else {
    return;
  }
  sys::path::append(path, "tessera");
  directory = std::string(path);
}

/// An entry: the digest of the rest in hexadecimal, a line of JSON about the object, the object.
std::string DiskCache::path(StringRef key) const {
  SmallString<128> result(directory);
  sys::path::append(result, key + extension);
  return std::string(result);
}

static std::string digest(StringRef content) {
  return toHex(SHA256::hash(arrayRefFromStringRef(content)), /*LowerCase=*/true);
}

bool DiskCache::load(StringRef key, std::string &object, json::Object &about) const {
  if (directory.empty())
    return false;
  std::string place = path(key);
  auto file = MemoryBuffer::getFile(place, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return false;
  auto [sum, rest] = (*file)->getBuffer().split('\n');
  if (digest(rest) != sum) {
    sys::fs::remove(place);
    return false;
  }
  auto [header, content] = rest.split('\n');
  Expected<json::Value> parsed = json::parse(header);
  if (!parsed) {
    consumeError(parsed.takeError());
    return false;
  }
  const json::Object *fields = parsed->getAsObject();
  if (!fields || content.empty())
    return false;
  about = *fields;
  object = content.str();
  // The time of last use decides what is removed first.
  int descriptor;
  if (!sys::fs::openFileForWrite(place, descriptor, sys::fs::CD_OpenExisting, sys::fs::OF_Append)) {
    sys::fs::setLastAccessAndModificationTime(descriptor, std::chrono::system_clock::now());
    sys::Process::SafelyCloseFileDescriptor(descriptor);
  }
  return true;
}

void DiskCache::store(StringRef key, StringRef object, json::Object about) const {
  if (directory.empty() || sys::fs::create_directories(directory))
    return;
  std::string content;
  raw_string_ostream stream(content);
  stream << json::Value(std::move(about)) << "\n" << object;
  SmallString<128> model(directory), temporary;
  sys::path::append(model, key + ".%%%%%%%%.tmp");
  int descriptor;
  if (sys::fs::createUniqueFile(model, descriptor, temporary))
    return;
  {
    raw_fd_ostream file(descriptor, /*shouldClose=*/true);
    file << digest(content) << "\n" << content;
    file.close();
    if (file.has_error()) {
      file.clear_error();
      sys::fs::remove(temporary);
      return;
    }
  }
  if (sys::fs::rename(temporary, path(key))) {
    sys::fs::remove(temporary);
    return;
  }
  // Appended at once, as other threads and processes append to it.
  if (!sys::fs::openFileForWrite(ledger(), descriptor, sys::fs::CD_OpenAlways,
                                 sys::fs::OF_Append)) {
    raw_fd_ostream file(descriptor, /*shouldClose=*/true);
    file << std::string(content.size() / kBytesOfMark + 1, '.');
    file.close();
    file.clear_error();
  }
}

std::string DiskCache::ledger() const {
  SmallString<128> result(directory);
  sys::path::append(result, "stored" + extension + "s");
  return std::string(result);
}

void DiskCache::trim() const {
  struct Entry {
    sys::TimePoint<> used;
    std::string path;
    uint64_t bytes;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code code;
  if (directory.empty())
    return;
  // A full directory has a hundred thousand entries: it is read once in `slack` stored bytes.
  const uint64_t slack = limitBytes / 16;
  uint64_t marks = 0;
  if (!sys::fs::file_size(ledger(), marks) && marks * kBytesOfMark <= slack)
    return;
  int descriptor;
  if (!sys::fs::openFileForWrite(ledger(), descriptor)) // empty from here on
    sys::Process::SafelyCloseFileDescriptor(descriptor);
  for (sys::fs::directory_iterator it(directory, code), end; it != end && !code;
       it.increment(code)) {
    StringRef found = sys::path::extension(it->path());
    ErrorOr<sys::fs::basic_file_status> status = it->status();
    if ((found != extension && found != ".tmp") || !status)
      continue;
    // Left by a dead process: no write takes an hour.
    if (found == ".tmp") {
      if (std::chrono::system_clock::now() - status->getLastModificationTime() >
          std::chrono::hours(1))
        sys::fs::remove(it->path());
      continue;
    }
    entries.push_back({status->getLastModificationTime(), it->path(), status->getSize()});
    total += status->getSize();
  }
  if (total + slack <= limitBytes)
    return;
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
    return std::tie(a.used, a.path) < std::tie(b.used, b.path);
  });
  for (const Entry &entry : entries) {
    if (total + slack <= limitBytes)
      break;
    if (!sys::fs::remove(entry.path))
      total -= entry.bytes;
  }
}

} // namespace tessera::codegen
