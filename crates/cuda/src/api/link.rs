//! The linker: programs are gathered, then compiled to one.

use super::module::{answer_options, fill, options, programs_at, read_file};
use crate::context;
use crate::error::{Answer, Code};
use crate::fatbin;
use crate::handle::{self, Handle};
use crate::log::{self, Level};
use crate::program::{self, Linker, LinkerState};
use crate::state::driver;
use crate::types::{Address, In, Out, Text};
use driver::Source;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kinds of input: compiled programs, and PTX text.
mod kind {
    pub const CUBIN: u32 = 0;
    pub const PTX: u32 = 1;
    pub const FATBIN: u32 = 2;
    pub const OBJECT: u32 = 3;
    pub const LIBRARY: u32 = 4;
}

fn state(linker: &Linker) -> MutexGuard<'_, LinkerState> {
    linker.state.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn create(count: u32, names: In<u32>, values: In<usize>, out: Out<Handle>) -> Answer {
    let driver = driver()?;
    context::current()?;
    if out.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let mut asked = LinkerState { options: options(count, names, values)?, ..LinkerState::default() };
    // Where the lengths of the logs are told when all is done.
    asked.answers = (0..count as usize).map(|n| names.at(n).map(|name| (name, n))).collect::<Answer<_>>()?;
    asked.values = values.address();
    let linker = Arc::new(Linker { state: Mutex::new(asked) });
    out.put(driver.linkers.insert(handle::fresh(), linker))
}

/// Adds a program; one that does not say where it ends is a text.
fn add(linker: Handle, kind: u32, mut bytes: Vec<u8>, name: &str) -> Answer {
    let linker = driver()?.linkers.get(linker)?;
    let mut state = state(&linker);
    if state.image.is_some() {
        return Err(Code::INVALID_VALUE);
    }
    match kind {
        kind::PTX | kind::CUBIN | kind::FATBIN | kind::OBJECT => {}
        // Device libraries hold machine code; what they define is built in.
        kind::LIBRARY => return Ok(()),
        _ => return Err(Code::INVALID_VALUE),
    }
    // A container says how long it is.
    let is_fat = fatbin::MAGICS.iter().any(|magic| bytes.starts_with(&magic.to_le_bytes()));
    let programs = if is_fat {
        bytes.resize(bytes.len().max(fatbin::HEADER), 0);
        let (major, minor) = super::device::capability(driver()?);
        fatbin::choose(&bytes, (10 * major + minor) as u32)?.into_iter().collect()
    } else {
        if kind == kind::PTX {
            bytes.truncate(bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len()));
        }
        vec![bytes]
    };
    let name = if name.is_empty() { format!("input {}", state.sources.len()) } else { name.to_owned() };
    for program in programs {
        let source = Source::new(name.clone(), program);
        // What is wrong with one input is told when it is added.
        if kind == kind::PTX
            && let Err((code, why)) = program::check(&source)
        {
            refuse(&mut state, &why);
            return Err(code);
        }
        state.sources.push(source);
    }
    Ok(())
}

/// Leaves a message where the client wants it.
fn refuse(state: &mut LinkerState, why: &str) {
    let told = fill(&state.options.error, why);
    state.log(1, told);
    log::write(Level::Warn, &|| why.to_owned());
}

pub fn add_data(
    linker: Handle,
    kind: u32,
    data: Address,
    bytes: usize,
    name: Text,
    _count: u32,
    _names: In<u32>,
    _values: In<usize>,
) -> Answer {
    if data == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let name = if name.is_null() { String::new() } else { name.get()? };
    if bytes == 0 {
        return programs_at(data)?.into_iter().try_for_each(|program| add(linker, kind, program, &name));
    }
    // SAFETY: the client says that so many bytes are there.
    add(linker, kind, unsafe { crate::types::bytes_at(data, bytes) }, &name)
}

pub fn add_file(
    linker: Handle,
    kind: u32,
    path: Text,
    _count: u32,
    _names: In<u32>,
    _values: In<usize>,
) -> Answer {
    let bytes = read_file(path)?;
    add(linker, kind, bytes[..bytes.len() - 1].to_vec(), &path.get()?)
}

pub fn complete(linker: Handle, out: Out<Address>, bytes: Out<usize>) -> Answer {
    let linker = driver()?.linkers.get(linker)?;
    let mut state = state(&linker);
    let image = match program::build(&state.sources, &state.options) {
        Ok(image) => image,
        Err((code, why)) => {
            refuse(&mut state, &why);
            return Err(code);
        }
    };
    let file = image.to_bytes().map_err(|_| Code::INVALID_IMAGE)?.into_boxed_slice();
    let place = (file.as_ptr() as usize, file.len());
    state.image = Some(file);
    let told = fill(&state.options.info, "");
    state.log(0, told);
    out.put(place.0)?;
    bytes.offer(place.1);
    Ok(())
}

pub fn destroy(linker: Handle) -> Answer {
    driver()?.linkers.remove(linker).map(|_| ())
}

impl LinkerState {
    /// Tells the client how long a log is: 0 the information, 1 the errors.
    fn log(&mut self, which: usize, bytes: usize) {
        let mut logs = [0; 2];
        logs[which] = bytes;
        let names: Vec<u32> = self.answers.iter().map(|(name, _)| *name).collect();
        // SAFETY: the client keeps its list of values until the linker is destroyed, as it does its buffers; the names are ours.
        let (names, values) = unsafe { (In::new(names.as_ptr()), Out::new(self.values as *mut usize)) };
        answer_options(self.answers.len() as u32, names, values, &self.options, &logs);
    }
}
