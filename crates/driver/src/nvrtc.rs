//! CUDA C++ to PTX, by NVIDIA's run-time compiler where it is installed: a shared library that needs no GPU and no driver.
//!
//! It is the file that `WARPLOOM_NVRTC` names; where that is not set, it is looked for among the loader's libraries, and in the virtual
//! environment that is active (`pip install nvidia-cuda-nvrtc`).

use crate::problem::{Problem, Problems};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

type Program = *mut c_void;
type Texts = *const *const c_char;
type Create = unsafe extern "C" fn(*mut Program, *const c_char, *const c_char, c_int, Texts, Texts) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, Texts) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Get = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;

/// The library's functions that are used, by their types in its header.
struct Nvrtc {
    create: Create,
    compile: Compile,
    log_size: Size,
    log: Get,
    ptx_size: Size,
    ptx: Get,
    destroy: Destroy,
    /// Folder of headers that came with the library, where there is one.
    headers: Option<PathBuf>,
}

/// Names of the library, newest first.
const NAMES: [&CStr; 2] = [c"libnvrtc.so.13", c"libnvrtc.so.12"];

/// Files that could be the library, in the packages of a virtual environment.
fn packaged() -> Vec<PathBuf> {
    let folders = |path: PathBuf| {
        let mut found: Vec<PathBuf> =
            std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
        found.sort();
        found
    };
    let Some(environment) = std::env::var_os("VIRTUAL_ENV") else { return Vec::new() };
    let pythons = folders(Path::new(&environment).join("lib"));
    let packages = pythons.into_iter().flat_map(|p| folders(p.join("site-packages/nvidia")));
    let mut found: Vec<PathBuf> = packages
        .flat_map(|p| NAMES.iter().map(move |n| p.join("lib").join(n.to_string_lossy().as_ref())))
        .filter(|p| p.is_file())
        .collect();
    found.sort();
    found.reverse();
    found
}

fn open(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a zero; the library's constructors may run.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    (!library.is_null()).then_some(library)
}

fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_encoded_bytes()).ok()
}

/// The library loads a second one by its name alone, which is found where it is loaded already.
fn load_builtins(path: &Path) {
    let folder = path.parent().map(std::fs::read_dir).into_iter().flatten().flatten().flatten();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.path()).collect();
    files.sort();
    let is_builtins =
        |p: &&PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("libnvrtc-builtins.so"));
    for name in files.iter().filter(is_builtins).filter_map(|p| c_path(p)) {
        // Where it cannot be loaded, compiling says so.
        let _ = open(&name);
    }
}

/// Opens the library; what it is called, for its headers.
fn find() -> Option<(*mut c_void, Option<PathBuf>)> {
    let files = |list: Vec<PathBuf>| {
        list.into_iter().find_map(|path| {
            load_builtins(&path);
            Some((open(&c_path(&path)?)?, Some(path)))
        })
    };
    if let Some(given) = std::env::var_os("WARPLOOM_NVRTC") {
        return files(vec![given.into()]);
    }
    NAMES.iter().find_map(|name| Some((open(name)?, None))).or_else(|| files(packaged()))
}

impl Nvrtc {
    fn load() -> Option<Nvrtc> {
        let (library, path) = find()?;
        let headers = path.and_then(|p| Some(p.parent()?.parent()?.join("include"))).filter(|p| p.is_dir());
        /// A function of the library.
        macro_rules! function {
            ($name:literal as $type:ty) => {{
                // SAFETY: the library is open; its header gives the function of this name this type.
                unsafe {
                    let address = libc::dlsym(library, $name.as_ptr());
                    if address.is_null() {
                        return None;
                    }
                    std::mem::transmute::<*mut c_void, $type>(address)
                }
            }};
        }
        Some(Nvrtc {
            create: function!(c"nvrtcCreateProgram" as Create),
            compile: function!(c"nvrtcCompileProgram" as Compile),
            log_size: function!(c"nvrtcGetProgramLogSize" as Size),
            log: function!(c"nvrtcGetProgramLog" as Get),
            ptx_size: function!(c"nvrtcGetPTXSize" as Size),
            ptx: function!(c"nvrtcGetPTX" as Get),
            destroy: function!(c"nvrtcDestroyProgram" as Destroy),
            headers,
        })
    }

    /// A text that a program has: its log or its PTX.
    fn text(program: Program, size: Size, get: Get) -> Option<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: the program is one of the library's; the buffer has the size that it says.
        unsafe {
            if size(program, &mut bytes) != 0 {
                return None;
            }
            let mut text = vec![0u8; bytes];
            if get(program, text.as_mut_ptr().cast()) != 0 {
                return None;
            }
            text.truncate(text.iter().position(|&b| b == 0).unwrap_or(bytes));
            Some(text)
        }
    }

    fn compile(&self, name: &str, source: &[u8], folder: Option<&Path>) -> Result<Vec<u8>, Problems> {
        let refused = |what: String| Problems::from(Problem::new(what));
        let bad = |_| refused(format!("{name}: a zero in the text"));
        let (text, c_name) = (CString::new(source).map_err(bad)?, CString::new(name).map_err(bad)?);
        let mut options = vec![
            "--gpu-architecture=compute_90".to_owned(),
            "-lineinfo".to_owned(),
            "--std=c++17".to_owned(),
        ];
        let folders = folder.into_iter().chain(self.headers.as_deref());
        options.extend(folders.map(|f| format!("--include-path={}", f.display())));
        let options: Vec<CString> =
            options.into_iter().map(CString::new).collect::<Result<_, _>>().map_err(bad)?;
        let list: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let mut program = std::ptr::null_mut();
        // SAFETY: the texts end with zeros and live until the program is destroyed; the list is as long as is said.
        let (code, log, ptx) = unsafe {
            let none = std::ptr::null();
            if (self.create)(&mut program, text.as_ptr(), c_name.as_ptr(), 0, none, none) != 0 {
                return Err(refused(format!("{name}: NVRTC does not take the program")));
            }
            let code = (self.compile)(program, list.len() as c_int, list.as_ptr());
            let log = Nvrtc::text(program, self.log_size, self.log).unwrap_or_default();
            let ptx = if code == 0 { Nvrtc::text(program, self.ptx_size, self.ptx) } else { None };
            (self.destroy)(&mut program);
            (code, log, ptx)
        };
        match ptx {
            Some(ptx) if code == 0 => Ok(ptx),
            _ => {
                let log = String::from_utf8_lossy(&log);
                Err(refused(format!("{name} does not compile:\n{}", log.trim_end())))
            }
        }
    }
}

/// PTX of a CUDA C++ text; `path` is its file.
pub fn compile(path: &Path, source: &[u8]) -> Result<Vec<u8>, Problems> {
    static LIBRARY: OnceLock<Option<Nvrtc>> = OnceLock::new();
    let Some(nvrtc) = LIBRARY.get_or_init(Nvrtc::load) else {
        return Err(Problem::new(format!("{}: CUDA C++ needs NVRTC, which is not installed", path.display()))
            .help("pip install nvidia-cuda-nvrtc==13.0.88 in a virtual environment and activate it, or set WARPLOOM_NVRTC to the path of libnvrtc.so.13; or compile with `nvcc -ptx`")
            .into());
    };
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    nvrtc.compile(&path.display().to_string(), source, absolute.parent())
}

/// Whether a file is CUDA C++, by its name.
pub fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "cu")
}
