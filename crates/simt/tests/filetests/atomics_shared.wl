# Shared atomics: a histogram, a float sum that keeps denormals, and generic atomics into the shared window.
launch 1 1 1 x 64 1 1 shared 64
buffer out 64
param out
code
    S2R R0, SR_TID.X
    LOP3 R1, R0, 0x7, RZ, 0xc0
    SHF.L.U32 R1, R1, 0x2, RZ
    MOV R2, 0x1
    ATOMS.ADD R3, [R1], R2, RZ
    ATOMS.ADD.F32 R3, [RZ+0x20], R2, RZ
    MOV R4, 0x24
    MOV R5, 0x1
    RED.MAX.E [R4.64], R0
    BAR.SYNC RZ, PT, RZ, RZ, PT
    ISETP.GE.U32.AND P0, PT, R0, 0x10, PT, PT
    @P0 EXIT
    SHF.L.U32 R6, R0, 0x2, RZ
    LDS R7, [R6]
    MOV R60, c[0x0][0x210]
    MOV R61, c[0x0][0x214]
    IMAD.WIDE.U32 R8, R0, 0x4, R60
    STG.E [R8.64], R7
    EXIT
expect
out
    00000008 00000008 00000008 00000008 00000008 00000008 00000008 00000008
    00000040 0000003f 00000000 00000000 00000000 00000000 00000000 00000000
