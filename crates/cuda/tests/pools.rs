//! Memory of streams. In a process of its own: what is freed twice, or read when it is free, must not be another test's by then.

mod common;

use common::*;
use cuda::table::*;

#[test]
fn pools_give_and_take() {
    let _s = Session::new();
    let (mut pool, mut a, s) = (NULL, 0, stream(0));
    assert_eq!(cuDeviceGetDefaultMemPool(out(&mut pool), 0), 0);
    assert_eq!(cuMemAllocAsync(out(&mut a), 1 << 20, s), 0);
    assert_eq!(cuMemsetD32Async(a, 9, 1 << 18, s), 0);
    assert_eq!(cuMemFreeAsync(a, s), 0);
    assert_eq!(cuMemFreeAsync(a, s), 1);
    assert_eq!(cuStreamSynchronize(s), 0);
    assert_eq!(cuMemcpyDtoH_v2(std::ptr::from_mut(&mut pool) as usize, a, 4), 1);
}
