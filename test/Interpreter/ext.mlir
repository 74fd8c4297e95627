// RUN: tessera-opt %s --interpret -o /dev/null

// Scans: inclusive, exclusive, reversed, of two tensors at once.
func.func @scans() {
  %x = arith.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
  %sums = ext.scan dim = 0 ins(%x : tensor<3x2xi32>) {
  ^bb0(%before: i32, %behind: i32):
    %sum = arith.addi %before, %behind : i32
    ext.yield %sum : i32
  }
  %sums_expected = arith.constant dense<[[1, 2], [4, 6], [9, 12]]> : tensor<3x2xi32>
  check.expect_eq %sums, %sums_expected : tensor<3x2xi32>
  %behind = ext.scan dim = 0 exclusive reverse ins(%x : tensor<3x2xi32>) identity [0 : i32] {
  ^bb0(%before: i32, %behind: i32):
    %sum = arith.addi %before, %behind : i32
    ext.yield %sum : i32
  }
  %behind_expected = arith.constant dense<[[8, 10], [5, 6], [0, 0]]> : tensor<3x2xi32>
  check.expect_eq %behind, %behind_expected : tensor<3x2xi32>
  // y[i] = a[i] y[i - 1] + b[i]
  %a = arith.constant dense<[2, 3, 4]> : tensor<3xi32>
  %b = arith.constant dense<[1, 1, 1]> : tensor<3xi32>
  %linear:2 = ext.scan dim = 0 ins(%a, %b : tensor<3xi32>, tensor<3xi32>) {
  ^bb0(%a0: i32, %b0: i32, %a1: i32, %b1: i32):
    %a2 = arith.muli %a0, %a1 : i32
    %scaled = arith.muli %a1, %b0 : i32
    %b2 = arith.addi %scaled, %b1 : i32
    ext.yield %a2, %b2 : i32, i32
  }
  %linear_expected = arith.constant dense<[1, 4, 17]> : tensor<3xi32>
  check.expect_eq %linear#1, %linear_expected : tensor<3xi32>
  return
}

// NaN is last, equal zeros keep their order, true is greater than false.
func.func @orders() {
  %x = arith.constant dense<[0.0, 0x7fc00000, -1.0, -0.0, 0xff800000, 3.0, 0xffc00000]> : tensor<7xf32>
  %n = arith.constant dense<[0, 1, 2, 3, 4, 5, 6]> : tensor<7xi32>
  %0:2 = ext.sort dim = 0 keys = 1 ins(%x, %n : tensor<7xf32>, tensor<7xi32>)
  %ascending = arith.constant dense<[4, 2, 0, 3, 5, 1, 6]> : tensor<7xi32>
  check.expect_eq %0#1, %ascending : tensor<7xi32>
  %1:2 = ext.sort dim = 0 keys = 1 descending limit = 5 ins(%x, %n : tensor<7xf32>, tensor<7xi32>)
  %descending = arith.constant dense<[1, 6, 5, 0, 3]> : tensor<5xi32>
  check.expect_eq %1#1, %descending : tensor<5xi32>
  %b = arith.constant dense<[true, false, true, false, true, false, true]> : tensor<7xi1>
  %2:3 = ext.sort dim = 0 keys = 2 ins(%b, %x, %n : tensor<7xi1>, tensor<7xf32>, tensor<7xi32>)
  %both = arith.constant dense<[3, 5, 1, 4, 2, 0, 6]> : tensor<7xi32>
  check.expect_eq %2#2, %both : tensor<7xi32>
  return
}
