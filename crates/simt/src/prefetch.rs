//! Hints to the host's caches. SMs and slices of a timed machine take turns, so what one needs has often left the nearer
//! caches since its last turn: asking early for several things lets them come together.

/// Bytes that a host's caches fetch at once.
pub const HOST_LINE: usize = 64;

/// A hint for a level of the host's caches: 3 for the first, 2 for the second.
#[inline(always)]
fn hint<const LEVEL: i32>(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint reads and changes nothing that a program can see, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<LEVEL>(address.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Asks for what is at an address, if anything is. It comes to the second level of a host's caches: the first one waits for
/// few lines at a time, fewer than are asked for together, and holds what a turn needs no longer than until then.
#[inline(always)]
pub fn prefetch_at<T>(address: *const T) {
    hint::<2>(address.cast());
}

/// Asks for all of a value.
#[inline(always)]
pub fn prefetch_all<T>(value: *const T) {
    prefetch_bytes(value as usize, size_of::<T>());
}

/// Asks for an entry of a list that will be used soon. One that does not exist is not asked for.
#[inline(always)]
pub fn prefetch<T>(list: &[T], n: usize) {
    if let Some(entry) = list.get(n) {
        prefetch_at(entry);
    }
}

/// Asks for all of a list.
#[inline(always)]
pub fn prefetch_list<T>(list: &[T]) {
    prefetch_bytes(list.as_ptr() as usize, size_of_val(list));
}

/// Asks for so many bytes from an address on.
#[inline(always)]
pub fn prefetch_bytes(start: usize, bytes: usize) {
    each_line(start, bytes, prefetch_at);
}

/// Asks for so many bytes from an address on, which are near already, for the first level of a host's caches.
#[inline(always)]
pub fn prefetch_nearest(start: usize, bytes: usize) {
    each_line(start, bytes, hint::<3>);
}

/// Goes over bytes line by line, in as few instructions as there can be.
#[inline(always)]
fn each_line(start: usize, bytes: usize, ask: impl Fn(*const u8)) {
    let (mut at, end) = (start, start + bytes);
    while at < end {
        ask(at as *const u8);
        at += HOST_LINE;
    }
}
