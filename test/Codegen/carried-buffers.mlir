// A loop that exchanges two carried buffers, inside one that carries both: two undefined tensors are one after common
// subexpressions are eliminated, and were one buffer on CPUs. The kernels of GPUs had two.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-compile-kernels=print-loops -o /dev/null | FileCheck %s --check-prefix=LOOPS

// CHECK: exchange: {{.*}} equal
// LOOPS-LABEL: func.func private @kernel
// LOOPS: memref.store {{.*}}, %[[FROM:.*]][%{{.*}}] : memref<8xi64>
// LOOPS: memref.load %[[FROM]][
// LOOPS-NOT: memref.store {{.*}}, %[[FROM]][
// LOOPS: memref.store {{.*}}, %{{.*}}[%{{.*}}] : memref<8xi64>
func.func private @exchange(%x: tensor<2x8xi64>, %o: tensor<2x8xi64>) -> tensor<2x8xi64> attributes {kernel.reads = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %a = tensor.empty() : tensor<8xi64>
  %b = tensor.empty() : tensor<8xi64>
  %one = arith.constant 1 : i64
  %l:3 = scf.for %j = %c0 to %c2 step %c1 iter_args(%oo = %o, %aa = %a, %bb = %b) -> (tensor<2x8xi64>, tensor<8xi64>, tensor<8xi64>) {
    %a0 = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %aa) -> tensor<8xi64> {
      %e = tensor.extract %x[%j, %i] : tensor<2x8xi64>
      %n = tensor.insert %e into %s[%i] : tensor<8xi64>
      scf.yield %n : tensor<8xi64>
    }
    %r:2 = scf.for %p = %c0 to %c3 step %c1 iter_args(%from = %a0, %into = %bb) -> (tensor<8xi64>, tensor<8xi64>) {
      %m = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %into) -> tensor<8xi64> {
        %q = arith.subi %c7, %i : index
        %e = tensor.extract %from[%q] : tensor<8xi64>
        %f = arith.addi %e, %one : i64
        %n = tensor.insert %f into %s[%i] : tensor<8xi64>
        scf.yield %n : tensor<8xi64>
      }
      scf.yield %m, %from : tensor<8xi64>, tensor<8xi64>
    }
    %w = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %oo) -> tensor<2x8xi64> {
      %e = tensor.extract %r#0[%i] : tensor<8xi64>
      %n = tensor.insert %e into %s[%j, %i] : tensor<2x8xi64>
      scf.yield %n : tensor<2x8xi64>
    }
    scf.yield %w, %r#0, %r#1 : tensor<2x8xi64>, tensor<8xi64>, tensor<8xi64>
  }
  return %l#0 : tensor<2x8xi64>
}
