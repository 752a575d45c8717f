//! Code with random changes, and random profiles: no input may panic or hang, and versions can be encoded.

mod common;

use isa::Inst;
use optimizer::damaged::try_code;

const LINES: [&str; 24] = [
    "BAR.SYNC.ALIGNED RZ, PT, RZ, RZ, PT",
    "LDS R4, [R2]",
    "ISETP.EQ.S32.AND P0, PT, R4, 0x7, PT, PT",
    "BSSY B0, 0x9",
    "@P0 BRA 0x7",
    "FADD R5, R5, R4",
    "BRA 0x9",
    "MUFU.RSQ R5, R4",
    "@!P1 LDG.E R6, [R8.64]",
    "BSYNC B0",
    "IMAD.WIDE.U32 R8, R3, 0x4, R10",
    "STG.E [R8.64], R5",
    "LDG.64.E R6, [R8.64+0x8]",
    "IADD3 R3, P1, R3, 0x1, RZ, PT",
    "IADD3.X R4, PT, R4, RZ, RZ, P1",
    "@P1 BRA.U 0xa",
    "STS.128 [R2], R8",
    "VOTE.ANY.COLL RZ, P2, P1, RZ",
    "BAR.SYNC.ALIGNED RZ, PT, RZ, RZ, PT",
    "@P2 EXIT",
    "CALL R20, 0x3",
    "@P0 BRA 0x12",
    "SHFL.BFLY R7, PT, R7, 0x1, R3, RZ",
    "BRA 0x0",
];

#[test]
fn nothing_panics() {
    let code: Vec<Inst> =
        LINES.iter().map(|l| isa::text::parse(l).unwrap_or_else(|e| panic!("`{l}`: {e}"))).collect();
    let mut state = 88_172_645_463_325_252u64;
    let mut roll = move |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % n
    };
    for round in 0..400 {
        let mut now: Vec<Inst> = Vec::new();
        for _ in 0..8 + roll(64) {
            let mut word = code[roll(code.len() as u64) as usize].encode().expect("a word");
            if roll(3) == 0 {
                word ^= 1u128 << roll(128);
            }
            now.extend(Inst::decode(word).ok());
        }
        let counts: Vec<u8> =
            (0..64).map(|_| roll(256) as u8 & if round % 2 == 0 { 255 } else { 127 }).collect();
        assert!(try_code(now, &counts), "round {round}: a version that is no code");
    }
}
