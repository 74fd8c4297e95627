// Reads and writes at computed indices select, so that the rows of their tensor may be cut.
// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera explain %s --function gather | FileCheck %s --check-prefix=SUMS
// RUN: tessera explain %s --function embedding | FileCheck %s --check-prefix=SUMS
// RUN: tessera explain %s --function scatter | FileCheck %s --check-prefix=NONE
// RUN: tessera explain %s --function elements | FileCheck %s --check-prefix=ONE
// RUN: tessera run %s --function gather --check=interpreter --no-cache
// RUN: tessera run %s --function embedding --check=interpreter --no-cache
// RUN: tessera run %s --function scatter --check=interpreter --no-cache
// RUN: tessera run %s --function elements --check=interpreter --no-cache
// RUN: tessera run %s --function pair --check=interpreter --no-cache
// RUN: tessera run %s --function nested --check=interpreter --no-cache
// RUN: tessera run %s --function booleans --check=interpreter --no-cache

// SUMS: reduce_scatter
// SUMS-SAME: 480 B
// SUMS: total: 1 collective
// NONE: total: 0 collectives

dist.process_mesh @line(shape = [4], dim_names = ["d"])

#i = affine_map<(d0, d1) -> (d0)>
#ij = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @gather(
// CHECK: %[[START:.*]] = arith.constant dense<-0.0{{.*}}> : tensor<20x1x6xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg1, %arg0 : {{.*}}) outs(%[[START]]
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: arith.cmpi eq
// CHECK: arith.select
// CHECK: arith.addf
func.func @gather(%ids: tensor<20x1xi32>, %table: tensor<64x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<20x1x6xf32> {
  %y = tensor.gather %table[%ids] gather_dims([0]) : (tensor<64x6xf32>, tensor<20x1xi32>) -> tensor<20x1x6xf32>
  return %y : tensor<20x1x6xf32>
}

// As torch-mlir and StableHLO lower an embedding.
// CHECK-LABEL: func.func @embedding(
// CHECK-NOT: tensor.extract
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg1, %arg0
// CHECK: return %[[Y]]
func.func @embedding(%ids: tensor<20xi64>, %table: tensor<64x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<20x6xf32> {
  %e = tensor.empty() : tensor<20x6xf32>
  %y = linalg.generic {indexing_maps = [#i, #ij], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<20xi64>) outs(%e : tensor<20x6xf32>) {
  ^bb0(%id: i64, %out: f32):
    %i = arith.index_cast %id : i64 to index
    %j = linalg.index 1 : index
    %x = tensor.extract %table[%i, %j] : tensor<64x6xf32>
    linalg.yield %x : f32
  } -> tensor<20x6xf32>
  return %y : tensor<20x6xf32>
}

// CHECK-LABEL: func.func @scatter(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg1, %arg0 : {{.*}}) outs(%arg2
// CHECK: ^bb0(%[[U:.*]]: f32, %{{.*}}: i32, %[[OLD:.*]]: f32):
// CHECK: %[[HERE:.*]] = arith.cmpi eq
// CHECK: arith.select %[[HERE]], %[[U]], %[[OLD]]
func.func @scatter(%ids: tensor<1x1xi32>, %u: tensor<1x6xf32>, %table: tensor<64x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<64x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %y = tensor.scatter %u into %table[%ids] scatter_dims([0]) unique : (tensor<1x6xf32>, tensor<64x6xf32>, tensor<1x1xi32>) -> tensor<64x6xf32>
  return %y : tensor<64x6xf32>
}

// The owner sends an element; a constant index beyond the edge is clamped. The owner writes one.
// CHECK-LABEL: func.func @elements(
// CHECK: tensor.extract_slice %arg1[%{{.*}}, 5] [1, 1] [1, 1]
// CHECK: tensor.insert_slice {{.*}} into %arg1[%{{.*}}, %{{.*}}] [1, 1] [1, 1]
// ONE: total: 1 collective
func.func @elements(%place: tensor<index>, %x: tensor<64x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<64x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %i = tensor.extract %place[] : tensor<index>
  %far = arith.constant 200 : index
  %a = tensor.extract %x[%i, %far] : tensor<64x6xf32>
  %twice = arith.addf %a, %a : f32
  %y = tensor.insert %twice into %x[%i, %i] : tensor<64x6xf32>
  return %y : tensor<64x6xf32>
}

// Two tables, one by two indices; the rest of the body stays.
// CHECK-LABEL: func.func @pair(
// CHECK: %[[A:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "reduction"]}
// CHECK: %[[B:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]}
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%arg0, %[[A]], %[[B]] :
// CHECK-NOT: tensor.extract
func.func @pair(%x: tensor<12x7xf32>, %rows: tensor<12xi32>, %columns: tensor<12xi64>, %grid: tensor<16x9xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %line: tensor<32xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<12x7xf32> {
  %e = tensor.empty() : tensor<12x7xf32>
  %y = linalg.generic {indexing_maps = [#ij, #i, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %rows, %columns : tensor<12x7xf32>, tensor<12xi32>, tensor<12xi64>) outs(%e : tensor<12x7xf32>) {
  ^bb0(%in: f32, %r: i32, %c: i64, %out: f32):
    %row = arith.index_cast %r : i32 to index
    %column = arith.index_cast %c : i64 to index
    %a = tensor.extract %grid[%row, %column] : tensor<16x9xf32>
    %sum = arith.addi %row, %column : index
    %b = tensor.extract %line[%sum] : tensor<32xf32>
    %p = arith.mulf %in, %a : f32
    %q = arith.subf %p, %b : f32
    linalg.yield %q : f32
  } -> tensor<12x7xf32>
  return %y : tensor<12x7xf32>
}

// An index that is looked up itself.
// CHECK-LABEL: func.func @nested(
// CHECK-NOT: tensor.extract
// CHECK: return
func.func @nested(%ids: tensor<20xi32>, %map: tensor<40xi32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                  %table: tensor<64xf16> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<20xf16> {
  %e = tensor.empty() : tensor<20xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%ids : tensor<20xi32>) outs(%e : tensor<20xf16>) {
  ^bb0(%id: i32, %out: f16):
    %i = arith.index_cast %id : i32 to index
    %m = tensor.extract %map[%i] : tensor<40xi32>
    %k = arith.index_cast %m : i32 to index
    %x = tensor.extract %table[%k] : tensor<64xf16>
    linalg.yield %x : f16
  } -> tensor<20xf16>
  return %y : tensor<20xf16>
}

// CHECK-LABEL: func.func @booleans(
// CHECK: arith.ori
func.func @booleans(%ids: tensor<20x1xi32>, %table: tensor<64xi1> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<20xi1> {
  %y = tensor.gather %table[%ids] gather_dims([0]) : (tensor<64xi1>, tensor<20x1xi32>) -> tensor<20xi1>
  return %y : tensor<20xi1>
}

// Read by a map, as any other element at an affine index.
// CHECK-LABEL: func.func @reversed(
// CHECK-NOT: tensor.extract
// CHECK: dist.rearrange
func.func @reversed(%x: tensor<64x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<64x6xf32> {
  %e = tensor.empty() : tensor<64x6xf32>
  %y = linalg.generic {indexing_maps = [#ij], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<64x6xf32>) {
  ^bb0(%out: f32):
    %last = arith.constant 63 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.subi %last, %i : index
    %v = tensor.extract %x[%k, %j] : tensor<64x6xf32>
    linalg.yield %v : f32
  } -> tensor<64x6xf32>
  return %y : tensor<64x6xf32>
}

// A window as long as its dimension begins at 0, whatever its offset is; the rows may be cut.
// CHECK-LABEL: func.func @whole_dims(
// CHECK: tensor.extract_slice %{{.*}}[0, %{{.*}}] [64, 1]
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, %{{.*}}] [64, 1]
// CHECK: return
func.func @whole_dims(%x: tensor<64x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}, %i: index, %j: index)
    -> tensor<64x6xf32> {
  %c = tensor.extract_slice %x[%j, %i] [64, 1] [1, 1] : tensor<64x6xf32> to tensor<64xf32>
  %y = tensor.insert_slice %c into %x[%i, %j] [64, 1] [1, 1] : tensor<64xf32> into tensor<64x6xf32>
  return %y : tensor<64x6xf32>
}
