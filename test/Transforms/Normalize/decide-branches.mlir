// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera run %s --function platform --check
// RUN: tessera run %s --function nested --check

// A branch whose condition is known at compile time is taken: what front ends choose by platform, such
// as one of two ways to read a diagonal, is then seen by the passes that compose ops.
dist.process_mesh @line(shape = [4], dim_names = ["s"])

// CHECK-LABEL: func.func @platform(
// CHECK-NOT: scf.if
// CHECK-NOT: math.exp
// CHECK: math.tanh
// CHECK: return
func.func @platform(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<8x4xf32> {
  %which = arith.constant dense<1> : tensor<i32>
  %index = tensor.extract %which[] : tensor<i32>
  %zero = arith.constant 0 : i32
  %first = arith.cmpi sle, %index, %zero : i32
  %y = scf.if %first -> tensor<8x4xf32> {
    %a = math.exp %x : tensor<8x4xf32>
    scf.yield %a : tensor<8x4xf32>
  } else {
    %b = math.tanh %x : tensor<8x4xf32>
    scf.yield %b : tensor<8x4xf32>
  }
  return %y : tensor<8x4xf32>
}

// The outer branch depends on data and stays, the inner ones do not.
// CHECK-LABEL: func.func @nested(
// CHECK: scf.if
// CHECK-NOT: scf.if
// CHECK: math.exp
// CHECK-NOT: math.tanh
// CHECK: return
func.func @nested(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}, %flag: tensor<i1>) -> tensor<8x4xf32> {
  %p = tensor.extract %flag[] : tensor<i1>
  %true = arith.constant true
  %y = scf.if %p -> tensor<8x4xf32> {
    %i = scf.if %true -> tensor<8x4xf32> {
      %a = math.exp %x : tensor<8x4xf32>
      scf.yield %a : tensor<8x4xf32>
    } else {
      %b = math.tanh %x : tensor<8x4xf32>
      scf.yield %b : tensor<8x4xf32>
    }
    scf.yield %i : tensor<8x4xf32>
  } else {
    scf.yield %x : tensor<8x4xf32>
  }
  return %y : tensor<8x4xf32>
}
