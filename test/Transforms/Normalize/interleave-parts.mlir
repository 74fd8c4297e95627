// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s --check-prefix=SENT
// RUN: tessera run %s --function guided --check=interpreter
// RUN: tessera run %s --function unequal --check=interpreter
// RUN: tessera run %s --function numbered --check=interpreter
// RUN: tessera run %s --function swapped --check=interpreter
// RUN: tessera run %s --function merged --check=interpreter
// RUN: tessera run %s --function lines --check=interpreter
// RUN: tessera run %s --function attended --check=interpreter
// RUN: tessera run %s --function band --check=interpreter
// RUN: tessera run %s --function weights --check=interpreter

dist.process_mesh @m(shape = [4], dim_names = ["d"])

#rows = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Rows of both parts take turns in a product and a sum over all rows; each device joins its own.
// CHECK-LABEL: func.func @guided(
// CHECK: tensor.expand_shape %arg0 {{.*}} : tensor<8x3xf32> into tensor<8x1x3xf32>
// CHECK: tensor.concat dim(1) {{.*}} -> tensor<8x2x3xf32>
// CHECK: tensor.extract_slice {{.*}}[0, 1, 0] [8, 1, 5] [1, 1, 1] : tensor<8x2x5xf32>
// SENT-LABEL: func.func @guided(
// SENT-NOT: dist.exchange
// SENT: return
func.func @guided(%x: tensor<8x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                  %y: tensor<8x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %w: tensor<3x5xf32>)
    -> (tensor<8x5xf32>, tensor<5xf32>) {
  %c = tensor.concat dim(0) %x, %y : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<16x3xf32>
  %zero = arith.constant dense<0.0> : tensor<16x5xf32>
  %h = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%c, %w : tensor<16x3xf32>, tensor<3x5xf32>) outs(%zero : tensor<16x5xf32>) -> tensor<16x5xf32>
  %none = arith.constant dense<0.0> : tensor<5xf32>
  %sum = linalg.reduce { arith.addf } ins(%h : tensor<16x5xf32>) outs(%none : tensor<5xf32>) dimensions = [0]
  %b = tensor.extract_slice %h[8, 0] [8, 5] [1, 1] : tensor<16x5xf32> to tensor<8x5xf32>
  return %b, %sum : tensor<8x5xf32>, tensor<5xf32>
}

// Parts of 8 and 16 rows: one and two in each turn.
// CHECK-LABEL: func.func @unequal(
// CHECK: tensor.concat dim(1) {{.*}} : (tensor<8x1x3xf32>, tensor<8x2x3xf32>) -> tensor<8x3x3xf32>
// SENT-LABEL: func.func @unequal(
// SENT-NOT: dist.exchange
// SENT: return
func.func @unequal(%x: tensor<8x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                   %y: tensor<16x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<8x3xf32>, tensor<16x3xf32>) {
  %c = tensor.concat dim(0) %x, %y : (tensor<8x3xf32>, tensor<16x3xf32>) -> tensor<24x3xf32>
  %h = math.exp %c : tensor<24x3xf32>
  %a = tensor.extract_slice %h[0, 0] [8, 3] [1, 1] : tensor<24x3xf32> to tensor<8x3xf32>
  %b = tensor.extract_slice %h[8, 0] [16, 3] [1, 1] : tensor<24x3xf32> to tensor<16x3xf32>
  return %a, %b : tensor<8x3xf32>, tensor<16x3xf32>
}

// The number of a row is computed from its turn; a comparison for equality, as of labels, compares turns.
// CHECK-LABEL: func.func @numbered(
// CHECK: %[[TURN:.*]] = linalg.index 0 : index
// CHECK: arith.divui %[[TURN]]
// CHECK: arith.remui %[[TURN]]
// CHECK: linalg.generic {{.*}}["parallel", "reduction"]
// CHECK: %[[COLUMN:.*]] = linalg.index 1 : index
// CHECK: arith.cmpi eq, %[[COLUMN]],
// SENT-LABEL: func.func @numbered(
// SENT-NOT: dist.exchange
// SENT: return
func.func @numbered(%x: tensor<8x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                    %y: tensor<8x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                    %labels: tensor<8xi32> {dist.range = [-2, 20]})
    -> (tensor<8x3xf32>, tensor<8xf32>) {
  %c = tensor.concat dim(0) %x, %y : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<16x3xf32>
  %empty = tensor.empty() : tensor<16x3xf32>
  %h = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<16x3xf32>) outs(%empty : tensor<16x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %s = arith.addf %in, %f : f32
    linalg.yield %s : f32
  } -> tensor<16x3xf32>
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %scores = linalg.contract indexing_maps = [#mk, affine_map<(m, n, k) -> (n, k)>, #mn]
      ins(%x, %h : tensor<8x3xf32>, tensor<16x3xf32>) outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  %none = arith.constant dense<0.0> : tensor<8xf32>
  %found = linalg.generic {indexing_maps = [#rows, #all, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%labels, %scores : tensor<8xi32>, tensor<8x16xf32>) outs(%none : tensor<8xf32>) {
  ^bb0(%label: i32, %in: f32, %out: f32):
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i32
    %is = arith.cmpi eq, %label, %n : i32
    %no = arith.constant 0.0 : f32
    %v = arith.select %is, %in, %no : f32
    %s = arith.addf %out, %v : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %b = tensor.extract_slice %h[8, 0] [8, 3] [1, 1] : tensor<16x3xf32> to tensor<8x3xf32>
  return %b, %found : tensor<8x3xf32>, tensor<8xf32>
}

// A roll by a part exchanges the parts in each turn.
// CHECK-LABEL: func.func @swapped(
// CHECK: tensor.concat dim(1)
// CHECK-NOT: dist.rearrange
// SENT-LABEL: func.func @swapped(
// SENT-NOT: dist.exchange
// SENT: return
func.func @swapped(%x: tensor<8x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                   %y: tensor<8x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<8x3xf32> {
  %c = tensor.concat dim(0) %x, %y : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<16x3xf32>
  %h = math.exp %c : tensor<16x3xf32>
  %front = tensor.extract_slice %h[8, 0] [8, 3] [1, 1] : tensor<16x3xf32> to tensor<8x3xf32>
  %back = tensor.extract_slice %h[0, 0] [8, 3] [1, 1] : tensor<16x3xf32> to tensor<8x3xf32>
  %r = tensor.concat dim(0) %front, %back : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<16x3xf32>
  %p = arith.mulf %h, %r : tensor<16x3xf32>
  %q = math.tanh %p : tensor<16x3xf32>
  %a = tensor.extract_slice %q[0, 0] [8, 3] [1, 1] : tensor<16x3xf32> to tensor<8x3xf32>
  return %a : tensor<8x3xf32>
}

// Rows are merged with positions, behind and in front of them.
// SENT-LABEL: func.func @merged(
// SENT-NOT: dist.exchange
// SENT: return
func.func @merged(%x: tensor<8x5xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                  %y: tensor<8x5xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %w: tensor<1x2xf32>)
    -> tensor<8x10xf32> {
  %c = tensor.concat dim(0) %x, %y : (tensor<8x5xf32>, tensor<8x5xf32>) -> tensor<16x5xf32>
  %empty = tensor.empty() : tensor<5x16xf32>
  %t = linalg.transpose ins(%c : tensor<16x5xf32>) outs(%empty : tensor<5x16xf32>) permutation = [1, 0]
  %flat = tensor.collapse_shape %t [[0, 1]] : tensor<5x16xf32> into tensor<80xf32>
  %one = tensor.expand_shape %flat [[0, 1]] output_shape [80, 1] : tensor<80xf32> into tensor<80x1xf32>
  %zero = arith.constant dense<0.0> : tensor<80x2xf32>
  %p = linalg.matmul ins(%one, %w : tensor<80x1xf32>, tensor<1x2xf32>) outs(%zero : tensor<80x2xf32>) -> tensor<80x2xf32>
  %wide = tensor.expand_shape %p [[0, 1], [2]] output_shape [5, 16, 2] : tensor<80x2xf32> into tensor<5x16x2xf32>
  %space = tensor.empty() : tensor<16x5x2xf32>
  %back = linalg.transpose ins(%wide : tensor<5x16x2xf32>) outs(%space : tensor<16x5x2xf32>) permutation = [1, 0, 2]
  %long = tensor.collapse_shape %back [[0, 1], [2]] : tensor<16x5x2xf32> into tensor<80x2xf32>
  %e = math.exp %long : tensor<80x2xf32>
  %rows = tensor.expand_shape %e [[0, 1], [2]] output_shape [16, 5, 2] : tensor<80x2xf32> into tensor<16x5x2xf32>
  %h = tensor.collapse_shape %rows [[0], [1, 2]] : tensor<16x5x2xf32> into tensor<16x10xf32>
  %b = tensor.extract_slice %h[8, 0] [8, 10] [1, 1] : tensor<16x10xf32> to tensor<8x10xf32>
  return %b : tensor<8x10xf32>
}

// Sorts and scans of lines.
// SENT-LABEL: func.func @lines(
// SENT-NOT: dist.exchange
// SENT: return
func.func @lines(%x: tensor<8x5xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                 %y: tensor<8x5xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<8x2xf32> {
  %c = tensor.concat dim(0) %x, %y : (tensor<8x5xf32>, tensor<8x5xf32>) -> tensor<16x5xf32>
  %s = ext.scan dim = 1 ins(%c : tensor<16x5xf32>) {
  ^bb0(%a: f32, %b: f32):
    %sum = arith.addf %a, %b : f32
    ext.yield %sum : f32
  }
  %t = ext.sort dim = 1 keys = 1 limit = 2 ins(%s : tensor<16x5xf32>)
  %r = tensor.extract_slice %t[8, 0] [8, 2] [1, 1] : tensor<16x2xf32> to tensor<8x2xf32>
  return %r : tensor<8x2xf32>
}

// Attention of each row, whose mask depends on queries and keys.
// SENT-LABEL: func.func @attended(
// SENT-NOT: dist.exchange
// SENT: return
func.func @attended(%x: tensor<4x6x2xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                    %y: tensor<4x6x2xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<4x6x2xf32> {
  %c = tensor.concat dim(0) %x, %y : (tensor<4x6x2xf32>, tensor<4x6x2xf32>) -> tensor<8x6x2xf32>
  %o = ext.attention indexing_maps = [affine_map<(b, m, n, f, g) -> (b, m, f)>, affine_map<(b, m, n, f, g) -> (b, n, f)>,
                                      affine_map<(b, m, n, f, g) -> (b, n, g)>, affine_map<(b, m, n, f, g) -> (b, m, g)>]
      ins(%c, %c, %c : tensor<8x6x2xf32>, tensor<8x6x2xf32>, tensor<8x6x2xf32>) {
  ^bb0(%product: f32, %b: index, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFF800000 : f32
    %visible = arith.cmpi sge, %m, %n : index
    %score = arith.select %visible, %product, %least : f32
    ext.yield %score : f32
  } -> tensor<8x6x2xf32>
  %r = tensor.extract_slice %o[4, 0, 0] [4, 6, 2] [1, 1, 1] : tensor<8x6x2xf32> to tensor<4x6x2xf32>
  return %r : tensor<4x6x2xf32>
}

// A mask by the order of the rows stays one.
// CHECK-LABEL: func.func @band(
// CHECK: tensor.concat dim(0)
func.func @band(%x: tensor<8x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %y: tensor<8x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<8x16xf32> {
  %c = tensor.concat dim(0) %x, %y : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<16x3xf32>
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %scores = linalg.contract indexing_maps = [#mk, affine_map<(m, n, k) -> (n, k)>, #mn]
      ins(%c, %c : tensor<16x3xf32>, tensor<16x3xf32>) outs(%zero : tensor<16x16xf32>) -> tensor<16x16xf32>
  %empty = tensor.empty() : tensor<16x16xf32>
  %h = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%scores : tensor<16x16xf32>) outs(%empty : tensor<16x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %seen = arith.cmpi sge, %i, %j : index
    %no = arith.constant 0.0 : f32
    %v = arith.select %seen, %in, %no : f32
    linalg.yield %v : f32
  } -> tensor<16x16xf32>
  %b = tensor.extract_slice %h[8, 0] [8, 16] [1, 1] : tensor<16x16xf32> to tensor<8x16xf32>
  return %b : tensor<8x16xf32>
}

// Blocks of a weight are not rows (split-blocked-dims.mlir).
// CHECK-LABEL: func.func @weights(
// CHECK-NOT: dist.rearrange
// CHECK: return
func.func @weights(%x: tensor<64x3xf32>, %w: tensor<3x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>})
    -> tensor<64x8xf32> {
  %zero = arith.constant dense<0.0> : tensor<64x16xf32>
  %h = linalg.matmul ins(%x, %w : tensor<64x3xf32>, tensor<3x16xf32>) outs(%zero : tensor<64x16xf32>) -> tensor<64x16xf32>
  %a = tensor.extract_slice %h[0, 0] [64, 8] [1, 1] : tensor<64x16xf32> to tensor<64x8xf32>
  %b = tensor.extract_slice %h[0, 8] [64, 8] [1, 1] : tensor<64x16xf32> to tensor<64x8xf32>
  %p = arith.mulf %a, %b : tensor<64x8xf32>
  return %p : tensor<64x8xf32>
}
