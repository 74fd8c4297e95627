// A loop marked as parallel becomes the tasks of a kernel; its carries are results, or a buffer per call.
// RUN: tessera-opt %s --tessera-compile-kernels -o /dev/null | FileCheck %s

// CHECK: marked: vectorised, tasks 16,
func.func private @marked(%x: tensor<16x32xf32>, %y: tensor<16x32xf32>) -> tensor<16x32xf32> attributes {kernel.reads = 1 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = arith.constant 16 : index
  %columns = arith.constant 32 : index
  %empty = tensor.empty() : tensor<32xf32>
  %all:2 = scf.for %i = %zero to %rows step %one iter_args(%out = %y, %buffer = %empty) -> (tensor<16x32xf32>, tensor<32xf32>) {
    %filled = scf.for %j = %zero to %columns step %one iter_args(%line = %buffer) -> (tensor<32xf32>) {
      %a = tensor.extract %x[%i, %j] : tensor<16x32xf32>
      %b = arith.negf %a : f32
      %next = tensor.insert %b into %line[%j] : tensor<32xf32>
      scf.yield %next : tensor<32xf32>
    }
    %copied = scf.for %j = %zero to %columns step %one iter_args(%row = %out) -> (tensor<16x32xf32>) {
      %a = tensor.extract %filled[%j] : tensor<32xf32>
      %next = tensor.insert %a into %row[%i, %j] : tensor<16x32xf32>
      scf.yield %next : tensor<16x32xf32>
    }
    scf.yield %copied, %filled : tensor<16x32xf32>, tensor<32xf32>
  } {kernel.task_loop}
  return %all#0 : tensor<16x32xf32>
}
