# Negation and magnitude of operands where the operation does not know them itself.
buffer in f32 1.5 -2.5 0.0 -0.0
buffer out 512
param in
param out
code
    S2R R0, SR_LANEID
    LOP3 R1, R0, 0x3, RZ, 0xc0
    MOV R60, c[0x0][0x210]
    MOV R61, c[0x0][0x214]
    IMAD.WIDE.U32 R2, R1, 0x4, R60
    LDG.E R4, [R2.64]
    F2F.F64.F32 R6, R4
    DADD R8, -R6, |R6|
    DFMA R10, -R6, R6, -R6
    IMAD R12, -R0, 0x3, R0
    IMNMX.MIN.S32 R13, -R0, 0xfffffff0
    FADD R14, |R4|, -R4
    FMUL.M2 R15, -R4, R4
    FFMA.RZ R16, R4, -R4, |R4|
    MUFU.RCP R17, -|R4|
    HADD2 R18, -R4, |R4|
    I2I.S32.S8 R19, -R0
    STG.E [R2.64], R4
    MOV R60, c[0x0][0x218]
    MOV R61, c[0x0][0x21c]
    IMAD.WIDE.U32 R2, R0, 0x4, R60
    IADD3 R8, PT, R8, R9, R10, PT
    IADD3 R8, PT, R8, R11, R12, PT
    IADD3 R8, PT, R8, R13, RZ, PT
    STG.E [R2.64], R8
    IADD3 R14, PT, R14, R15, R16, PT
    IADD3 R14, PT, R14, R17, RZ, PT
    STG.E [R2.64+0x80], R14
    STG.E [R2.64+0x100], R18
    STG.E [R2.64+0x180], R19
    EXIT
expect
out
    c00dfff0 0021ffee 7fffffec ffffffea c00dffe8 0021ffe6 7fffffe4 ffffffe2
    c00dffe0 0021ffde 7fffffdc ffffffda c00dffd8 0021ffd6 7fffffd4 ffffffd2
    c00dffd0 0021ffcd 7fffffca ffffffc7 c00dffc4 0021ffc1 7fffffbe ffffffbb
    c00dffb8 0021ffb5 7fffffb2 ffffffaf c00dffac 0021ffa9 7fffffa6 ffffffa3
    3efaaaab 8124cccd 7f800000 7f800000 3efaaaab 8124cccd 7f800000 7f800000
    3efaaaab 8124cccd 7f800000 7f800000 3efaaaab 8124cccd 7f800000 7f800000
    3efaaaab 8124cccd 7f800000 7f800000 3efaaaab 8124cccd 7f800000 7f800000
    3efaaaab 8124cccd 7f800000 7f800000 3efaaaab 8124cccd 7f800000 7f800000
    00000000 44200000 00000000 00000000 00000000 44200000 00000000 00000000
    00000000 44200000 00000000 00000000 00000000 44200000 00000000 00000000
    00000000 44200000 00000000 00000000 00000000 44200000 00000000 00000000
    00000000 44200000 00000000 00000000 00000000 44200000 00000000 00000000
    00000000 ffffffff fffffffe fffffffd fffffffc fffffffb fffffffa fffffff9
    fffffff8 fffffff7 fffffff6 fffffff5 fffffff4 fffffff3 fffffff2 fffffff1
    fffffff0 ffffffef ffffffee ffffffed ffffffec ffffffeb ffffffea ffffffe9
    ffffffe8 ffffffe7 ffffffe6 ffffffe5 ffffffe4 ffffffe3 ffffffe2 ffffffe1
