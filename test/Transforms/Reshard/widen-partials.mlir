// RUN: tessera-opt %s --split-input-file --dist-normalize --dist-propagate --dist-insert-reshards --dist-widen-partials | FileCheck %s

// The product stays in f32 until it is reduced, its operands in bf16; then it is rounded once.
dist.process_mesh @m(shape = [4], dim_names = ["x"])

// CHECK-LABEL: func.func @product
// CHECK: arith.constant {{.*}}dense<0.000000e+00> : tensor<6x5xf32>
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<6x8xbf16>, tensor<8x5xbf16>) {{.*}} [#dist.sharding<@m, [partial(sum)]>]
// CHECK: arith.mulf %{{.*}} : f32
// CHECK: arith.addf %{{.*}} : f32
// CHECK: %[[R:.*]] = dist.reshard %[[P]] to #dist.sharding<@m, [replicate]> {{.*}} : tensor<6x5xf32>
// CHECK: linalg.generic {{.*}} ins(%[[R]] : tensor<6x5xf32>)
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK-NOT: linalg.matmul
func.func @product(%a: tensor<6x8xbf16> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %b: tensor<8x5xbf16>) -> tensor<6x5xbf16> {
  %c = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<6x5xbf16>
  %zero = linalg.fill ins(%c : bf16) outs(%empty : tensor<6x5xbf16>) -> tensor<6x5xbf16>
  %p = linalg.matmul ins(%a, %b : tensor<6x8xbf16>, tensor<8x5xbf16>) outs(%zero : tensor<6x5xbf16>) -> tensor<6x5xbf16>
  %e = math.exp %p : tensor<6x5xbf16>
  return %e : tensor<6x5xbf16>
}

// -----

// The maximum of rounded values is the rounded maximum: it stays narrow. So does a result annotated
// partial.
dist.process_mesh @m(shape = [4], dim_names = ["x"])

// CHECK-LABEL: func.func @narrow
// CHECK-NOT: f32
// CHECK: return
func.func @narrow(%a: tensor<8x5xbf16> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<5xbf16>, tensor<5xbf16> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}) {
  %least = arith.constant dense<0xFF80> : tensor<5xbf16>
  %zero = arith.constant dense<0.0> : tensor<5xbf16>
  %0 = linalg.reduce ins(%a : tensor<8x5xbf16>) outs(%least : tensor<5xbf16>) dimensions = [0]
    (%in: bf16, %acc: bf16) {
      %s = arith.maximumf %in, %acc : bf16
      linalg.yield %s : bf16
    }
  %1 = linalg.reduce ins(%a : tensor<8x5xbf16>) outs(%zero : tensor<5xbf16>) dimensions = [0]
    (%in: bf16, %acc: bf16) {
      %s = arith.addf %in, %acc : bf16
      linalg.yield %s : bf16
    }
  return %0, %1 : tensor<5xbf16>, tensor<5xbf16>
}

// -----

// Rounding is monotone: a sum that becomes the start of maxima is rounded as a contribution.
dist.process_mesh @m(shape = [4], dim_names = ["x"])

// CHECK-LABEL: func.func @sum_starts_maximum
// CHECK: %[[R:.*]] = dist.reshard %{{.*}} to #dist.sharding<@m, [partial(max)]> {{.*}} : tensor<f32>
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%[[R]] : tensor<f32>) {{.*}} forwards = [max("x") from [0]]
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: linalg.reduce ins(%arg1 : tensor<8xbf16>) outs(%[[N]] : tensor<bf16>)
func.func @sum_starts_maximum(%a: tensor<8xbf16> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %b: tensor<8xbf16>) -> tensor<bf16> {
  %zero = arith.constant dense<0.0> : tensor<bf16>
  %sum = linalg.dot ins(%a, %b : tensor<8xbf16>, tensor<8xbf16>) outs(%zero : tensor<bf16>) -> tensor<bf16>
  %max = linalg.reduce ins(%b : tensor<8xbf16>) outs(%sum : tensor<bf16>) dimensions = [0]
    (%in: bf16, %acc: bf16) {
      %m = arith.maximumf %in, %acc : bf16
      linalg.yield %m : bf16
    }
  return %max : tensor<bf16>
}

// -----

// A sum that the devices divide is reduced in parts, which are rounded, then gathered.
dist.process_mesh @m(shape = [4], dim_names = ["x"])

// CHECK-LABEL: func.func @parts
// CHECK: %[[R:.*]] = dist.reshard %{{.*}} to #dist.sharding<@m, [shard(0)]> {{.*}} : tensor<8x5xf32>
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%[[R]] : tensor<8x5xf32>)
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: dist.reshard %[[N]] to #dist.sharding<@m, [replicate]> {{.*}} : tensor<8x5xbf16>
func.func @parts(%a: tensor<8x8xbf16> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %b: tensor<8x5xbf16>) -> (tensor<8x5xbf16> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %c = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<8x5xbf16>
  %zero = linalg.fill ins(%c : bf16) outs(%empty : tensor<8x5xbf16>) -> tensor<8x5xbf16>
  %p = linalg.matmul ins(%a, %b : tensor<8x8xbf16>, tensor<8x5xbf16>) outs(%zero : tensor<8x5xbf16>) -> tensor<8x5xbf16>
  return %p : tensor<8x5xbf16>
}
