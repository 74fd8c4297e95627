// RUN: tessera-opt %s --split-input-file --verify-diagnostics

#q = affine_map<(m, n, f, g) -> (m, f)>
#k = affine_map<(m, n, f, g) -> (n, f)>
#v = affine_map<(m, n, f, g) -> (n, g)>
#o = affine_map<(m, n, f, g) -> (m, g)>

// (E7)
func.func @maps(%q: tensor<4x3xf32>, %k: tensor<5x3xf32>, %v: tensor<5x2xf32>) {
  // expected-error@+1 {{'ext.attention' op has 3 indexing maps for 4 operands and results; give one per operand and result}}
  %0 = ext.attention indexing_maps = [#q, #k, #v] ins(%q, %k, %v : tensor<4x3xf32>, tensor<5x3xf32>, tensor<5x2xf32>) {
  ^bb0(%p: f32, %i: index, %j: index, %x: index, %y: index):
    ext.yield %p : f32
  } -> tensor<4x2xf32>
  return
}

// -----

#q = affine_map<(m, n, f, g) -> (m, f)>
#k = affine_map<(m, n, f, g) -> (n, f)>
#v = affine_map<(m, n, f, g) -> (n, g)>
#o = affine_map<(m, n, f, g) -> (m, g)>

// (E7)
func.func @extents(%q: tensor<4x3xf32>, %k: tensor<5x3xf32>, %v: tensor<6x2xf32>) {
  // expected-error@+1 {{'ext.attention' op has operand 2 of 'tensor<6x2xf32>' with map affine_map<(d0, d1, d2, d3) -> (d1, d3)>, where loop d1 has extent 6 and in another map 5; a loop must have one extent}}
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<4x3xf32>, tensor<5x3xf32>, tensor<6x2xf32>) {
  ^bb0(%p: f32, %i: index, %j: index, %x: index, %y: index):
    ext.yield %p : f32
  } -> tensor<4x2xf32>
  return
}

// -----

#q = affine_map<(m, n, f, g) -> (m, f)>
#k = affine_map<(m, n, f, g) -> (n, f)>
#v = affine_map<(m, n, f, g) -> (n, g)>
#o = affine_map<(m, n, f, g) -> (m, g)>
#e = affine_map<(m, n, f, g) -> (n, f)>

// (E8)
func.func @feature(%q: tensor<4x3xf32>, %k: tensor<5x3xf32>, %v: tensor<5x2xf32>, %b: tensor<5x3xf32>) {
  // expected-error@+1 {{'ext.attention' op has extra operand 3 over loop d2, a feature loop; scores have no feature loops}}
  %0 = ext.attention indexing_maps = [#q, #k, #v, #e, #o]
      ins(%q, %k, %v, %b : tensor<4x3xf32>, tensor<5x3xf32>, tensor<5x2xf32>, tensor<5x3xf32>) {
  ^bb0(%p: f32, %e: f32, %i: index, %j: index, %x: index, %y: index):
    ext.yield %p : f32
  } -> tensor<4x2xf32>
  return
}

// -----

#q = affine_map<(m, n, f, g) -> (m, f)>
#k = affine_map<(m, n, f, g) -> (n, f)>
#v = affine_map<(m, n, f, g) -> (n, g)>
#o = affine_map<(m, n, f, g) -> (m, g)>

// (E9)
func.func @region(%q: tensor<4x3xf32>, %k: tensor<5x3xf32>, %v: tensor<5x2xf32>) {
  // expected-error@+1 {{'ext.attention' op reads the index of loop d2, a feature loop; scores have no feature loops}}
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<4x3xf32>, tensor<5x3xf32>, tensor<5x2xf32>) {
  ^bb0(%p: f32, %i: index, %j: index, %x: index, %y: index):
    %same = arith.cmpi eq, %x, %i : index
    %zero = arith.constant 0.0 : f32
    %score = arith.select %same, %p, %zero : f32
    ext.yield %score : f32
  } -> tensor<4x2xf32>
  return
}

// -----

#q = affine_map<(m, n, f, g) -> (m, f)>
#k = affine_map<(m, n, f, g) -> (n, f)>
#v = affine_map<(m, n, f, g) -> (n, g)>
#o = affine_map<(m, n, f, g) -> (m, g)>

// (E10)
func.func @ring(%q: tensor<1x3xf32>, %k: tensor<5x3xf32>, %v: tensor<5x2xf32>) {
  // expected-error@+1 {{'ext.attention' op has 'ring' and a single query; a ring cuts queries along with the keys, remove 'ring'}}
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<1x3xf32>, tensor<5x3xf32>, tensor<5x2xf32>) attributes {ring} {
  ^bb0(%p: f32, %i: index, %j: index, %x: index, %y: index):
    ext.yield %p : f32
  } -> tensor<1x2xf32>
  return
}

// -----

#q = affine_map<(m, n, f, g) -> (m, f)>
#k = affine_map<(m, n, f, g) -> (n, f)>
#v = affine_map<(m, n, f, g) -> (n, g)>
#o = affine_map<(m, n, f, g) -> (m, g)>

// (E11)
func.func @no_ring(%q: tensor<4x3xf32>, %k: tensor<4x3xf32>, %v: tensor<4x2xf32>) {
  // expected-error@+1 {{'ext.attention' op has 'balanced' without 'ring'; add 'ring'}}
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x2xf32>) attributes {balanced} {
  ^bb0(%p: f32, %i: index, %j: index, %x: index, %y: index):
    ext.yield %p : f32
  } -> tensor<4x2xf32>
  return
}

// -----

#q = affine_map<(m, n, f, g) -> (m, f)>
#k = affine_map<(m, n, f, g) -> (n, f)>
#v = affine_map<(m, n, f, g) -> (n, g)>
#o = affine_map<(m, n, f, g) -> (m, g)>

// (E11)
func.func @no_mask(%q: tensor<4x3xf32>, %k: tensor<4x3xf32>, %v: tensor<4x2xf32>) {
  // expected-error@+1 {{'ext.attention' op has 'balanced' without a causal mask over as many queries as keys, which a balanced ring requires; remove 'balanced'}}
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x2xf32>) attributes {balanced, ring} {
  ^bb0(%p: f32, %i: index, %j: index, %x: index, %y: index):
    ext.yield %p : f32
  } -> tensor<4x2xf32>
  return
}

// -----

#q = affine_map<(m, n, f, g) -> (m, f)>
#k = affine_map<(m, n, f, g) -> (n, f)>
#v = affine_map<(m, n, f, g) -> (n, g)>
#o = affine_map<(m, n, f, g) -> (m, g)>

// (E12)
func.func @shifted_weights(%q: tensor<4x3xf32>, %k: tensor<5x3xf32>, %v: tensor<5x2xf32>) {
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<4x3xf32>, tensor<5x3xf32>, tensor<5x2xf32>) {
  ^bb0(%p: f32, %i: index, %j: index, %x: index, %y: index):
    ext.yield %p : f32
  } weights {
  ^bb0(%p: f32, %i: index, %j: index, %x: index, %y: index):
    %same = arith.cmpi eq, %i, %j : index
    %one = arith.constant 1.0 : f32
    %weight = arith.select %same, %p, %one : f32
    // expected-error@+1 {{'ext.yield' op yields a weight that is not linear in the share of the softmax; multiply or divide the share by other values, or select between it and zero}}
    ext.yield %weight : f32
  } -> tensor<4x2xf32>
  return
}

// -----

#q = affine_map<(m, n, f, g) -> (m, f)>
#k = affine_map<(m, n, f, g) -> (n, f)>
#v = affine_map<(m, n, f, g) -> (n, g)>
#o = affine_map<(m, n, f, g) -> (m, g)>

// (E9)
func.func @weights_without_indices(%q: tensor<4x3xf32>, %k: tensor<5x3xf32>, %v: tensor<5x2xf32>) {
  // expected-error@+1 {{'ext.attention' op has a region over ('f32'); expected a float, an element of each extra operand, 4 indices}}
  %0 = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<4x3xf32>, tensor<5x3xf32>, tensor<5x2xf32>) {
  ^bb0(%p: f32, %i: index, %j: index, %x: index, %y: index):
    ext.yield %p : f32
  } weights {
  ^bb0(%p: f32):
    ext.yield %p : f32
  } -> tensor<4x2xf32>
  return
}
