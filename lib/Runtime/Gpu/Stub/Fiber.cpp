//===- Fiber.cpp - Functions that suspend and resume ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fiber.h"

#include <cstdint>
#include <new>
#include <sys/mman.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace tessera::runtime {

/// Kernels have neither recursion nor arrays on the stack; untouched pages cost nothing.
static constexpr size_t kStackBytes = 256 << 10;

#if defined(__x86_64__)

// swapcontext sets the signal mask by a system call, which takes 100 times as long as the switch
// itself. Saving the registers that calls preserve (System V ABI) suffices: fibers switch at calls.
extern "C" void tessera_fiber_switch(void **from, void *to);
extern "C" void tessera_fiber_start();
asm(R"(
  .text
  .p2align 4
  .type tessera_fiber_switch, @function
tessera_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size tessera_fiber_switch, .-tessera_fiber_switch
  .p2align 4
  .type tessera_fiber_start, @function
tessera_fiber_start:
  movq %r12, %rdi
  callq *%r13
  ud2
  .size tessera_fiber_start, .-tessera_fiber_start
)");

struct Fiber::Context {
  void *inside = nullptr, *outside = nullptr; ///< stack pointers
};

void Fiber::begin(void (*entry)(void *), void *argument) {
  auto *top = reinterpret_cast<uint64_t *>(static_cast<char *>(stack) + kStackBytes);
  // In the order of the pops: r15, r14, r13, r12, rbx, rbp, then the return address; the stack is
  // aligned to 16 bytes after them.
  top -= 9;
  for (int i = 0; i < 9; ++i)
    top[i] = 0;
  top[2] = reinterpret_cast<uint64_t>(entry);
  top[3] = reinterpret_cast<uint64_t>(argument);
  top[6] = reinterpret_cast<uint64_t>(&tessera_fiber_start);
  context->inside = top;
}

void Fiber::resume() {
  tessera_fiber_switch(&context->outside, context->inside);
}

void Fiber::stop() {
  tessera_fiber_switch(&context->inside, context->outside);
}

#else

struct Fiber::Context {
  ucontext_t inside, outside;
  void (*entry)(void *) = nullptr;
  void *argument = nullptr;
};

void Fiber::begin(void (*entry)(void *), void *argument) {
  context->entry = entry;
  context->argument = argument;
  ::getcontext(&context->inside);
  context->inside.uc_stack.ss_sp = stack;
  context->inside.uc_stack.ss_size = kStackBytes;
  context->inside.uc_link = nullptr;
  auto halves = reinterpret_cast<uint64_t>(context.get());
  // makecontext passes only ints.
  auto start = +[](unsigned high, unsigned low) {
    auto *context = reinterpret_cast<Context *>(uint64_t(high) << 32 | low);
    context->entry(context->argument);
  };
  ::makecontext(&context->inside, reinterpret_cast<void (*)()>(start), 2,
                static_cast<unsigned>(halves >> 32), static_cast<unsigned>(halves));
}

void Fiber::resume() {
  ::swapcontext(&context->outside, &context->inside);
}

void Fiber::stop() {
  ::swapcontext(&context->inside, &context->outside);
}

#endif

Fiber::Fiber() : context(std::make_unique<Context>()) {
  stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED)
    throw std::bad_alloc();
}

Fiber::~Fiber() {
  ::munmap(stack, kStackBytes);
}

} // namespace tessera::runtime
