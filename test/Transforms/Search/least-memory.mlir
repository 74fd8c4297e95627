// The plan of least memory cuts every argument, although the first product needs one whole: the
// peak is at the second one. The plan of least time keeps it whole, which saves communication.
// RUN: tessera-opt %s --dist-normalize --dist-search=minimise=memory | FileCheck %s
// RUN: tessera-opt %s --dist-normalize --dist-search | FileCheck %s --check-prefix=TIME
// RUN: not tessera-opt %s --dist-search=minimise=words 2>&1 | FileCheck %s --check-prefix=WORDS
// RUN: not tessera-opt %s --dist-search="minimise=memory memory-budget=1" 2>&1 | FileCheck %s --check-prefix=BOTH
// WORDS: error: dist-search: minimise 'words' is not valid: expected time or memory
// BOTH: error: dist-search: minimise=memory cannot be combined with memory-budget

dist.process_mesh @line(shape = [8], dim_names = ["d"])

// CHECK-LABEL: func.func @main
// CHECK-SAME: dist.sharding<@line, [shard({{[01]}})]>}, %{{.*}}: tensor<1024x4096xf32> {dist.sharding = #dist.sharding<@line, [shard({{[01]}})]>}, %{{.*}}: tensor<4096x4096xf32> {dist.sharding = #dist.sharding<@line, [shard({{[01]}})]>})
// CHECK-SAME: -> (tensor<1024x4096xf32> {dist.sharding = #dist.sharding<@line, [shard({{[01]}})]>})
// TIME-LABEL: func.func @main
// TIME-SAME: dist.sharding<@line, [replicate]>
func.func @main(%x: tensor<1024x1024xf32>, %w: tensor<1024x4096xf32>, %v: tensor<4096x4096xf32>) -> tensor<1024x4096xf32> {
  %zero = arith.constant dense<0.0> : tensor<1024x4096xf32>
  %y = linalg.matmul ins(%x, %w : tensor<1024x1024xf32>, tensor<1024x4096xf32>)
                     outs(%zero : tensor<1024x4096xf32>) -> tensor<1024x4096xf32>
  %z = linalg.matmul ins(%y, %v : tensor<1024x4096xf32>, tensor<4096x4096xf32>)
                     outs(%zero : tensor<1024x4096xf32>) -> tensor<1024x4096xf32>
  return %z : tensor<1024x4096xf32>
}
