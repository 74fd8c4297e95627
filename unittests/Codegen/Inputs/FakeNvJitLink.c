//===- FakeNvJitLink.c - A replacement of libnvJitLink --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Its cubin is the given options and the PTX; its log reports 17 registers for every
// entry. With FAKE_JITLINK_FAILS it rejects all PTX with the library's error.
//
//===----------------------------------------------------------------------===//

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { kOk = 0, kUnrecognisedOption = 1, kInvalidInput = 3, kPtxCompile = 4 };
typedef struct {
  char *code, log[4096], error[64];
} Link;

EXPORT int nvJitLinkCreate(Link **handle, uint32_t count, const char *const *options) {
  if (count == 0 || strncmp(options[0], "-arch=sm_", 9) != 0)
    return kUnrecognisedOption;
  *handle = calloc(1, sizeof(Link));
  size_t bytes = 1;
  for (uint32_t i = 0; i < count; ++i)
    bytes += strlen(options[i]) + 1;
  (*handle)->code = calloc(1, bytes);
  for (uint32_t i = 0; i < count; ++i)
    strcat(strcat((*handle)->code, options[i]), " ");
  return kOk;
}

EXPORT int nvJitLinkDestroy(Link **handle) {
  free((*handle)->code);
  free(*handle);
  *handle = NULL;
  return kOk;
}

/// Records `symbol` of each ".entry symbol(".
EXPORT int nvJitLinkAddData(Link *link, int kind, const void *data, size_t bytes,
                            const char *name) {
  const char *text = data;
  // PTX is 2; its last byte is the zero at its end.
  if (kind != 2 || bytes == 0 || text[bytes - 1] != 0 || !name)
    return kInvalidInput;
  for (const char *at = text; (at = strstr(at, ".entry ")); at += 7) {
    size_t used = strlen(link->log);
    snprintf(link->log + used, sizeof(link->log) - used,
             "ptxas info    : Compiling entry function '%.*s' for 'sm'\n"
             "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
             "ptxas info    : Used 17 registers\n",
             (int)strcspn(at + 7, "( \n"), at + 7);
  }
  size_t had = strlen(link->code);
  link->code = realloc(link->code, had + bytes);
  memcpy(link->code + had, text, bytes);
  return kOk;
}

EXPORT int nvJitLinkComplete(Link *link) {
  if (!getenv("FAKE_JITLINK_FAILS"))
    return kOk;
  strcpy(link->error, "line 1; fatal\nit is told to fail");
  return kPtxCompile;
}

EXPORT int nvJitLinkVersion(unsigned *major, unsigned *minor) {
  *major = 13;
  *minor = 0;
  return kOk;
}

#define TEXT(FUNCTION, FIELD)                                                                      \
  EXPORT int FUNCTION##Size(Link *link, size_t *bytes) {                                           \
    *bytes = strlen(link->FIELD) + 1;                                                              \
    return kOk;                                                                                    \
  }                                                                                                \
  EXPORT int FUNCTION(Link *link, char *to) {                                                      \
    strcpy(to, link->FIELD);                                                                       \
    return kOk;                                                                                    \
  }
TEXT(nvJitLinkGetLinkedCubin, code)
TEXT(nvJitLinkGetInfoLog, log)
TEXT(nvJitLinkGetErrorLog, error)
