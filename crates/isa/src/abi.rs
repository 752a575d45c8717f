//! What compiler, loader and engine agree on: the memory map, the constant bank of a launch, the calling convention.

/// Generic addresses whose high word is this lie in the shared window; the low word is the shared address.
pub const SHARED_HIGH: u32 = 0x0000_0001;
/// Generic addresses whose high word is this lie in the local window; the low word is the local address.
pub const LOCAL_HIGH: u32 = 0x0000_0002;
/// The first global address; everything below that is in no window is a fault.
pub const GLOBAL_BASE: u64 = 0x0000_0010_0000_0000;
/// The end of global addresses.
pub const GLOBAL_END: u64 = 0x0000_0210_0000_0000;
/// Function addresses have this high word; the low word is the place in the code.
pub const CODE_HIGH: u32 = 0x0000_0003;

/// Constant bank of a launch.
pub const BANK_LAUNCH: u8 = 0;
/// `.const` variables.
pub const BANK_CONST: u8 = 3;
/// Addresses and jump tables that the loader fills in, and the compiler's own literals.
pub const BANK_LOADER: u8 = 4;

/// Offsets in [`BANK_LAUNCH`].
pub mod launch {
    /// Threads of a CTA: x, y, z.
    pub const NTID: u16 = 0x00;
    /// CTAs of the grid: x, y, z.
    pub const NCTAID: u16 = 0x0c;
    /// First free local address above the static frame of the entry: where the stack starts (it grows upward).
    pub const STACK: u16 = 0x28;
    /// Generic address of [`super::BANK_CONST`], 64 bits.
    pub const CONST_BASE: u16 = 0x30;
    /// Environment registers, 32 of 32 bits.
    pub const ENVREG: u16 = 0x80;
    /// What every global address of an entry's code is relative to, 64 bits: the descriptor of global memory.
    pub const GLOBAL_DESCRIPTOR: u16 = 0x208;
    /// Kernel parameters.
    pub const PARAMS: u16 = 0x210;
    /// Bytes of parameters a kernel can have.
    pub const PARAMS_MAX: u32 = 4096;
    /// Bytes of the bank.
    pub const SIZE: usize = PARAMS as usize + PARAMS_MAX as usize;
}

/// The stack pointer: a local address; the frame of the running function starts there and grows upward.
pub const STACK_POINTER: u8 = 1;
/// Where a caller leaves the place to return to.
pub const RETURN_ADDRESS: u8 = 2;
/// First register of arguments, and of results; a 64-bit one takes an even pair.
pub const ARG_FIRST: u8 = 4;
/// Argument and result registers; what does not fit goes to the stack, see [`stack_args`].
pub const ARG_COUNT: u8 = 32;

/// Where words of arguments or results go: register, or bytes from the callee's stack pointer (negative: below its frame
/// nothing lives but these).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgPlace {
    Reg(u8),
    /// Byte offset from the start of the callee's frame.
    Stack(u32),
}

/// Lays out values of `words` (1 or 2 words each) one after the other, 64-bit ones on even registers and 8-byte offsets.
/// Arguments that do not fit registers take the first bytes of the callee's frame.
pub fn place_args(words: impl IntoIterator<Item = u32>) -> (Vec<ArgPlace>, u32) {
    let (mut reg, mut stack) = (u32::from(ARG_FIRST), 0u32);
    let end = u32::from(ARG_FIRST + ARG_COUNT);
    let mut places = Vec::new();
    for n in words {
        let at = reg.next_multiple_of(n);
        if at + n <= end {
            places.push(ArgPlace::Reg(at as u8));
            reg = at + n;
        } else {
            // Once one value is on the stack, so are all that follow.
            reg = end;
            let at = stack.next_multiple_of(4 * n);
            places.push(ArgPlace::Stack(at));
            stack = at + 4 * n;
        }
    }
    (places, stack.next_multiple_of(16))
}
