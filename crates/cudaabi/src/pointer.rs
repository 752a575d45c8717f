//! Pointers of clients.
//!
//! A pointer type here stands for the promise that the API asks of its clients: the pointer is null, or what it points at is
//! there as the call's documentation says, while the call lasts. Only clients make them, by calling an entry point.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;

/// A result code of an API.
pub trait Null: Copy {
    /// What a pointer gives that must not be null, and is, or a text that is none.
    const NULL: Self;
}

/// Where a call leaves a result.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Out<T, E>(*mut T, PhantomData<E>);

impl<T: Copy, E: Null> Out<T, E> {
    /// # Safety
    /// The pointer is null or can be written while the value is used.
    pub unsafe fn new(pointer: *mut T) -> Self {
        Out(pointer, PhantomData)
    }

    /// A place of our own.
    pub fn to(place: &mut T) -> Self {
        Out(place, PhantomData)
    }

    pub fn null() -> Self {
        Out(std::ptr::null_mut(), PhantomData)
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Leaves a result; null is an error.
    pub fn put(self, value: T) -> Result<(), E> {
        self.put_at(0, value)
    }

    pub fn put_at(self, n: usize, value: T) -> Result<(), E> {
        if self.0.is_null() {
            return Err(E::NULL);
        }
        // SAFETY: the promise of this type.
        unsafe { self.0.add(n).write_unaligned(value) };
        Ok(())
    }

    /// Leaves a result where one is wanted.
    pub fn offer(self, value: T) {
        // Null: not wanted.
        let _ = self.put(value);
    }

    pub fn get(self) -> Result<T, E> {
        if self.0.is_null() {
            return Err(E::NULL);
        }
        // SAFETY: the promise of this type.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// The same place for values of another type.
    pub fn cast<U: Copy>(self) -> Out<U, E> {
        Out(self.0.cast(), PhantomData)
    }

    /// As a number.
    pub fn address(self) -> usize {
        self.0 as usize
    }
}

/// Where a call finds its input.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct In<T, E>(*const T, PhantomData<E>);

impl<T: Copy, E: Null> In<T, E> {
    /// # Safety
    /// The pointer is null or can be read while the value is used.
    pub unsafe fn new(pointer: *const T) -> Self {
        In(pointer, PhantomData)
    }

    /// A value of our own.
    pub fn of(place: &T) -> Self {
        In(place, PhantomData)
    }

    pub fn null() -> Self {
        In(std::ptr::null(), PhantomData)
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub fn get(self) -> Result<T, E> {
        self.at(0)
    }

    pub fn at(self, n: usize) -> Result<T, E> {
        if self.0.is_null() {
            return Err(E::NULL);
        }
        // SAFETY: the promise of this type.
        Ok(unsafe { self.0.add(n).read_unaligned() })
    }

    /// So many elements; none from null where none are asked for.
    pub fn list(self, n: usize) -> Result<Vec<T>, E> {
        (0..n).map(|k| self.at(k)).collect()
    }

    pub fn address(self) -> usize {
        self.0 as usize
    }
}

/// A text that ends with a zero.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Text<E>(*const c_char, PhantomData<E>);

impl<E: Null> Text<E> {
    /// # Safety
    /// The pointer is null or a zero ends what it points at.
    pub unsafe fn new(pointer: *const c_char) -> Self {
        Text(pointer, PhantomData)
    }

    /// A text of our own.
    pub fn of(text: &CStr) -> Self {
        Text(text.as_ptr(), PhantomData)
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub fn get(self) -> Result<String, E> {
        String::from_utf8(self.bytes()?).map_err(|_| E::NULL)
    }

    pub fn bytes(self) -> Result<Vec<u8>, E> {
        if self.0.is_null() {
            return Err(E::NULL);
        }
        // SAFETY: the promise of this type.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes().to_vec())
    }

    /// A name that a program registers: it stays where it is as long as the program.
    pub fn registered(self) -> Option<&'static CStr> {
        // SAFETY: the promise of this type; compilers put such names into constant data.
        if self.0.is_null() { None } else { Some(unsafe { CStr::from_ptr(self.0) }) }
    }

    pub fn address(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Wrong;

    impl Null for Wrong {
        const NULL: Self = Wrong;
    }

    #[test]
    fn null_is_an_error_and_never_used() {
        assert_eq!(Out::<u32, Wrong>::null().put(1), Err(Wrong));
        assert_eq!(Out::<u32, Wrong>::null().get(), Err(Wrong));
        Out::<u32, Wrong>::null().offer(1);
        assert_eq!(In::<u32, Wrong>::null().get(), Err(Wrong));
        assert_eq!(In::<u32, Wrong>::null().list(0), Ok(vec![]));
        assert_eq!(In::<u32, Wrong>::null().list(1), Err(Wrong));
        // SAFETY: null is allowed.
        let text: Text<Wrong> = unsafe { Text::new(std::ptr::null()) };
        assert_eq!((text.get(), text.bytes(), text.registered()), (Err(Wrong), Err(Wrong), None));
    }

    #[test]
    fn values_are_read_and_written_where_they_stand() {
        let mut bytes = [0u8; 9];
        // SAFETY: two words lie in the array; they need not be aligned.
        let out: Out<u32, Wrong> = unsafe { Out::new(bytes.as_mut_ptr().add(1).cast()) };
        assert_eq!((out.put(7), out.put_at(1, 8), out.get()), (Ok(()), Ok(()), Ok(7)));
        // SAFETY: the same.
        let list: In<u32, Wrong> = unsafe { In::new(bytes.as_ptr().add(1).cast()) };
        assert_eq!((list.list(2), list.at(1)), (Ok(vec![7, 8]), Ok(8)));
        let (good, bad) = (Text::<Wrong>::of(c"name"), Text::<Wrong>::of(c"\xff"));
        assert_eq!((good.get(), good.registered()), (Ok("name".into()), Some(c"name")));
        assert_eq!((bad.get(), bad.bytes()), (Err(Wrong), Ok(vec![0xff])));
    }
}
