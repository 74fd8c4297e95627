// RUN: tessera-opt %s --verify-diagnostics --split-input-file

// (C1)
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{mesh 'pod' is not declared}}
  %0 = dist.all_reduce %x over @pod ["x"] reduction = sum : tensor<4xf32>
  return
}

// -----
// (C1)
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{mesh 'pod' has no axis 'y'}}
  %0 = dist.all_reduce %x over @pod ["y"] reduction = sum : tensor<4xf32>
  return
}

// -----
// (C1)
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{mesh axis 'x' is used twice}}
  %0 = dist.all_reduce %x over @pod ["x", "x"] reduction = sum : tensor<4xf32>
  return
}

// -----
// (C2)
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{dim = 1 of a rank-1 tensor 'tensor<4xf32>'; it must be in [0, 1)}}
  %0 = dist.all_gather %x over @pod ["x"] dim = 1 : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----
// (C3)
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{result 0 is 'tensor<9xf32>', but its layout over mesh 'pod' has shape 'tensor<8xf32>'}}
  %0 = dist.all_gather %x over @pod ["x"] dim = 0 : tensor<4xf32> -> tensor<9xf32>
  return
}

// -----
// (C4)
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @f(%x: tensor<4xi32>) {
  // expected-error@+1 {{averages 'tensor<4xi32>'; integers have no average}}
  %0 = dist.all_reduce %x over @pod ["x"] reduction = avg : tensor<4xi32>
  return
}

// -----
// (C5)
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %i = dist.axis_index over @pod ["x"] : index
  %c0 = arith.constant 0 : index
  %c = arith.cmpi eq, %i, %c0 : index
  %r = scf.if %c -> tensor<4xf32> {
    // expected-error@+1 {{is nested in 'scf.if', whose control flow may differ between devices along axis 'x' of mesh 'pod': some would wait forever}}
    %0 = dist.all_reduce %x over @pod ["x"] reduction = sum : tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----
// (C7)
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{is waited for 0 times; a token is waited for exactly once}}
  %t = dist.start {
    %0 = dist.all_reduce %x over @pod ["x"] reduction = sum : tensor<4xf32>
    dist.yield %0 : tensor<4xf32>
  } : !dist.token<tensor<4xf32>>
  return
}

// -----
// (C3)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @f(%a: tensor<4611686018427387904xf32>) {
  // expected-error@+1 {{joins 4 parts of extent 4611686018427387904 along dimension 0; extents must fit in 63 bits}}
  %0 = dist.all_gather %a over @m ["x"] dim = 0 : tensor<4611686018427387904xf32> -> tensor<8xf32>
  return
}

// -----
// (C8)
dist.process_mesh @pod(shape = [4], dim_names = ["x"])
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{root = 9 of a group of 4 devices; a root must be in [0, 4)}}
  %0 = dist.gather %x over @pod ["x"] dim = 0 root = 9 : tensor<8xf32> -> tensor<32xf32>
  return
}

// -----
// (C8)
dist.process_mesh @pod(shape = [4], dim_names = ["x"])
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{root = -1 of a group of 4 devices; a root must be in [0, 4)}}
  %0 = dist.reduce %x over @pod ["x"] root = -1 reduction = sum : tensor<8xf32>
  return
}

// -----
// (C8) A group of one axis is smaller than the mesh.
dist.process_mesh @pod(shape = [2, 4], dim_names = ["x", "y"])
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{root = 2 of a group of 2 devices; a root must be in [0, 2)}}
  %0 = dist.broadcast %x over @pod ["x"] root = 2 : tensor<8xf32>
  return
}

// -----
// (C8)
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{permutation names device 2 of a group of 2; positions must be in [0, 2)}}
  %0 = dist.permute %x over @pod ["x"] permutation = [2, 0] : tensor<8xf32>
  return
}

// -----
// (C8)
dist.process_mesh @pod(shape = [2], dim_names = ["x"])
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{permutes 1 devices of a group of 2; give one entry per device}}
  %0 = dist.permute %x over @pod ["x"] permutation = [0] : tensor<8xf32>
  return
}
