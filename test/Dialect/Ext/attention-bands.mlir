// Which masks are windows of keys. RUN: tessera-opt %s --dist-print-rules --verify-diagnostics -o /dev/null

#q = affine_map<(m, n, f, g) -> (m, f)>
#k = affine_map<(m, n, f, g) -> (n, f)>
#v = affine_map<(m, n, f, g) -> (n, g)>
#o = affine_map<(m, n, f, g) -> (m, g)>
#row = affine_map<(m, n, f, g) -> (m)>
#both = affine_map<(m, n, f, g) -> (m, n)>

// |m - n| <= 2, by adding a finite number.
func.func @distance(%x: tensor<32x4xf32>) {
  // expected-remark @+1 {{([i, 1], [i - 2 .. + 5, 1], [i - 2 .. + 5, 1]) -> ([i, 1]) {i = 32, j = 32} whole j}}
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%x, %x, %x : tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>) {
  ^bb0(%product: f32, %m: index, %n: index, %f: index, %g: index):
    %zero = arith.constant 0.0 : f32
    %least = arith.constant -1.0e9 : f32
    %c2 = arith.constant 2 : i32
    %i = arith.index_cast %m : index to i32
    %j = arith.index_cast %n : index to i32
    %difference = arith.subi %i, %j : i32
    %distance = math.absi %difference : i32
    %far = arith.cmpi sgt, %distance, %c2 : i32
    %mask = arith.select %far, %least, %zero : f32
    %score = arith.addf %product, %mask : f32
    ext.yield %score : f32
  } -> tensor<32x4xf32>
  return
}

// Chunks of 4: the distance is at most 3.
func.func @chunks(%x: tensor<32x4xf32>) {
  // expected-remark @+1 {{([i, 1], [i - 3 .. + 7, 1], [i - 3 .. + 7, 1]) -> ([i, 1]) {i = 32, j = 32} whole j}}
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%x, %x, %x : tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>) {
  ^bb0(%product: f32, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFF800000 : f32
    %c4 = arith.constant 4 : index
    %i = arith.divui %m, %c4 : index
    %j = arith.divui %n, %c4 : index
    %near = arith.cmpi eq, %i, %j : index
    %score = arith.select %near, %product, %least : f32
    ext.yield %score : f32
  } -> tensor<32x4xf32>
  return
}

// Queries are those from 8 on: key n is at distance n - m - 8.
func.func @offset(%q: tensor<24x4xf32>, %k: tensor<32x4xf32>) {
  // expected-remark @+1 {{([i, 1], [i + 6 .. + 3, 1], [i + 6 .. + 3, 1]) -> ([i, 1]) {i = 24, j = 32} whole j}}
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %k : tensor<24x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>) {
  ^bb0(%product: f32, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant -1.0e30 : f32
    %c8 = arith.constant 8 : index
    %c5 = arith.constant 5 : index
    %at = arith.addi %m, %c8 : index
    %behind = arith.cmpi sge, %at, %n : index
    %first = arith.addi %m, %c5 : index
    %near = arith.cmpi sgt, %n, %first : index
    %visible = arith.andi %behind, %near : i1
    %score = arith.select %visible, %product, %least : f32
    ext.yield %score : f32
  } -> tensor<24x4xf32>
  return
}

// The derivative contributes to the keys of a window; a query always sees its own position.
func.func @backward(%x: tensor<32x4xf32>, %sum: tensor<32xf32>) {
  // expected-remark @+1 {{([i, 1], [i - 3 .. + 4, 1], [i - 3 .. + 4, 1], [i, 1], [i], [i]) -> ([i, 1], [i, 1], [i, 1]) {i = 32, j = 32} whole j}}
  %0:3 = ext.attention_backward indexing_maps = [#q, #k, #v, #o, #row, #row, #q, #k, #v]
      ins(%x, %x, %x, %x, %sum, %sum : tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>, tensor<32xf32>, tensor<32xf32>) {
  ^bb0(%product: f32, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFF800000 : f32
    %c3 = arith.constant 3 : index
    %behind = arith.cmpi sgt, %m, %n : index
    %last = arith.addi %n, %c3 : index
    %near = arith.cmpi sle, %m, %last : index
    %score = arith.select %behind, %product, %least : f32
    %masked = arith.select %near, %score, %least : f32
    ext.yield %masked : f32
  } derivative {
  ^bb0(%product: f32, %m: index, %n: index, %f: index, %g: index, %d: f32):
    ext.yield %d : f32
  } -> tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>
  return
}

// If masked scores are finite, a row in which another mask hides all keys is the mean of all values.
func.func @finite_and_an_extra(%x: tensor<32x4xf32>, %padding: tensor<32xi1>) {
  // expected-remark @+1 {{([i, 1], [j, 1], [j, 1], [j]) -> ([i, 1]) {i = 32, j = 32} sum over j}}
  %0 = ext.attention indexing_maps = [#q, #k, #v, affine_map<(m, n, f, g) -> (n)>, #o]
      ins(%x, %x, %x, %padding : tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>, tensor<32xi1>) {
  ^bb0(%product: f32, %isThere: i1, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant -1.0e30 : f32
    %near = arith.cmpi eq, %m, %n : index
    %visible = arith.andi %near, %isThere : i1
    %score = arith.select %visible, %product, %least : f32
    ext.yield %score : f32
  } -> tensor<32x4xf32>
  return
}

// The same holds for the first row here, which sees no key: 1 <= m - n <= 2.
func.func @finite_and_an_empty_row(%x: tensor<32x4xf32>) {
  // expected-remark @+1 {{([i, 1], [j, 1], [j, 1]) -> ([i, 1]) {i = 32, j = 32} sum over j}}
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%x, %x, %x : tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>) {
  ^bb0(%product: f32, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant -1.0e30 : f32
    %c2 = arith.constant 2 : index
    %distance = arith.subi %m, %n : index
    %behind = arith.cmpi sgt, %m, %n : index
    %near = arith.cmpi sle, %distance, %c2 : index
    %visible = arith.andi %behind, %near : i1
    %score = arith.select %visible, %product, %least : f32
    ext.yield %score : f32
  } -> tensor<32x4xf32>
  return
}

// Not windows: a causal mask alone, one beside keys that all queries see; and a bias over queries and keys is not cut by one loop.
func.func @none(%x: tensor<32x4xf32>, %bias: tensor<32x32xf32>) {
  // expected-remark @+1 {{([i, 1], [j, 1], [j, 1]) -> ([i, 1]) {i = 32, j = 32} sum over j}}
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%x, %x, %x : tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>) {
  ^bb0(%product: f32, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFF800000 : f32
    %behind = arith.cmpi sge, %m, %n : index
    %score = arith.select %behind, %product, %least : f32
    ext.yield %score : f32
  } -> tensor<32x4xf32>
  // expected-remark @+1 {{([i, 1], [j, 1], [j, 1]) -> ([i, 1]) {i = 32, j = 32} sum over j}}
  %1 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%x, %x, %x : tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>) {
  ^bb0(%product: f32, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFF800000 : f32
    %c2 = arith.constant 2 : index
    %own = arith.cmpi eq, %m, %n : index
    %global = arith.cmpi slt, %n, %c2 : index
    %visible = arith.ori %own, %global : i1
    %score = arith.select %visible, %product, %least : f32
    ext.yield %score : f32
  } -> tensor<32x4xf32>
  // expected-remark @+1 {{([i, 1], [j, 1], [j, 1], [i, j]) -> ([i, 1]) {i = 32, j = 32} sum over j}}
  %2 = ext.attention indexing_maps = [#q, #k, #v, #both, #o]
      ins(%x, %x, %x, %bias : tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x32xf32>) {
  ^bb0(%product: f32, %b: f32, %m: index, %n: index, %f: index, %g: index):
    %least = arith.constant 0xFF800000 : f32
    %own = arith.cmpi eq, %m, %n : index
    %biased = arith.addf %product, %b : f32
    %score = arith.select %own, %biased, %least : f32
    ext.yield %score : f32
  } -> tensor<32x4xf32>
  return
}
