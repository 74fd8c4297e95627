// RUN: tessera-opt %s --verify-diagnostics --split-input-file

// (F1)
// expected-error@+1 {{result 0: dist.feeds = 3 : i64 does not name an argument; there are 1}}
func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32> {dist.feeds = 3}) { return %x : tensor<4xf32> }

// -----
// (F1)
// expected-error@+1 {{result 0: dist.feeds = 1, but the result is 'tensor<4xf32>' and the argument 'tensor<5xf32>'}}
func.func @f(%x: tensor<4xf32>, %y: tensor<5xf32>) -> (tensor<4xf32> {dist.feeds = 1}) { return %x : tensor<4xf32> }

// -----
// (F1)
// expected-error@+1 {{result 1: argument 0 is fed by result 0 too; each argument is fed once}}
func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32> {dist.feeds = 0}, tensor<4xf32> {dist.feeds = 0}) { return %x, %x : tensor<4xf32>, tensor<4xf32> }

// -----
// (F2)
// expected-error@+1 {{argument 1: dist.name "w" is also the name of argument 0; names are unique}}
func.func @f(%x: tensor<4xf32> {dist.name = "w"}, %y: tensor<4xf32> {dist.name = "w"}) { return }

// -----
// (F2)
// expected-error@+1 {{is not a valid name; give a non-empty string}}
func.func @f(%x: tensor<4xf32> {dist.name = ""}) { return }

// -----
// (F3)
// expected-error@+1 {{dist.range [5, 5] is not [lo, hi] with lo < hi}}
func.func @f(%x: tensor<4xi32> {dist.range = [5, 5]}) { return }

// -----
// (F3)
// expected-error@+1 {{dist.range is only allowed on integer tensors}}
func.func @f(%x: tensor<4xf32> {dist.range = [0, 5]}) { return }

// -----
// expected-error@+1 {{unknown attribute 'dist.shard'}}
func.func @f(%x: tensor<4xf32> {dist.shard = 1}) { return }

// -----
// (F3)
// expected-error@+1 {{dist.range [-4, 9223372036854775807] exceeds -2147483648 to 2147483647, the range of 'i32'}}
func.func @f(%x: tensor<4xi32> {dist.range = [-4, 9223372036854775807]}) { return }
