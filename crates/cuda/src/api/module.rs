//! Modules: programs in the current context.

use crate::context;
use crate::error::{Answer, Code};
use crate::fatbin;
use crate::handle::{Handle, handle};
use crate::log::{self, Level};
use crate::program::{self, Buffer, Built, Jit, Program};
use crate::state::driver;
use crate::types::{Address, In, Out, Text};
use driver::{Image, Source};
use std::sync::Arc;

/// Numbers of options for compiling and linking.
mod option {
    pub const MAX_REGISTERS: u32 = 0;
    pub const WALL_TIME: u32 = 2;
    pub const INFO_BUFFER: u32 = 3;
    pub const INFO_BYTES: u32 = 4;
    pub const ERROR_BUFFER: u32 = 5;
    pub const ERROR_BYTES: u32 = 6;
    pub const OPT_LEVEL: u32 = 7;
}

/// Reads options: numbers, and values that are numbers or pointers.
pub fn options(count: u32, names: In<u32>, values: In<usize>) -> Answer<Jit> {
    let mut jit = Jit::default();
    for n in 0..count as usize {
        let (name, value) = (names.at(n)?, values.at(n)?);
        match name {
            option::MAX_REGISTERS => jit.max_registers = Some(value as u32),
            option::INFO_BUFFER => jit.info.address = value,
            option::INFO_BYTES => jit.info.bytes = value as u32 as usize,
            option::ERROR_BUFFER => jit.error.address = value,
            option::ERROR_BYTES => jit.error.bytes = value as u32 as usize,
            option::OPT_LEVEL => jit.opt_level = Some(value as u32),
            _ => {}
        }
    }
    Ok(jit)
}

/// Tells clients how long their logs are, and that no time passed.
pub fn answer_options(count: u32, names: In<u32>, values: Out<usize>, jit: &Jit, logs: &[usize; 2]) {
    for n in 0..count as usize {
        let Ok(name) = names.at(n) else { return };
        let value = match name {
            option::INFO_BYTES => logs[0].min(jit.info.bytes),
            option::ERROR_BYTES => logs[1].min(jit.error.bytes),
            option::WALL_TIME => 0,
            _ => continue,
        };
        let _ = values.put_at(n, value);
    }
}

/// Leaves a text in a buffer of the client, with a zero at its end; bytes that it took.
pub fn fill(buffer: &Buffer, text: &str) -> usize {
    if buffer.address == 0 || buffer.bytes == 0 {
        return 0;
    }
    let kept = text.len().min(buffer.bytes - 1);
    // SAFETY: the client says that so many bytes can be written here.
    let to = unsafe { std::slice::from_raw_parts_mut(buffer.address as *mut u8, kept + 1) };
    to[..kept].copy_from_slice(&text.as_bytes()[..kept]);
    to[kept] = 0;
    if kept == 0 { 0 } else { kept + 1 }
}

/// The programs that a client's pointer stands for, to be linked to one: a text up to its zero, an image with its length, or
/// what a fat binary holds for the device.
pub fn programs_at(address: Address) -> Answer<Vec<Vec<u8>>> {
    if address == 0 {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: a program of any kind has as many bytes as its beginning says: the client's promise. A text shorter than the
    // first word ends with a zero, which the first words of the others do not have.
    unsafe {
        let begins =
            |word: &[u8]| word.iter().enumerate().all(|(n, &byte)| *(address as *const u8).add(n) == byte);
        if begins(Image::MAGIC.as_slice()) {
            let header = *(address as *const [u8; Image::HEADER]);
            let len = Image::length_of(&header).ok_or(Code::INVALID_IMAGE)?;
            return Ok(vec![crate::types::bytes_at(address, len)]);
        }
        if fatbin::MAGICS.iter().any(|magic| begins(&magic.to_le_bytes())) {
            let (major, minor) = super::device::capability(driver()?);
            return fatbin::programs_at(address, (10 * major + minor) as u32);
        }
        Ok(vec![Text::new(address as *const std::ffi::c_char).bytes()?])
    }
}

/// A program that a client has in memory, compiled, with the logs that it asked for.
pub fn image_at(address: Address, name: &str, jit: &Jit, logs: &mut [usize; 2]) -> Answer<Built> {
    let sources: Vec<Source> = programs_at(address)?.into_iter().map(|p| Source::new(name, p)).collect();
    match program::build(&sources, jit) {
        Ok(image) => {
            logs[0] = fill(&jit.info, "");
            let text = match sources.as_slice() {
                [one] if driver()?.profiles.is_some() && !Image::is_image(&one.bytes) => {
                    Some(String::from_utf8_lossy(&one.bytes).into())
                }
                _ => None,
            };
            Ok(Built { image: Arc::new(image), text })
        }
        Err((code, why)) => {
            logs[1] = fill(&jit.error, &why);
            log::write(Level::Warn, &|| why.clone());
            Err(code)
        }
    }
}

fn load_image(out: Out<Handle>, built: Built) -> Answer {
    let driver = driver()?;
    let program = Program::load(&context::current()?, built)?;
    log::write(Level::Info, &|| format!("module with {} functions", program_size(&program)));
    out.put(driver.modules.insert(program.id, program))
}

fn program_size(program: &Program) -> usize {
    program.module().map_or(0, |m| m.image().functions.len())
}

pub fn load_data(out: Out<Handle>, address: Address) -> Answer {
    context::current()?;
    if out.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    load_image(out, image_at(address, "module", &Jit::default(), &mut [0; 2])?)
}

pub fn load_data_ex(
    out: Out<Handle>,
    address: Address,
    count: u32,
    names: In<u32>,
    values: Out<usize>,
) -> Answer {
    context::current()?;
    if out.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the list is read and written.
    let jit = options(count, names, unsafe { In::new(values.address() as *const usize) })?;
    let mut logs = [0; 2];
    let image = image_at(address, "module", &jit, &mut logs);
    answer_options(count, names, values, &jit, &logs);
    load_image(out, image?)
}

/// The bytes of a file, with a zero behind them.
pub fn read_file(path: Text) -> Answer<Vec<u8>> {
    let mut bytes = std::fs::read(path.get()?).map_err(|_| Code::FILE_NOT_FOUND)?;
    bytes.push(0);
    Ok(bytes)
}

pub fn load_file(out: Out<Handle>, path: Text) -> Answer {
    context::current()?;
    let bytes = read_file(path)?;
    load_data(out, bytes.as_ptr() as usize)
}

pub fn unload(module: Handle) -> Answer {
    let driver = driver()?;
    let program = driver.modules.get(module)?;
    let ended = program.context.synchronize();
    driver.modules.remove(module)?;
    program.close(driver);
    ended
}

pub fn loading_mode(out: Out<u32>) -> Answer {
    driver()?;
    // Eager.
    out.put(1)
}

pub fn function(out: Out<Handle>, module: Handle, name: Text) -> Answer {
    let driver = driver()?;
    let program = driver.modules.get(module)?;
    out.put(handle(program.function(driver, &name.get()?)?.id))
}

pub fn function_count(out: Out<u32>, module: Handle) -> Answer {
    let program = driver()?.modules.get(module)?;
    out.put(program.module()?.image().entries().count() as u32)
}

pub fn functions(out: Out<Handle>, count: u32, module: Handle) -> Answer {
    let driver = driver()?;
    let program = driver.modules.get(module)?;
    let names: Vec<String> = program.module()?.image().entries().map(|f| f.name.clone()).collect();
    for (n, name) in names.iter().take(count as usize).enumerate() {
        out.put_at(n, handle(program.function(driver, name)?.id))?;
    }
    Ok(())
}

/// Address and size of a variable.
pub fn variable(program: &Program, name: &str) -> Answer<(u64, u64)> {
    let module = program.module()?;
    match module.variable(name) {
        Some(found) => Ok(found),
        None if module.image().find(name).is_some() => Err(Code::INVALID_VALUE),
        None => Err(Code::NOT_FOUND),
    }
}

pub fn global(start: Out<u64>, bytes: Out<usize>, module: Handle, name: Text) -> Answer {
    let program = driver()?.modules.get(module)?;
    if start.is_null() && bytes.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let (address, size) = variable(&program, &name.get()?)?;
    start.offer(address);
    bytes.offer(size as usize);
    Ok(())
}
