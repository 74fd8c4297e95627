// Updates at computed indices are done by the owners of the indices, in order: bitwise equal to one thread.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-loops" -o /dev/null | FileCheck %s --check-prefix=LOOPS

// A block owns one of 50 rows, and its threads a column and all updates of that, since a range has one row.
// CHECK: rows: pointwise scatter {{(pointwise )?}}equal
// LOOPS-LABEL: rows: launches
// LOOPS: scatter: grid 50, block 256,
// LOOPS: scf.for
// LOOPS: arith.cmpi ult
// LOOPS: gpu.shuffle xor
// LOOPS: gpu.barrier
// LOOPS: scf.for
// LOOPS: scf.if
// LOOPS: memref.store {{.*}} : memref<50x3xf32>
func.func private @rows(%s: tensor<1000x3xf32>, %i: tensor<1000x1xindex>, %d: tensor<50x3xf32>, %o: tensor<50x3xf32>)
    -> tensor<50x3xf32> attributes {kernel.reads = 3 : i64} {
  %0 = tensor.scatter %s into %d[%i] scatter_dims([0]) unique
      : (tensor<1000x3xf32>, tensor<50x3xf32>, tensor<1000x1xindex>) -> tensor<50x3xf32>
  return %0 : tensor<50x3xf32>
}

// Single elements.
// CHECK: elements: pointwise scatter {{(pointwise )?}}equal
func.func private @elements(%s: tensor<1000xf32>, %i: tensor<1000x1xindex>, %d: tensor<7xf32>, %o: tensor<7xf32>)
    -> tensor<7xf32> attributes {kernel.reads = 3 : i64} {
  %0 = tensor.scatter %s into %d[%i] scatter_dims([0]) unique
      : (tensor<1000xf32>, tensor<7xf32>, tensor<1000x1xindex>) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}

// The derivative of a look-up: sums in the order of the updates.
// CHECK: sums: pointwise scatter {{(pointwise )?}}equal
func.func private @sums(%i: tensor<500xi32>, %g: tensor<500x6xf32>, %o: tensor<40x6xf32>) -> tensor<40x6xf32>
    attributes {kernel.reads = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %fill = linalg.fill ins(%zero : f32) outs(%o : tensor<40x6xf32>) -> tensor<40x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(v, j, n) -> (n)>, affine_map<(v, j, n) -> (n, j)>,
                                        affine_map<(v, j, n) -> (v, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%i, %g : tensor<500xi32>, tensor<500x6xf32>) outs(%fill : tensor<40x6xf32>) {
  ^bb0(%at: i32, %value: f32, %sum: f32):
    %v = linalg.index 0 : index
    %row = arith.index_cast %v : index to i32
    %hit = arith.cmpi eq, %at, %row : i32
    %term = arith.select %hit, %value, %zero : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<40x6xf32>
  return %r : tensor<40x6xf32>
}

// More columns than a block has threads, and rows of several blocks; 2,000 updates are two chunks of 1,024.
// CHECK: wide: pointwise scatter equal
func.func private @wide(%i: tensor<2000xi32>, %g: tensor<2000x300xf32>, %o: tensor<400x300xf32>) -> tensor<400x300xf32>
    attributes {kernel.reads = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %fill = linalg.fill ins(%zero : f32) outs(%o : tensor<400x300xf32>) -> tensor<400x300xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(v, j, n) -> (n)>, affine_map<(v, j, n) -> (n, j)>,
                                        affine_map<(v, j, n) -> (v, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%i, %g : tensor<2000xi32>, tensor<2000x300xf32>) outs(%fill : tensor<400x300xf32>) {
  ^bb0(%at: i32, %value: f32, %sum: f32):
    %v = linalg.index 0 : index
    %row = arith.index_cast %v : index to i32
    %hit = arith.cmpi eq, %at, %row : i32
    %term = arith.select %hit, %value, %zero : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<400x300xf32>
  return %r : tensor<400x300xf32>
}

// Indices of each of four batches, and integers, whose sums are exact.
// CHECK: batched: pointwise scatter equal
func.func private @batched(%i: tensor<4x300xi32>, %g: tensor<4x300x5xi32>, %o: tensor<4x20x5xi32>) -> tensor<4x20x5xi32>
    attributes {kernel.reads = 2 : i64} {
  %zero = arith.constant 0 : i32
  %fill = linalg.fill ins(%zero : i32) outs(%o : tensor<4x20x5xi32>) -> tensor<4x20x5xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, v, j, n) -> (b, n)>, affine_map<(b, v, j, n) -> (b, n, j)>,
                                        affine_map<(b, v, j, n) -> (b, v, j)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%i, %g : tensor<4x300xi32>, tensor<4x300x5xi32>) outs(%fill : tensor<4x20x5xi32>) {
  ^bb0(%at: i32, %value: i32, %sum: i32):
    %v = linalg.index 1 : index
    %row = arith.index_cast %v : index to i32
    %hit = arith.cmpi eq, %at, %row : i32
    %term = arith.select %hit, %value, %zero : i32
    %next = arith.addi %sum, %term : i32
    linalg.yield %next : i32
  } -> tensor<4x20x5xi32>
  return %r : tensor<4x20x5xi32>
}

// A thread has four columns of f32, and 16 threads share a row, so that 16 groups of a block divide its rows. 5,000
// updates are two chunks of 4,096.
// CHECK: vectors: pointwise scatter equal
// LOOPS-LABEL: vectors: launches
// LOOPS: scatter: grid {{[0-9]+}}, block 256,
// LOOPS: vector.load {{.*}} : memref<5000x64xf32>, vector<4xf32>
// LOOPS: vector.store {{.*}} : memref<300x64xf32>, vector<4xf32>
func.func private @vectors(%i: tensor<5000xi32>, %g: tensor<5000x64xf32>, %o: tensor<300x64xf32>) -> tensor<300x64xf32>
    attributes {kernel.reads = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %fill = linalg.fill ins(%zero : f32) outs(%o : tensor<300x64xf32>) -> tensor<300x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(v, j, n) -> (n)>, affine_map<(v, j, n) -> (n, j)>,
                                        affine_map<(v, j, n) -> (v, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%i, %g : tensor<5000xi32>, tensor<5000x64xf32>) outs(%fill : tensor<300x64xf32>) {
  ^bb0(%at: i32, %value: f32, %sum: f32):
    %v = linalg.index 0 : index
    %row = arith.index_cast %v : index to i32
    %hit = arith.cmpi eq, %at, %row : i32
    %term = arith.select %hit, %value, %zero : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<300x64xf32>
  return %r : tensor<300x64xf32>
}

// Long rows: 192 threads of a block have all columns, and perform four updates at once. With 40 rows most of these are
// of the same rows as others.
// CHECK: together: pointwise scatter equal
// LOOPS-LABEL: together: launches
// LOOPS: scatter: grid 40, block 256,
// LOOPS: vector.load {{.*}} : memref<40x768xf32>, vector<4xf32>
// LOOPS: arith.select {{.*}} : vector<4xf32>
// LOOPS: vector.store {{.*}} : memref<40x768xf32>, vector<4xf32>
func.func private @together(%i: tensor<1500xi32>, %g: tensor<1500x768xf32>, %o: tensor<40x768xf32>)
    -> tensor<40x768xf32> attributes {kernel.reads = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %fill = linalg.fill ins(%zero : f32) outs(%o : tensor<40x768xf32>) -> tensor<40x768xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(v, j, n) -> (n)>, affine_map<(v, j, n) -> (n, j)>,
                                        affine_map<(v, j, n) -> (v, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%i, %g : tensor<1500xi32>, tensor<1500x768xf32>) outs(%fill : tensor<40x768xf32>) {
  ^bb0(%at: i32, %value: f32, %sum: f32):
    %v = linalg.index 0 : index
    %row = arith.index_cast %v : index to i32
    %hit = arith.cmpi eq, %at, %row : i32
    %term = arith.select %hit, %value, %zero : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<40x768xf32>
  return %r : tensor<40x768xf32>
}

// Overwritten rows: the last update of a row remains. Rows of bf16, eight columns a thread.
// CHECK: overwritten: pointwise scatter {{(pointwise )?}}equal
func.func private @overwritten(%s: tensor<700x256xbf16>, %i: tensor<700x1xindex>, %d: tensor<50x256xbf16>, %o: tensor<50x256xbf16>)
    -> tensor<50x256xbf16> attributes {kernel.reads = 3 : i64} {
  %0 = tensor.scatter %s into %d[%i] scatter_dims([0]) unique
      : (tensor<700x256xbf16>, tensor<50x256xbf16>, tensor<700x1xindex>) -> tensor<50x256xbf16>
  return %0 : tensor<50x256xbf16>
}

// Scaled terms are computed by the updates: no launch writes them to memory.
// CHECK: scaled: pointwise scatter equal
func.func private @scaled(%i: tensor<500xi32>, %g: tensor<500x64xf32>, %o: tensor<40x64xf32>) -> tensor<40x64xf32>
    attributes {kernel.reads = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %factor = arith.constant 0.37 : f32
  %empty = tensor.empty() : tensor<500x64xf32>
  %terms = linalg.generic {indexing_maps = [affine_map<(n, j) -> (n, j)>, affine_map<(n, j) -> (n, j)>],
                           iterator_types = ["parallel", "parallel"]}
      ins(%g : tensor<500x64xf32>) outs(%empty : tensor<500x64xf32>) {
  ^bb0(%value: f32, %unused: f32):
    %scaled = arith.mulf %value, %factor : f32
    linalg.yield %scaled : f32
  } -> tensor<500x64xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%o : tensor<40x64xf32>) -> tensor<40x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(v, j, n) -> (n)>, affine_map<(v, j, n) -> (n, j)>,
                                        affine_map<(v, j, n) -> (v, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%i, %terms : tensor<500xi32>, tensor<500x64xf32>) outs(%fill : tensor<40x64xf32>) {
  ^bb0(%at: i32, %value: f32, %sum: f32):
    %v = linalg.index 0 : index
    %row = arith.index_cast %v : index to i32
    %hit = arith.cmpi eq, %at, %row : i32
    %term = arith.select %hit, %value, %zero : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<40x64xf32>
  return %r : tensor<40x64xf32>
}
