// A sum over columns has few results: it is split into parts, which a second launch adds in order.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-ptx" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

// CHECK-LABEL: column_sum: launches 2
// CHECK-NEXT: plain
// CHECK-NEXT: plain
// CHECK: ld.global{{(.nc)?}}.v4.b32
// CHECK-NOT: atom
// EQUAL: column_sum: plain plain equal
func.func private @column_sum(%x: tensor<640x1024xf32>, %o: tensor<1024xf32>) -> tensor<1024xf32>
    attributes {kernel.reads = 1 : i64} {
  %c = arith.constant 0.0 : f32
  %f = linalg.fill ins(%c : f32) outs(%o : tensor<1024xf32>) -> tensor<1024xf32>
  %0 = linalg.reduce ins(%x : tensor<640x1024xf32>) outs(%f : tensor<1024xf32>) dimensions = [0]
    (%a: f32, %b: f32) { %s = arith.addf %a, %b : f32
      linalg.yield %s : f32 }
  return %0 : tensor<1024xf32>
}

// A sum of everything: parts are contiguous rows.
// EQUAL: whole_sum: {{.*}}rows{{.*}} equal
func.func private @whole_sum(%x: tensor<640x1024xf32>, %o: tensor<f32>) -> tensor<f32>
    attributes {kernel.reads = 1 : i64} {
  %c = arith.constant 0.0 : f32
  %f = linalg.fill ins(%c : f32) outs(%o : tensor<f32>) -> tensor<f32>
  %0 = linalg.reduce ins(%x : tensor<640x1024xf32>) outs(%f : tensor<f32>) dimensions = [0, 1]
    (%a: f32, %b: f32) { %s = arith.addf %a, %b : f32
      linalg.yield %s : f32 }
  return %0 : tensor<f32>
}
