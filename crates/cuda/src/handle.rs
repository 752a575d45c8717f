//! Handles: numbers that stand for objects. A number is never used twice, so what is freed stays invalid.

use crate::error::{Answer, Code};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A handle as clients hold it: an opaque pointer that nobody follows.
pub type Handle = *mut c_void;

/// Numbers look like addresses of aligned objects, in a range where no memory can be.
const FIRST: u64 = 0x5700_0000_0000_0000;

/// A new number for a handle.
pub fn fresh() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    FIRST + 16 * NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The handle of a number.
pub fn handle(id: u64) -> Handle {
    id as usize as Handle
}

/// The number of a handle.
pub fn id(handle: Handle) -> u64 {
    handle as usize as u64
}

/// A number that [`fresh`] may have given.
pub fn is_ours(handle: Handle) -> bool {
    id(handle) >= FIRST
}

/// What the handles of one kind stand for.
pub struct Table<T: ?Sized> {
    objects: RwLock<HashMap<u64, Arc<T>>>,
}

impl<T: ?Sized> Default for Table<T> {
    fn default() -> Self {
        Table { objects: RwLock::default() }
    }
}

impl<T: ?Sized> Table<T> {
    pub fn insert(&self, id: u64, object: Arc<T>) -> Handle {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).insert(id, object);
        handle(id)
    }

    pub fn find(&self, handle: Handle) -> Option<Arc<T>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).get(&id(handle)).cloned()
    }

    pub fn get(&self, handle: Handle) -> Answer<Arc<T>> {
        self.find(handle).ok_or(Code::INVALID_HANDLE)
    }

    pub fn remove(&self, handle: Handle) -> Answer<Arc<T>> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.remove(&id(handle)).ok_or(Code::INVALID_HANDLE)
    }

    /// Removes and gives back those that `wanted` says, by number.
    pub fn take(&self, wanted: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let mut ids: Vec<u64> = objects.iter().filter(|(_, o)| wanted(o)).map(|(&id, _)| id).collect();
        ids.sort_unstable();
        ids.iter().filter_map(|id| objects.remove(id)).collect()
    }

    /// All that there are, by number.
    pub fn all(&self) -> Vec<Arc<T>> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let mut ids: Vec<u64> = objects.keys().copied().collect();
        ids.sort_unstable();
        ids.iter().filter_map(|id| objects.get(id).cloned()).collect()
    }

    pub fn len(&self) -> usize {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
