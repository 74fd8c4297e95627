// RUN: tessera-opt %s --interpret -o /dev/null | FileCheck %s

func.func private @twice(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  return %0 : i32
}

// CHECK-LABEL: @loop
// CHECK-NEXT: result0 : i32 = 18
// CHECK-NEXT: result1 : i32 = 5
func.func @loop() -> (i32, i32) {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  %c3 = arith.constant 3 : index
  %z = arith.constant 0 : i32
  %five = arith.constant 5 : i32
  %0 = scf.for %i = %c0 to %c7 step %c3 iter_args(%acc = %z) -> (i32) {
    %n = arith.index_cast %i : index to i32
    %t = func.call @twice(%n) : (i32) -> i32
    %s = arith.addi %acc, %t : i32
    scf.yield %s : i32
  }
  // Zero trips: the result is the init.
  %1 = scf.for %i = %c7 to %c0 step %c3 iter_args(%acc = %five) -> (i32) {
    scf.yield %acc : i32
  }
  return %0, %1 : i32, i32
}

// Nested loops that exchange their carries.
// CHECK-LABEL: @swap
// CHECK-NEXT: result0 : i32 = 55
// CHECK-NEXT: result1 : i32 = 89
func.func @swap() -> (i32, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c2 = arith.constant 2 : index
  %z = arith.constant 0 : i32
  %o = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %z, %b = %o) -> (i32, i32) {
    %s:2 = scf.for %j = %c0 to %c2 step %c1 iter_args(%p = %a, %q = %b) -> (i32, i32) {
      %n = arith.addi %p, %q : i32
      scf.yield %q, %n : i32, i32
    }
    scf.yield %s#0, %s#1 : i32, i32
  }
  return %r#0, %r#1 : i32, i32
}

// CHECK-LABEL: @while
// CHECK-NEXT: result0 : i32 = 128
// CHECK-NEXT: result1 : i32 = 1
func.func @while() -> (i32, i32) {
  %one = arith.constant 1 : i32
  %limit = arith.constant 100 : i32
  %0 = scf.while (%x = %one) : (i32) -> i32 {
    %p = arith.cmpi slt, %x, %limit : i32
    scf.condition(%p) %x : i32
  } do {
  ^bb0(%x: i32):
    %d = arith.addi %x, %x : i32
    scf.yield %d : i32
  }
  %p = arith.cmpi eq, %0, %limit : i32
  %1 = scf.if %p -> (i32) {
    scf.yield %limit : i32
  } else {
    scf.yield %one : i32
  }
  return %0, %1 : i32, i32
}
