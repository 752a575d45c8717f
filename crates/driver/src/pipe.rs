//! What a program does when nobody reads its output any more.

/// Lets the program end, as others do, when the reader of its output has gone (`warploom ... | head`): Rust's own choice is that printing
/// panics then. A program calls this once, at its start; where the system has no such signal, nothing happens.
pub fn end_with_reader() {
    #[cfg(unix)]
    // SAFETY: the signal gets the handler that the system gives every program; no code of ours runs in it.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
}
