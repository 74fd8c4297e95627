// RUN: tessera-opt %s --verify-diagnostics --split-input-file

// (M1)
// expected-error@+1 {{'pod' has no axes; a mesh has at least one}}
dist.process_mesh @pod(shape = [], dim_names = [])

// -----
// (M1)
// expected-error@+1 {{'pod' has 2 axes and 1 names; give one name per axis}}
dist.process_mesh @pod(shape = [2, 4], dim_names = ["x"])

// -----
// (M2)
// expected-error@+1 {{duplicate axis name 'x' in mesh 'pod'}}
dist.process_mesh @pod(shape = [2, 4], dim_names = ["x", "x"])

// -----
// (M2)
// expected-error@+1 {{'pod' has an axis without a name}}
dist.process_mesh @pod(shape = [2], dim_names = [""])

// -----
// (M3)
// expected-error@+1 {{'pod' has extent 0; extents are positive}}
dist.process_mesh @pod(shape = [0, 4], dim_names = ["x", "y"])

// -----
// (M3)
// expected-error@+1 {{'pod' has extent -2; extents are positive}}
dist.process_mesh @pod(shape = [-2], dim_names = ["x"])

// -----
// (M3)
// expected-error@+1 {{'pod' has more than 1048576 devices, the maximum}}
dist.process_mesh @pod(shape = [4294967296, 4294967296, 2], dim_names = ["x", "y", "z"])

// -----
// (M4)
// expected-error@+1 {{'pod' has 4 devices and 3 process ids; give one id per device}}
dist.process_mesh @pod(shape = [2, 2], dim_names = ["x", "y"], process_ids = [0, 1, 2])

// -----
// (M4)
// expected-error@+1 {{'pod' has process id -1; ids are not negative}}
dist.process_mesh @pod(shape = [2], dim_names = ["x"], process_ids = [0, -1])

// -----
// (M4)
// expected-error@+1 {{duplicate process id 3 in mesh 'pod'}}
dist.process_mesh @pod(shape = [2], dim_names = ["x"], process_ids = [3, 3])

// -----
// (M4)
// expected-error@+1 {{'pod' has process id 9223372036854775807; the largest is 1048575}}
dist.process_mesh @pod(shape = [2], dim_names = ["x"], process_ids = [9223372036854775807, 1])
